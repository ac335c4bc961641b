// memory-map.json of the TensorTrace tools: the tensors of a GGUF file and their offsets in it.
//
//     {"model_name": "…", "total_size_bytes": 13792639168, "metadata": {…}, "tensors": [{"name": "blk.0.attn_k.weight",
//       "offset_start": 3389440, "offset_end": 6338560, "size_bytes": 2949120, "shape": [2880, 512], "layer_id": 0}]}
//
// Offsets are from the start of the file. Tensors of experts are listed expert by expert (`name[i]`); the reader joins them.

import { type JsonObject, listOf, readJson, shapeOf, textOf, wholeOf } from '../../input/json.ts'
import type { TensorEvent, TraceEvent } from '../../model/events.ts'
import { issueOf } from '../../model/issues.ts'
import { parseTensorName } from '../../model/tensors.ts'
import { UNKNOWN } from '../../model/unknown.ts'
import { containing } from '../common/holdings.ts'
import type { Format } from '../format.ts'

/** A tensor of the file. */
interface Extent {
  name: string
  start: number
  end: number
  bytes: number
  /** Number of experts in the list; 0: not listed by expert. */
  slices: number
  readonly shape: readonly number[] | undefined
  readonly layer: number
}

export const memoryMap: Format = {
  name: 'memory-map',
  title: 'memory-map.json of the TensorTrace tools: names and shapes of weights by GGUF offset',
  isCompanion: true,

  sniff(head) {
    const text = new TextDecoder().decode(head).trimStart()
    return (
      text.startsWith('{') && /"tensors"\s*:\s*\[/.test(text) && /"(?:offset_start|total_size_bytes)"\s*:/.test(text)
    )
  },

  async *read(source, { names }) {
    const document = await readJson(source, memoryMap.name)
    const events: TraceEvent[] = []
    const extents = new Map<string, Extent>()
    for (const [i, object] of listOf(document, 'tensors', memoryMap.name).entries()) {
      const extent = extentOf(object)
      if (extent) join(extents, extent)
      else {
        const detail = `tensor ${i}: expected name, offset_start and offset_end`
        events.push(issueOf('companion-entry', detail, { byte: 0 }, 0))
      }
    }
    const model = textOf(document, 'model_name')
    const contents = containing(`${extents.size} weight${extents.size === 1 ? '' : 's'}${model ? ` of ${model}` : ''}`)
    yield [
      { kind: 'input', format: memoryMap.name, clock: 'none', originNs: 0n, ...contents },
      { kind: 'buffer', id: 0, usage: 'weights', label: 'model file', offsetsFrom: 'the start of the GGUF file' },
      ...[...extents.values()].map((extent, id) => tensorOf(extent, id, names.id(extent.name))),
      ...events,
    ]
  },
}

function extentOf(object: JsonObject): Extent | undefined {
  const name = textOf(object, 'name')
  const [start, end] = [wholeOf(object, 'offset_start'), wholeOf(object, 'offset_end')]
  if (name === '' || start === undefined || end === undefined || end < start) return undefined
  const expert = /^(.+)\[\d+\]$/.exec(name)
  return {
    name: expert?.[1] ?? name,
    ...{ start, end, bytes: end - start },
    slices: expert ? 1 : 0,
    shape: shapeOf(object),
    layer: wholeOf(object, 'layer_id') ?? parseTensorName(name).layer,
  }
}

function join(extents: Map<string, Extent>, slice: Extent): void {
  const whole = extents.get(slice.name)
  if (!whole || slice.slices === 0) {
    extents.set(slice.name, slice)
    return
  }
  whole.start = Math.min(whole.start, slice.start)
  whole.end = Math.max(whole.end, slice.end)
  whole.bytes += slice.bytes
  whole.slices++
}

function tensorOf({ start, end, bytes, slices, shape, layer }: Extent, id: number, name: number): TensorEvent {
  const isWhole = end - start === bytes
  return {
    ...UNKNOWN.tensor,
    ...{ id, name, layer, buffer: 0, offset: start },
    ne: shape && isWhole ? (slices > 0 ? [...shape, slices] : shape) : undefined,
    sizeBytes: isWhole ? bytes : -1,
  }
}
