// buffer-timeline.json: buffer_stats.jsonl as the TensorTrace tools convert it.
//
//     {"metadata": {…}, "timeline": [{…}], "buffers": [{"id": 98645139604320, "name": "KVCache_CPU", "size": 3221225472,
//       "backend": "CPU", "usage": 2, "alloc_time_ms": 600604855.454, "dealloc_time_ms": null}]}
//
// The list of buffers is complete; the timeline repeats it.

import { listOf, readJson } from '../../input/json.ts'
import type { TraceEvent } from '../../model/events.ts'
import { issueOf } from '../../model/issues.ts'
import { containing } from '../common/holdings.ts'
import type { Format } from '../format.ts'
import { BufferLog, stampOf } from './buffers.ts'

export const bufferTimeline: Format = {
  name: 'buffer-timeline',
  title: 'buffer-timeline.json of the TensorTrace tools: the same buffers, in one list',
  isCompanion: true,

  sniff(head) {
    const text = new TextDecoder().decode(head).trimStart()
    if (!text.startsWith('{')) return false
    return /"peak_occupancy_bytes"\s*:/.test(text) || (/"buffers"\s*:\s*\[/.test(text) && /"alloc_time_ms"/.test(text))
  },

  async *read(source, { names }) {
    const list = listOf(await readJson(source, bufferTimeline.name), 'buffers', bufferTimeline.name)
    const buffers = new BufferLog(names)
    const edges = list.flatMap((object, index) => [
      { object, index, stamp: stampOf(object['alloc_time_ms']), isFree: false },
      ...(object['dealloc_time_ms'] == null
        ? []
        : [{ object, index, stamp: stampOf(object['dealloc_time_ms']), isFree: true }]),
    ])
    // At the same time, frees come first: the address may be reused at once.
    edges.sort((a, b) => Number((a.stamp ?? 0n) - (b.stamp ?? 0n)) || Number(b.isFree) - Number(a.isFree))
    const originNs = edges.find(({ stamp }) => stamp !== undefined)?.stamp ?? 0n
    const events: TraceEvent[] = [
      { kind: 'input', format: bufferTimeline.name, clock: 'MONOTONIC', originNs, attributes: {} },
    ]
    for (const { object, index, stamp, isFree } of edges) {
      const atNs = stamp === undefined ? 0 : Number(stamp - originNs)
      const made =
        stamp === undefined ? 'expected a time in ms' : buffers[isFree ? 'free' : 'allocate'](object, 'id', atNs)
      if (typeof made !== 'string') events.push(...made)
      else events.push(issueOf('companion-entry', `buffer ${index}: ${made}`, { byte: 0 }, atNs))
    }
    yield [...events, { kind: 'facts', ...containing(buffers.about) }]
  },
}
