import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { type Analysis, analyze, type ConvertOptions, convert, type LogInput } from '../../../lib/index.ts'
import { inputOf, openTrace } from '../../../lib/node.ts'
import { type ArenaOp, runsOf, simulate } from '../../timeline/simulated-arena.ts'
import { smallRun } from './small-run.ts'

/** Figures of memory, against SQL over the trace of the same log, against a small run that was computed by hand, and against brute force. */

const EXAMPLE = 'examples/moe.ggtrace.gz'

type Memory = NonNullable<Analysis['memory']>
type Cell = number | string | null

async function queryOf(log: LogInput, options: ConvertOptions = {}): Promise<(sql: string) => Cell[][]> {
  const trace = await openTrace(convert(log, { detail: 'full', ...options }))
  const query = (sql: string) =>
    trace.query(sql).rows.map((row) => row.map((cell) => (typeof cell === 'bigint' ? Number(cell) : cell))) as Cell[][]
  return query
}

const memoryOf = async (log: Parameters<typeof analyze>[0]): Promise<Memory> => (await analyze(log)).memory!
const arenaOf = ({ buffers }: Memory) => buffers.find(({ usage }) => usage === 'compute')!.arena!

/** Samples of counters with this name, in order of time. */
const samplesOf = (name: string) =>
  `select ts, value from counter c join track t on c.track_id = t.id where t.name = '${name}' order by ts, c.id`

/** The time of each call's operators. */
const RUNS = `select extract_arg(c.arg_set_id, 'debug.phase'), min(s.ts), max(s.ts + s.dur), extract_arg(c.arg_set_id, 'debug.call') as call
  from slice s join slice c on c.category = 'token'
    and extract_arg(c.arg_set_id, 'debug.call') = extract_arg(s.arg_set_id, 'debug.call')
  where s.category = 'operator' group by call order by call`

/** The integral of a step function, in its unit × ns. */
function integral(samples: readonly (readonly number[])[], fromNs: number, toNs: number): number {
  let sum = 0
  for (const [i, [atNs, value]] of samples.entries()) {
    const untilNs = samples[i + 1]?.[0] ?? Infinity
    sum += value! * Math.max(0, Math.min(untilNs, toNs) - Math.max(atNs!, fromNs))
  }
  return sum
}

