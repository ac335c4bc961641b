import { layerOf } from '../../analyze/graph/layers.ts'
import type { Works } from '../../analyze/graph/work.ts'
import type { Arg } from '../../model/args.ts'
import { Inferred, type TensorEvent } from '../../model/events.ts'
import { formatShape } from '../../model/tensors.ts'
import type { TrackContext } from '../context.ts'

/** The arguments of operator slices that are the same in each graph run: a node, its shape, its sources, its work. */
export class NodeArgs {
  constructor(
    private readonly context: Pick<TrackContext, 'make' | 'tensors' | 'detail'>,
    private readonly works: Works,
  ) {}

  /**
   * Arguments of slices of a node; of fused nodes, `fusedTo` is the last one. `inferred`: bits of the slice; `name`: of the slice, whose last
   * word is the op in most.
   */
  of(id: number, fusedTo: number | undefined, inferred: number, name?: number): Arg[] {
    const { make, tensors } = this.context
    const tensor = tensors[id]!
    const args: Arg[] = []
    if (tensor.name !== 0) args.push(make.name('tensor', tensor.name))
    if (tensor.op !== 0 && !this.isNamed(tensor, fusedTo, name)) args.push(make.name('op', tensor.op))
    const layer = layerOf(tensor, tensors, make.names)
    if (layer >= 0) args.push(make.int('layer', layer))
    if (tensor.ne) args.push(make.word('shape', shapeWithType(tensor.ne, make.names.text(tensor.type))))
    else if (tensor.type !== 0) args.push(make.name('type', tensor.type))
    if (this.context.detail === 'full') args.push(...this.placeArgs('', tensor))
    for (const [i, source] of tensor.sources.entries()) args.push(...this.sourceArgs(`src${i}`, tensors[source]!))
    if (this.context.detail === 'full' && fusedTo === undefined) args.push(...this.workArgs(id))
    if (fusedTo !== undefined) args.push(make.name('fused_to', tensors[fusedTo]!.name))
    const ofLayer = layer === tensor.layer ? 0 : Inferred.Layer
    args.push(...make.inferred(inferred | tensor.inferred | ofLayer))
    return args
  }

  /** Is the op, of fused nodes the first and the last one, the last word of the slice's name? The tensor or its shape shows that there are arguments. */
  private isNamed(
    { name: ownName, ne, op }: TensorEvent,
    fusedTo: number | undefined,
    name: number | undefined,
  ): boolean {
    if (name === undefined || (ownName === 0 && !ne)) return false
    const { make, tensors } = this.context
    const ops = [op, ...(fusedTo === undefined ? [] : [tensors[fusedTo]!.op])].map((id) => make.names.text(id))
    const text = ops.join('+')
    return !ops.includes('') && !text.includes(' ') && ` ${make.names.text(name)}`.endsWith(` ${text}`)
  }

  /** The work of the whole operator, of all workers. */
  private workArgs(id: number): Arg[] {
    const { make } = this.context
    const { flop, bytesRead, bytesWritten, isUpperBound } = this.works.node(id)
    const args: Arg[] = []
    if (flop > 0) args.push(make.int('flop', flop))
    if (bytesRead >= 0 && bytesWritten >= 0) {
      args.push(make.int(isUpperBound ? 'bytes_moved_max' : 'bytes_moved', Math.round(bytesRead + bytesWritten)))
    }
    return args
  }

  private sourceArgs(key: string, source: TensorEvent): Arg[] {
    const { make } = this.context
    const shape = source.ne ? formatShape(source.ne) : ''
    const name = make.names.text(source.name)
    const args = [make.word(key, name && shape ? `${name} ${shape}` : name || shape || 'unnamed')]
    if (key === 'src0' && source.type !== 0) args.push(make.name('src0_type', source.type))
    if (this.context.detail === 'full') args.push(...this.placeArgs(`${key}_`, source))
    return args
  }

  private placeArgs(prefix: string, tensor: TensorEvent): Arg[] {
    const { make } = this.context
    const args: Arg[] = []
    if (tensor.sizeBytes >= 0) args.push(make.int(`${prefix}bytes`, tensor.sizeBytes))
    if (tensor.offset !== undefined) args.push(make.int(`${prefix}offset`, tensor.offset))
    if (tensor.address > 0) args.push(make.arg(`${prefix}address`, { pointer: tensor.address }))
    if (tensor.structAddress > 0) args.push(make.arg(`${prefix}struct_address`, { pointer: tensor.structAddress }))
    return args
  }
}

/** `2048×7 f32`: each slice has it, and two arguments take twice the bytes. */
function shapeWithType(ne: readonly number[], type: string): string {
  return `${formatShape(ne)} ${type}`.trimEnd()
}
