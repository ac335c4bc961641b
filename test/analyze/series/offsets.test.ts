import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { Bins } from '../../../lib/analyze/series/bins.ts'
import type { ExpertsEvent, OperatorEvent, TensorEvent } from '../../../lib/core.ts'
import { type Analysis, analyze, eventsOf, Names } from '../../../lib/index.ts'
import { inputOf } from '../../../lib/node.ts'
import { smallRun } from '../memory/small-run.ts'

/** Maps of reads, offset × time, against a computation from the log's events alone. */

const EXAMPLE = 'examples/moe.ggtrace.gz'

type Map_ = NonNullable<NonNullable<Analysis['series']>['offsets']>['maps'][number]

/** A read of some bytes of a buffer, from one offset to another. */
interface Read {
  readonly buffer: string
  readonly atNs: number
  readonly from: number
  readonly to: number
  readonly bytes: number
}

/** All reads of weights in a log, with the chosen experts one by one; and the time of its first call. */
async function readsOf(path: string): Promise<{ reads: Read[]; firstNs: number }> {
  const names = new Names()
  const tensors: TensorEvent[] = []
  const usages = new Map<number, string>()
  const labels = new Map<number, string>()
  const steps = new Map<string, OperatorEvent & { startNs: number }>()
  const chosen = new Map<string, Set<number>>()
  let firstNs = Infinity
  for await (const batch of eventsOf(inputOf(path), names)) {
    for (const event of batch) {
      if (event.kind === 'tensor') tensors[event.id] = event
      if (event.kind === 'buffer') {
        usages.set(event.id, event.usage)
        labels.set(event.id, event.label)
      }
      if (event.kind === 'token') firstNs = Math.min(firstNs, event.startNs)
      if (event.kind === 'experts') addChoice(chosen, event)
      if (event.kind !== 'operator') continue
      const key = `${event.call} ${event.tensor}` // no call of this log computes a node twice
      const known = steps.get(key)
      steps.set(key, { ...event, startNs: Math.min(event.startNs, known?.startNs ?? Infinity) })
    }
  }
  const reads = [...steps.values()].flatMap(({ tensor, fusedTo = tensor, startNs, call }) => {
    const nodes = [...new Set([tensor, fusedTo])].map((id) => tensors[id]!)
    return nodes.flatMap((node) =>
      node.sources.flatMap((id, i): Read[] => {
        const { buffer, offset = NaN, sizeBytes, ne = [] } = tensors[id]!
        if (usages.get(buffer) !== 'weights') return []
        const of = { buffer: labels.get(buffer)!, atNs: startNs }
        const op = names.text(node.op)
        if (op === 'MUL_MAT_ID' && i === 0) {
          const each = sizeBytes / ne[2]!
          const ids = [...chosen.get(`${call} ${node.sources[2]}`)!]
          return ids.map((id) => ({ ...of, from: offset + id * each, to: offset + (id + 1) * each, bytes: each }))
        }
        const rows = op === 'GET_ROWS' ? (node.ne![1] ?? 1) / ne[1]! : 1
        return [{ ...of, from: offset, to: offset + sizeBytes, bytes: sizeBytes * rows }]
      }),
    )
  })
  return { reads, firstNs }
}

function addChoice(chosen: Map<string, Set<number>>, { tensor, call, ids }: ExpertsEvent): void {
  const key = `${call} ${tensor}`
  chosen.set(key, new Set([...(chosen.get(key) ?? []), ...ids]))
}

test('each cell has the bytes that the operators read there at that time', async () => {
  const { series, memory } = await analyze(inputOf(EXAMPLE), { series: ['offsets'] })
  const { maps, further_buffers } = series!.offsets!
  const { reads, firstNs } = await readsOf(EXAMPLE)
  expect(further_buffers).toBe(0)
  expect(maps.map(({ label }) => label).sort()).toEqual([...new Set(reads.map(({ buffer }) => buffer))].sort())
  for (const map of maps) {
    const own = reads.filter(({ buffer }) => buffer === map.label)
    const expected = new Map<string, number>()
    for (const { atNs, from, to, bytes } of own) {
      const time = Math.floor((atNs - firstNs - map.first_ns) / map.time_bin_ns)
      for (let bin = 0; bin < map.bins_max; bin++) {
        const start = map.first_offset + bin * map.offset_bin_bytes
        const inside = Math.min(to, start + map.offset_bin_bytes) - Math.max(from, start)
        if (inside <= 0) continue
        const key = `${time} ${bin}`
        expected.set(key, (expected.get(key) ?? 0) + (bytes * inside) / (to - from))
      }
    }
    expect(map.cells.map(([time, offset]) => `${time} ${offset}`).sort()).toEqual([...expected.keys()].sort())
    for (const [time, offset, bytes] of map.cells)
      expect(Math.abs(bytes - expected.get(`${time} ${offset}`)!)).toBeLessThanOrEqual(0.51)
    expect(map.bytes).toBeCloseTo(
      own.reduce((sum, { bytes }) => sum + bytes, 0),
      3,
    )
    // As fine as the number of bins allows.
    const used = (at: 0 | 1) =>
      Math.max(...map.cells.map((cell) => cell[at])) - Math.min(...map.cells.map((cell) => cell[at])) + 1
    expect(used(0)).toBeGreaterThan(map.bins_max / 2 - 2)
    expect([used(0), used(1)].every((bins) => bins <= map.bins_max)).toBe(true)
  }
  const all = maps.reduce((sum: number, { bytes }: Map_) => sum + bytes, 0)
  expect(all).toBeCloseTo(
    memory!.weights_read.reduce((sum, { bytes }) => sum + bytes!, 0),
    3,
  )
})

test('a small run: two weights, one after the other', async () => {
  const { series } = await analyze(smallRun(), { series: ['offsets'] })
  expect(series!.offsets!.maps).toEqual([
    {
      ...{ name: '', label: 'buffer 0', offsets_from: 'its base', bins_max: 512 },
      ...{ first_offset: 0, offset_bin_bytes: 1024, first_ns: -50, time_bin_ns: 1024, bytes: 2000 },
      cells: [
        [0, 0, 1024],
        [0, 1, 976],
      ],
    },
  ])
})

test('bins of any reads: sums are kept, each in its place', () => {
  const read = fc.record({
    x: fc.integer({ min: -1e6, max: 1e9 }),
    y: fc.integer({ min: 0, max: 1e8 }),
    length: fc.integer({ min: 1, max: 1e7 }),
    value: fc.integer({ min: 1, max: 1e6 }),
  })
  fc.assert(
    fc.property(fc.array(read, { minLength: 1, maxLength: 30 }), (reads) => {
      const bins = new Bins(1, 1)
      for (const { x, y, length, value } of reads) bins.add(x, y, y + length, value)
      const found = new Map([...bins.cells()].map(([i, j, value]) => [`${i} ${j}`, value]))
      const expected = new Map<string, number>()
      for (const { x, y, length, value } of reads) {
        const i = Math.floor(x / bins.x.width) - bins.x.first
        for (let j = 0; j < 512; j++) {
          const start = (bins.y.first + j) * bins.y.width
          const inside = Math.min(y + length, start + bins.y.width) - Math.max(y, start)
          if (inside > 0) expected.set(`${i} ${j}`, (expected.get(`${i} ${j}`) ?? 0) + (value * inside) / length)
        }
      }
      expect([...found.keys()].sort()).toEqual([...expected.keys()].sort())
      for (const [key, value] of found) expect(value).toBeCloseTo(expected.get(key)!, 4)
    }),
    { numRuns: 40 },
  )
})
