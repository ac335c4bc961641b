import { expect, test } from '@jest/globals'
import type { AccessEvent } from '../../lib/core.ts'
import { analyze, type EventInput, type Names, type TraceEvent } from '../../lib/index.ts'

/** To which tensor a sample belongs, of a log and samples whose answers are known. */

const PID = 7
const [WEIGHT, ARENA, CACHE, MODEL] = [0x10000, 0x20000, 0x30000, 0x40000]

const first = (format: string, attributes: Record<string, string>, capabilities: object): TraceEvent => {
  return { kind: 'input', format, clock: 'MONOTONIC', originNs: 1_000_000n, attributes, capabilities }
}

/**
 * A call of 1000 ns: `a` reads the weight and writes to the arena until 100; `b` reads `a` and writes after it until 200; `c` reuses the
 * memory of `a`, until 300. The weight `copied` is used at another address than that of its file.
 */
const log: EventInput = {
  name: 'log',
  *events(names: Names) {
    const tensor = (
      id: number,
      name: string,
      buffer: number,
      address: number,
      offset: number,
      sources: number[],
      op = '',
    ) => {
      const of = { type: names.id('f32'), ne: [64, 1, 1, 1], sizeBytes: 256, structAddress: 0, inferred: 0, layer: 0 }
      return {
        ...of,
        kind: 'tensor',
        id,
        name: names.id(name),
        op: names.id(op),
        sources,
        buffer,
        address,
        offset,
      } as TraceEvent
    }
    const operator = (of: number, worker: number, startNs: number, endNs: number): TraceEvent => {
      const unknown = { experts: undefined, inferred: 0, cpu: -1, call: 0 }
      return { kind: 'operator', tensor: of, worker, tid: 70 + worker, startNs, endNs, waitEndNs: endNs, ...unknown }
    }
    const buffer = (
      id: number,
      usage: 'weights' | 'compute' | 'kv-cache',
      label: string,
      sizeBytes?: number,
    ): TraceEvent => {
      const file = usage === 'weights' ? names.id('/m/model.gguf') : undefined
      return { kind: 'buffer', id, usage, label, offsetsFrom: 'its base', sizeBytes, file }
    }
    const steps = [1, 2, 3].flatMap((of, i) =>
      [0, 1].map((worker) => operator(of, worker, 1000 + 100 * i, 1100 + 100 * i)),
    )
    const call = {
      kind: 'token',
      call: 0,
      phase: 'decode',
      tokens: 1,
      startNs: 1000,
      endNs: 2000,
      tid: 70,
      inferred: 0,
    } as const
    yield [
      first('test', { pid: `${PID}` }, {}),
      buffer(0, 'weights', '/m/model.gguf'),
      buffer(1, 'compute', 'arena', 1024),
      buffer(2, 'kv-cache', 'cache', 256),
      buffer(3, 'weights', 'CPU_REPACK of CPU_REPACK, 256 bytes at 0x1'),
      tensor(0, 'blk.0.w.weight', 0, WEIGHT, 4096, []),
      tensor(4, 'cache_k_l0', 2, CACHE, 0, []),
      tensor(5, 'blk.0.copied.weight', 3, 0x90000, 8192, []),
      tensor(1, 'a-0', 1, ARENA, 0, [0, 5], 'MUL_MAT'),
      tensor(2, 'b-0', 1, ARENA + 256, 256, [1, 4], 'ADD'),
      tensor(3, 'c-0', 1, ARENA, 0, [2], 'RMS_NORM'),
      ...steps,
      call,
    ]
  },
}

interface Sampled extends Partial<AccessEvent> {
  readonly atNs: number
  readonly address: number
}

async function of(...samples: readonly Sampled[]) {
  const input: EventInput = {
    name: 'samples',
    *events(names: Names) {
      const event = names.id('mem-loads')
      const whole = { kind: 'access', what: 'load', pid: PID, tid: 70, cpu: 0, node: -1, count: 1, event } as const
      const name = names.id('/m/model.gguf')
      const mapping = { kind: 'mapping', atNs: 0, pid: PID, address: MODEL, bytes: 65536, fileOffset: 0, name } as const
      const heap = { ...mapping, address: 0x80000, bytes: 4096, name: names.id('[heap]') }
      yield [first('perf-data', {}, { accesses: true, switches: false }), mapping, heap]
      yield samples.map((sample) => ({ ...whole, ...sample }))
    },
  }
  return (await analyze([log, input])).data_accesses!
}

