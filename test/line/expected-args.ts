import { formatShape, type OperatorEvent, type TensorEvent } from '../../lib/core.ts'
import type { Names } from '../../lib/index.ts'
import type { Args } from './comparer.ts'

/** The arguments of operators, by the rules of docs/reference/tracks.md. */

/** What each bit of `Inferred` says, lowest first. */
const INFERRED = [
  'end: start of the next record',
  'no end recorded',
  'gap to the next operator: may contain operators that were not recorded',
  'worker index',
  'call borders',
  'phase',
  'token count',
  'op name',
  'counts of events: extrapolated, the processor counted for a part of the time',
  'layer: that of the sources',
]
const LAYER_BIT = 512
export const WAIT_BIT = 4

export function operatorArgs(
  event: OperatorEvent,
  tensors: ReadonlyMap<number, TensorEvent>,
  names: Names,
  detail: string,
  sliceName: string,
): Args {
  if (detail === 'names') return {}
  const tensor = tensors.get(event.tensor)!
  const sources = tensor.sources.map((id) => tensors.get(id)!)
  const args: Record<string, string> = {}
  const [name, op, type, first] = [tensor.name, tensor.op, tensor.type, sources[0]?.type ?? 0].map((id) =>
    names.text(id),
  )
  if (name) args['tensor'] = name
  const isNamed = sliceName.split(' ').at(-1) === op && (name !== '' || tensor.ne !== undefined)
  if (op && !isNamed) args['op'] = op
  if (type && !tensor.ne) args['type'] = type
  if (first) args['src0_type'] = first
  let bits = (event.inferred & ~WAIT_BIT) | tensor.inferred
  let { layer } = tensor
  if (layer < 0 && op === 'FLASH_ATTN_EXT') {
    const layers = sources.map((source) => source.layer).filter((known) => known >= 0)
    if (layers.length > 0 && Math.min(...layers) === Math.max(...layers)) {
      layer = layers[0]!
      bits |= LAYER_BIT
    }
  }
  Object.assign(args, inferredArg(bits))
  if (layer >= 0) args['layer'] = `${layer}`
  if (tensor.ne) args['shape'] = `${formatShape(tensor.ne)}${type ? ` ${type}` : ''}`
  if (event.experts) args['experts'] = event.experts.join(',')
  sources.forEach((source, i) => {
    const shape = source.ne ? formatShape(source.ne) : ''
    args[`src${i}`] = [names.text(source.name), shape].filter(Boolean).join(' ') || 'unnamed'
  })
  if (detail !== 'full') return args
  if (event.tid >= 0) args['tid'] = `${event.tid}`
  Object.assign(args, placeArgs('', tensor), ...sources.map((source, i) => placeArgs(`src${i}_`, source)))
  if (event.cpu >= 0) args['cpu'] = `${event.cpu}`
  return args
}

function placeArgs(prefix: string, { sizeBytes, offset, address, structAddress }: TensorEvent): Args {
  const args: Record<string, string> = {}
  if (sizeBytes >= 0) args[`${prefix}bytes`] = `${sizeBytes}`
  if (offset !== undefined) args[`${prefix}offset`] = `${offset}`
  if (address > 0) args[`${prefix}address`] = `0x${address.toString(16)}`
  if (structAddress > 0) args[`${prefix}struct_address`] = `0x${structAddress.toString(16)}`
  return args
}

export function inferredArg(bits: number): Args {
  const words = INFERRED.filter((_, i) => ((bits >> i) & 1) === 1)
  return words.length > 0 ? { inferred: words.join('; ') } : {}
}