describe('a recorded run', () => {
  test('live bytes of the arena are those of the trace: peak, mean, last; what lives at the peak', async () => {
    const query = await queryOf(inputOf(EXAMPLE), { memory: 'lifetimes' })
    const memory = await memoryOf(inputOf(EXAMPLE))
    const arena = arenaOf(memory)
    const samples = query(samplesOf('compute buffer: live')) as number[][]
    const peak = Math.max(...samples.map(([, value]) => value!))
    expect(arena.peak_live_bytes).toBe(peak)
    const runs = query(RUNS) as [string, number, number, number][]
    const lengths = runs.map(([, fromNs, toNs]) => toNs - fromNs)
    const integrals = runs.map(([, fromNs, toNs]) => integral(samples, fromNs, toNs))
    const sum = (values: readonly number[]) => values.reduce((a, b) => a + b, 0)
    expect(arena.mean_live_bytes).toBeCloseTo(sum(integrals) / sum(lengths), 6)
    for (const { phase, runs: count, mean_live_bytes, peak_live_bytes } of arena.by_phase) {
      const own = runs.flatMap(([of], i) => (of === phase ? [i] : []))
      expect(count).toBe(own.length)
      expect(mean_live_bytes).toBeCloseTo(sum(own.map((i) => integrals[i]!)) / sum(own.map((i) => lengths[i]!)), 6)
      const inPhase = samples.filter(([atNs]) => own.some((i) => atNs! >= runs[i]![1] && atNs! <= runs[i]![2]))
      expect(peak_live_bytes).toBe(Math.max(...inPhase.map(([, value]) => value!)))
    }
    const [, , lastNs] = runs.at(-1)!
    expect(arena.last_live_bytes).toBe(samples.findLast(([atNs]) => atNs! <= lastNs)![1])

    const [peakNs] = samples.find(([, value]) => value === peak)!
    const [[firstNs]] = query("select min(ts) from slice where category = 'token'") as [[number]]
    expect(arena.peak.at_ns).toBe(peakNs! - firstNs)
    const [[starts, call]] =
      query(`select extract_arg(arg_set_id, 'debug.tensor'), extract_arg(arg_set_id, 'debug.call')
      from slice where category = 'operator' and ts = ${peakNs}`) as [[string, number]]
    expect([arena.peak.tensor, arena.peak.call]).toEqual([starts, call])
    const live = query(`select extract_arg(arg_set_id, 'debug.tensor'), extract_arg(arg_set_id, 'debug.bytes'),
        ifnull(extract_arg(arg_set_id, 'debug.op'), ''), extract_arg(arg_set_id, 'debug.offset')
      from slice where category = 'tensor' and ts <= ${peakNs} and ts + dur > ${peakNs} order by 2 desc, 4`)
    const found = arena.peak.live.map(({ tensor, bytes, op, offset }) => [tensor, bytes, op, offset] as const)
    expect(found.sort((a, b) => b[1] - a[1] || a[3] - b[3])).toEqual(live)
    expect(arena.peak.further_tensors).toBe(0)
  })

  test('tensors of a run, their bytes and offsets are those of its lifetimes', async () => {
    const query = await queryOf(inputOf(EXAMPLE), { memory: 'lifetimes' })
    const arena = arenaOf(await memoryOf(inputOf(EXAMPLE)))
    const [[tensors, bytes, offsets]] = query(`with lives as (select extract_arg(arg_set_id, 'debug.bytes') as bytes,
        extract_arg(arg_set_id, 'debug.offset') as offset, ts from slice where category = 'tensor')
      select count(*), sum(bytes), count(distinct offset) from lives
      where ts < (select min(ts) from slice where category = 'token' and extract_arg(arg_set_id, 'debug.call') = 1)`) as [
      number[],
    ]
    const prefill = arena.by_phase.find(({ phase }) => phase === 'prefill')!
    expect([prefill.placed_tensors, prefill.placed_bytes]).toEqual([tensors, bytes])
    expect(prefill.reuse).toBe(bytes! / prefill.peak_live_bytes)
    expect(prefill.writes_per_offset).toBe(tensors! / offsets!)
  })

  test('buffers, KV cache and allocations are those of the trace; a cell has the bytes that a token writes', async () => {
    const query = await queryOf(inputOf(EXAMPLE))
    const { memory, model } = await analyze(inputOf(EXAMPLE))
    const { kv_caches, allocations, buffers } = memory!
    const [cache] = kv_caches
    const ends = (phase: string) =>
      query(`select max(ts + dur) from slice where category = 'token'
      and extract_arg(arg_set_id, 'debug.phase') = '${phase}'`)[0]![0]
    const at = (unit: string, ns: Cell) =>
      query(`select value from counter c join track t on c.track_id = t.id
      where t.name = 'KV cache: ${unit} used (inferred)' and ts = ${ns}`)[0]![0]
    expect(cache!.by_phase.map(({ phase, used_cells, used_bytes }) => [phase, used_cells, used_bytes])).toEqual(
      ['prefill', 'decode'].map((phase) => [phase, at('cells', ends(phase)!), at('bytes', ends(phase)!)]),
    )
    expect(cache!.bytes_per_token).toBe(model!.decode.kv_written_bytes)
    const [, decode] = cache!.by_phase
    expect([decode!.growth_cells, decode!.growth_bytes]).toEqual([1, cache!.bytes_per_token])
    expect(cache!.capacity_bytes).toBe(buffers.find(({ usage }) => usage === 'kv-cache')!.size_bytes)
    expect(cache!.peak_share).toBe(24 / 256)

    const peaks = query(`select replace(t.name, ': allocated', ''), max(value) from counter c join track t
      on c.track_id = t.id where t.name like '%: allocated' group by 1 order by 2 desc`)
    expect(allocations!.by_type.map(({ name, peak_bytes }) => [name, peak_bytes])).toEqual(peaks)
    expect(allocations!.peak_bytes).toBe(peaks.reduce((sum, [, bytes]) => sum + Number(bytes), 0)) // all of them at once
    const [[size]] = query(
      "select max(value) from counter c join track t on c.track_id = t.id where t.name = 'compute buffer: size'",
    ) as [[number]]
    expect(buffers.find(({ usage }) => usage === 'compute')!.size_bytes).toBe(size)
  })

  test('weights read: the rows of operators, split by type and block; a token of decode reads what the model says', async () => {
    const { memory, model, operators } = await analyze(inputOf(EXAMPLE))
    for (const { phase, bytes, tokens, bytes_per_token, by_type, by_block } of memory!.weights_read) {
      const rows = operators.rows.filter((row) => row.phase === phase)
      expect(bytes).toBe(rows.reduce((sum, { weight_bytes }) => sum + weight_bytes, 0))
      for (const parts of [by_type, by_block]) expect(parts.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(bytes)
      expect(bytes_per_token).toBe(bytes! / tokens!)
    }
    const decode = memory!.weights_read.find(({ phase }) => phase === 'decode')!
    expect(decode.bytes_per_token).toBe(model!.decode.weight_bytes)
  })

  test('what a log does not contain is null, with its reason', async () => {
    const { memory, undetermined } = await analyze(inputOf('test/fixtures/tensor-trace/moe-2threads.bin.gz'))
    expect(memory!.buffers.map(({ usage, arena }) => [usage, arena])).toEqual([
      ['weights', null],
      ['compute', null],
      ['kv-cache', null],
    ])
    expect([memory!.page_faults, memory!.allocations, memory!.kv_caches]).toEqual([null, null, []])
    expect(undetermined.map(({ what }) => what).filter((what) => what.startsWith('memory.'))).toEqual([
      'memory.buffers.arena',
      'memory.weights_read.bytes',
      'memory.page_faults',
      'memory.kv_caches',
      'memory.allocations',
    ])
    expect((await analyze(inputOf('test/fixtures/perf-script/default.txt'))).memory).toBeNull()
  })
})

describe('a small run that was computed by hand', () => {
  test('views, an op in place and a write into the cache', async () => {
    const { buffers, kv_caches } = await memoryOf(smallRun())
    const arena = buffers.find(({ usage }) => usage === 'compute')!
    // Live: inp and a; and b; a and b; c, in place of b; c and d. d is fetched after the last step.
    expect(arena).toMatchObject({ name: 'CPU', size_bytes: 1000, tensors: 5, tensor_bytes: 100 + 400 + 300 + 300 + 50 })
    expect(arena.arena).toMatchObject({
      runs: 1,
      peak_live_bytes: 800,
      peak_share: 0.8,
      mean_live_bytes: (500 + 800 + 700 + 300 + 350) / 5,
      last_live_bytes: 50,
      reuse: 1150 / 800,
      writes_per_offset: 5 / 4,
    })
    expect(arena.arena!.peak).toMatchObject({ call: 0, phase: 'decode', step: 1, tensor: 'b-0', op: 'MUL_MAT' })
    expect(arena.arena!.peak.live).toEqual([
      { tensor: 'a-0', op: 'MUL_MAT', offset: 100, bytes: 400, last_reader: 'cache_k_l0 (view)' },
      { tensor: 'b-0', op: 'MUL_MAT', offset: 500, bytes: 300, last_reader: 'c-0' },
      { tensor: 'inp', op: '', offset: 0, bytes: 100, last_reader: 'b-0' },
    ])
    expect(buffers.map(({ usage, tensors, tensor_bytes }) => [usage, tensors, tensor_bytes]).sort()).toEqual([
      ['compute', 5, 1150],
      ['kv-cache', 1, 640],
      ['weights', 2, 2000],
    ])
    expect(kv_caches).toEqual([
      {
        context: 77,
        is_inferred: true,
        capacity_cells: 64,
        capacity_bytes: 640,
        bytes_per_token: 10,
        used_cells: 62,
        used_bytes: 620,
        peak_cells: 62,
        peak_bytes: 620,
        peak_share: 620 / 640,
        by_phase: [{ phase: 'decode', calls: 1, used_cells: 62, used_bytes: 620, growth_cells: 62, growth_bytes: 620 }],
      },
    ])
  })

  test('page faults by phase and operator, as they were counted', async () => {
    const { page_faults } = await memoryOf(
      smallRun({ 'minor-faults': [5, 0, 1, 0, 0], 'major-faults': [0, 2, 0, 0, 0], 'bytes-read': [0, 8192, 0, 0, 0] }),
    )
    expect(page_faults).toEqual([
      {
        phase: 'decode',
        ...{ minor_faults: 6, major_faults: 2, page_faults: null, read_bytes: 8192 },
        by_role: [
          { role: 'b', op: 'MUL_MAT', minor_faults: 0, major_faults: 2, page_faults: null, read_bytes: 8192 },
          { role: 'a', op: 'MUL_MAT', minor_faults: 5, major_faults: 0, page_faults: null, read_bytes: 0 },
          { role: 'cache_k', op: 'SET_ROWS', minor_faults: 1, major_faults: 0, page_faults: null, read_bytes: 0 },
        ],
        further: { minor_faults: 0, major_faults: 0, page_faults: null, read_bytes: 0 },
      },
    ])
    expect((await memoryOf(smallRun({ 'bytes-read': [1, 2, 3, 4, 5] }))).page_faults).toBeNull()
    expect((await memoryOf(smallRun({ 'page-faults': [1, 2, 3, 4, 5] }))).page_faults![0]).toMatchObject({
      ...{ page_faults: 15, major_faults: null },
    })
  })

  test('allocations: the most at once of each type and of all, and what was there before the log', async () => {
    const { allocations } = await memoryOf(smallRun())
    // CPU: 600 earlier, + 1000 at 20, - 1000 at 900; Other: 300 from 950 on.
    expect(allocations).toEqual({
      peak_bytes: 1600,
      peak_at_ns: -30,
      last_bytes: 900,
      by_type: [
        { name: 'CPU', peak_bytes: 1600, last_bytes: 600, allocations: 2, earlier_bytes: 600 },
        { name: 'Other', peak_bytes: 300, last_bytes: 300, allocations: 1, earlier_bytes: 0 },
      ],
    })
  })
})

const arenaOp: fc.Arbitrary<ArenaOp> = fc.record({
  kind: fc.constantFrom('plain', 'plain', 'in place', 'view', 'write into'),
  sources: fc.array(fc.nat(1000), { minLength: 1, maxLength: 3 }),
  bytes: fc.integer({ min: 1, max: 400 }),
})

test('the use of an arena by any graphs is that of what the allocator had in mind', async () => {
  const graphs = fc.array(fc.array(arenaOp, { minLength: 1, maxLength: 40 }), { minLength: 1, maxLength: 3 })
  await fc.assert(
    fc.asyncProperty(graphs, fc.integer({ min: 1, max: 4 }), async (graphs, workers) => {
      const simulated = graphs.map(simulate)
      const { log, expected } = runsOf(simulated, workers)
      const found = await memoryOf({ name: 'log', source: log })
      if (expected.every(({ tensor }) => tensor.startsWith('input'))) return
      const arena = arenaOf(found)
      // All times at which something changes; at each, the bytes of what lives.
      const times = [...new Set(expected.flatMap(({ startNs, endNs }) => [startNs, endNs]))].sort((a, b) => a - b)
      const liveAt = (ns: number) =>
        expected.filter(({ startNs, endNs }) => startNs <= ns && ns < endNs).reduce((sum, { bytes }) => sum + bytes, 0)
      const peak = Math.max(...times.map(liveAt))
      expect(arena.peak_live_bytes).toBe(peak)
      expect(arena.runs).toBe(2 * graphs.length)
      const ofPeak = arena.peak.live.reduce((sum, { bytes }) => sum + bytes, 0) + arena.peak.further_bytes
      expect(ofPeak).toBe(peak)
      const placed = expected.reduce((sum, { bytes }) => sum + bytes, 0)
      expect(arena.by_phase.reduce((sum, { placed_bytes, runs }) => sum + placed_bytes * runs, 0)).toBeCloseTo(
        placed,
        6,
      )
    }),
    { numRuns: 25 },
  )
})