test.each([
  ['a weight that the operator reads', { atNs: 1050, address: WEIGHT + 255 }, 'blk.0.w.weight'],
  ['a weight before the log defines it', { atNs: 10, address: WEIGHT }, 'blk.0.w.weight'],
  ['a weight on a thread without operators', { atNs: 1050, address: WEIGHT, tid: 99 }, 'blk.0.w.weight'],
  ['a weight in the mapped file', { atNs: 10, address: MODEL + 4096 + 8 }, 'blk.0.w.weight'],
  ['a weight that is copied from the mapped file', { atNs: 10, address: MODEL + 8192 }, 'blk.0.copied.weight'],
  ['a cache', { atNs: 1150, address: CACHE + 8 }, 'cache_k_l0'],
  ['the result of the operator', { atNs: 1050, address: ARENA + 16, what: 'store' }, 'a-0'],
  ['what uses the same memory later', { atNs: 1250, address: ARENA + 16, what: 'store' }, 'c-0'],
  ['by its life, on another thread', { atNs: 1050, address: ARENA + 16, tid: 99 }, 'a-0'],
  ['by its life, later', { atNs: 1250, address: ARENA + 16, tid: 99 }, 'c-0'],
] as const)('%s', async (_, sample, tensor) => {
  const { by_tensor, in_tensors, elsewhere } = await of(sample)
  expect([by_tensor.map((of) => of.tensor), in_tensors, elsewhere]).toEqual([[tensor], 1, []])
})

test('what is in no tensor is counted by mapping, other processes apart', async () => {
  const found = await of(
    { atNs: 1050, address: WEIGHT + 256 },
    { atNs: 1050, address: 0x80010 },
    { atNs: 1060, address: 0x80010, count: 4 },
    { atNs: 1050, address: -1 },
    { atNs: 1050, address: MODEL },
    { atNs: 1050, address: ARENA + 1000 },
    { atNs: 1050, address: WEIGHT, pid: 8 },
  )
  expect([found.samples, found.events, found.other_processes, found.in_tensors]).toEqual([6, 9, 1, 0])
  expect(Object.fromEntries(found.elsewhere.map(({ place, events }) => [place, events]))).toEqual({
    '[heap]': 5,
    'no known mapping': 1,
    'kernel, or no address': 1,
    '/m/model.gguf': 1,
    'compute buffer: no known tensor': 1,
  })
})

test('loads by level, with their latency; times; workers', async () => {
  const from = (level: 'L1' | 'DRAM', tlb: 'hit' | 'walk', latency: number) => ({ source: { level, tlb, latency } })
  const found = await of(
    { atNs: 1010, address: WEIGHT, ...from('L1', 'hit', 4) },
    { atNs: 1020, address: WEIGHT + 64, tid: 71, count: 3, ...from('DRAM', 'walk', 300) },
    { atNs: 1030, address: WEIGHT, ...from('DRAM', 'hit', 200) },
    { atNs: 500, address: WEIGHT, what: 'store' },
  )
  expect(found).toMatchObject({ loads: 5, stores: 1, tlb_miss_share: 3 / 5 })
  expect(found.by_level).toEqual([
    { level: 'L1', samples: 1, events: 1, share: 0.2, mean_latency_cycles: 4 },
    { level: 'DRAM', samples: 2, events: 4, share: 0.8, mean_latency_cycles: 250 },
  ])
  expect(found.by_role).toEqual([
    { role: 'w.weight', usage: 'weights', samples: 3, events: 5, mean_latency_cycles: 168, memory_share: 0.8 },
  ])
  expect(found.by_time).toEqual([
    { time: 'decode', events: 5 },
    { time: 'load', events: 1 },
  ])
  expect(found.by_worker).toEqual([
    { worker: -1, events: 1 },
    { worker: 0, events: 2 },
    { worker: 1, events: 3 },
  ])
})
