import { beforeAll, describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { convert, UsageError } from '../../lib/index.ts'
import { inputOf, openTrace } from '../../lib/node.ts'
import { calls, longLog, perRound } from '../../scripts/bench/long-log.mjs'
import { inLong, inParts, isLong, someOf } from '../long.ts'
import { bytesOf, randomLog } from './random-log.ts'
import { converted, type Made, made } from './traces.ts'

/** Traces that do not contain all calls in full: what is summed up adds up to the full log, exactly. */

/** Descriptors, names and what buffers of writers contain: a trace exceeds its budget by at most that and a tenth. */
const OVERHEAD_BYTES = 64 << 10
/** In a stream, what is decided about applies from the next batch of events on. */
const BATCHES_BYTES = 800_000

/** A stream, which can be read once. */
const piped = (bytes: Uint8Array) => ({
  name: 'pipe',
  source: (async function* () {
    for (let at = 0; at < bytes.length; at += 5000) yield bytes.subarray(at, at + 5000)
  })(),
})

const sameSums = (thin: Made, full: Made) => {
  expect(thin.problems).toEqual(full.problems)
  expect(thin.byRole).toEqual(full.byRole)
  expect(thin.graphs).toEqual(full.graphs)
  expect(thin.calls).toEqual(full.calls)
  expect(thin.overlaps).toBe(0)
}

/** 108 calls: those of a real run repeated; one of them takes 30 ms longer. */
const ROUNDS = 12
const SLOW = { round: 7, ns: 30_000_000 }
const SLOW_CALL = (SLOW.round + 1) * calls - 1

describe('a recorded run of some hundred calls', () => {
  let log: Uint8Array
  let full: Made
  let least: Made
  beforeAll(async () => {
    const pieces: Uint8Array[] = []
    for await (const piece of longLog(ROUNDS, SLOW)) pieces.push(piece)
    log = new Uint8Array(Buffer.concat(pieces))
    full = await made({ name: 'log', source: log }, { all: true })
    least = await made({ name: 'log', source: log }, { budget: 1 })
  })

  const withinBudgets = new Map<number, Promise<Made>>()
  /** Of the log as a file; made once. */
  const within = (budget: number) => {
    const before = withinBudgets.get(budget) ?? made({ name: 'log', source: log }, { budget })
    withinBudgets.set(budget, before)
    return before
  }
  const rowsIn = async ({ trace }: Made, sql: string) => {
    const open = await openTrace(trace)
    const { rows } = open.query(sql)
    open.close()
    return rows
  }

  test('all of it is in the trace where it fits', async () => {
    const { trace, summary } = await converted({ name: 'log', source: log }, {})
    expect(Buffer.compare(trace, full.trace)).toBe(0)
    expect(summary.thinned).toBeUndefined()
    expect(full.categories['operator']).toBe(ROUNDS * perRound)
  })

  inLong(test)('all of it is in the trace where the budget is as large', async () => {
    const large = await converted({ name: 'log', source: log }, { budget: 2 * full.bytes })
    expect(Buffer.compare(large.trace, full.trace)).toBe(0)
  })

  test('with hardly any budget: all calls, and sums', () => {
    sameSums(least, full)
    expect(least.inFull).toEqual([])
    expect(least.bytes).toBeLessThan(full.bytes / 50)
    expect(least.summary.thinned).toMatchObject({ calls: ROUNDS * calls, calls_in_full: 0, operators_in_full: 0 })
    expect(least.summary.operators).toBe(full.summary.operators)
  })

  const BUDGETS = [
    ['file', 150_000],
    ['file', 600_000],
    ['pipe', 3_000_000],
    ['file', 2_000_000],
  ] as const
  inParts(test).each(someOf(BUDGETS, 2, 1))('as a %s within %d bytes', async (kind, budget) => {
    const thin = await (kind === 'file' ? within(budget) : made(piped(log), { budget }))
    sameSums(thin, full)
    const { thinned, left_out } = thin.summary
    expect(thin.bytes).toBeLessThan(
      Math.max(budget, least.bytes) * 1.1 + (kind === 'file' ? OVERHEAD_BYTES : BATCHES_BYTES),
    )
    expect(thin.inFull.length).toBe(thinned!.calls_in_full)
    // A call is in full or not at all.
    for (const row of thin.inFull) expect(full.inFull).toContainEqual(row)
    expect(left_out.map(({ what }) => what)).toContain('choices of experts in summed calls')
    if (budget < 500_000) return
    expect(thin.inFull.map(([call]) => call)).toEqual(expect.arrayContaining([0, 1]))
    expect(thin.inFull.map(([call]) => call)).toContain(SLOW_CALL)
    expect(thinned!.kept.slow).toBeGreaterThan(0)
  })

  test('calls in full are spread over the run', async () => {
    const { inFull, summary } = await within(2_000_000)
    expect(summary.thinned!.kept.spread).toBeGreaterThan(5)
    const numbers = [0, ...inFull.map(([call]) => call as number), ROUNDS * calls]
    const pauses = numbers.slice(1).map((call, i) => call - numbers[i]!)
    expect(Math.max(...pauses)).toBeLessThan((6 * ROUNDS * calls) / inFull.length)
  })

  test('a sum is marked: category, name, count, calls, inferred; so are the tracks and the attributes', async () => {
    const [row] = await rowsIn(
      await within(600_000),
      `select slice.name, extract_arg(arg_set_id, 'debug.summed'), extract_arg(arg_set_id, 'debug.inferred'),
        extract_arg(track.source_arg_set_id, 'description') glob '*are sums of n slices*', extract_arg(arg_set_id, 'debug.count')
        from slice join track on track_id = track.id where category = 'operator_sum' and slice.name glob 'Σ ffn_moe_up*' limit 1`,
    )
    const [name, summed, inferred, isDescribed, count] = row!
    expect([summed, name]).toEqual(['ffn_moe_up MUL_MAT_ID', `Σ ffn_moe_up MUL_MAT_ID ×${count}`])
    expect(inferred).toBe('place in time: sums are laid end to end in the time of what they sum')
    expect(isDescribed).toBe(1)
  })

  test('sums do not look like single slices, nor counters without values like idleness', async () => {
    const LOOKS = `select distinct slice.category glob '*_sum', slice.name glob 'Σ *', extract_arg(arg_set_id, 'correlation_id') = 'nothing'
      from slice where category in ('operator', 'operator_sum', 'graph_sum') order by 1`
    const COUNTERS = `select distinct name from track where type glob '*counter*' and name glob '*/s*' order by 1`
    const thin = await within(600_000)
    expect(await rowsIn(thin, LOOKS)).toEqual([
      [0, 0, null],
      [1, 1, 1],
    ])
    expect((await rowsIn(thin, COUNTERS)).flat()).toEqual(['GB/s · calls in full', 'GFLOP/s · calls in full', 'tok/s'])
    expect((await rowsIn(full, COUNTERS)).flat()).toEqual(['GB/s', 'GFLOP/s', 'tok/s'])
  })

  test('sums are in the time of their calls', async () => {
    const thin = await within(600_000)
    const times = new Map(
      thin.calls.map(([, ts, dur, call]) => [call, [Number(ts), Number(ts) + Number(dur)] as const]),
    )
    const sums = await rowsIn(
      thin,
      `select ts, ts + dur, extract_arg(arg_set_id, 'debug.call'), extract_arg(arg_set_id, 'debug.to_call') from slice
        where category in ('operator_sum', 'barrier_sum', 'graph_sum')`,
    )
    const outside = sums.filter(([ts, end, call, toCall]) => {
      return Number(ts) < times.get(call)![0] || Number(end) > times.get(toCall ?? call)![1]
    })
    expect(sums.length).toBeGreaterThan(200)
    expect(outside).toEqual([])
  })

  inLong(test)('all details, JSON, op names, a part of the calls, the data flow of a call', async () => {
    for (const options of [{ detail: 'full', memory: 'lifetimes' }, { opName: 'op' }] as const) {
      const all = await made({ name: 'log', source: log }, { ...options, all: true })
      sameSums(await made({ name: 'log', source: log }, { ...options, budget: all.bytes / 8 }), all)
      sameSums(await made(piped(log), { ...options, budget: all.bytes / 8 }), all)
    }
    const json = await made({ name: 'log', source: log }, { to: 'json', budget: 2_500_000 })
    expect(json.bytes).toBeLessThan(2_900_000)
    expect(json.calls.length).toBe(ROUNDS * calls)
    expect(json.problems).toEqual([])
    const part = { tokens: [20, 60], budget: 500_000 } as const
    const ofPart = await made({ name: 'log', source: log }, { ...part, budget: undefined, all: true })
    sameSums(await made({ name: 'log', source: log }, part), ofPart)
    const arrows = await made(
      { name: 'log', source: log },
      { flows: { token: 33 }, budget: 600_000 },
      'select count(*) from flow',
    )
    expect(arrows.more[0]![0]).toBeGreaterThan(100)
    expect(arrows.inFull.map(([call]) => call)).toContain(33)
  })

  inLong(test)('the same bytes again', async () => {
    const { trace } = await converted({ name: 'log', source: log }, { budget: 1 })
    expect(Buffer.compare(trace, least.trace)).toBe(0)
  })
})

test('an example: nine calls, one of which is in full', async () => {
  const full = await made(inputOf('examples/moe.ggtrace.gz'), { all: true })
  const thin = await made(inputOf('examples/moe.ggtrace.gz'), { budget: 150_000 })
  sameSums(thin, full)
  expect(thin.inFull.length).toBeGreaterThan(0)
  expect(thin.inFull.length).toBeLessThan(9)
})

inParts(test).each(someOf(['chrome-json/h100.json.gz', 'nsys/one-gpu.sqlite.gz', 'nsys-nvtx-trace/jax.csv'], 3, 2))(
  '%s has nothing to sum up: it is read once',
  async (name) => {
    const readings: unknown[] = []
    const onFirstReading = (indexes: unknown) => readings.push(indexes)
    const [thin, full] = [
      await converted(inputOf(`test/fixtures/${name}`), { budget: 1, onFirstReading }),
      await converted(inputOf(`test/fixtures/${name}`), {}),
    ]
    expect(Buffer.compare(thin.trace, full.trace)).toBe(0)
    expect(readings).toEqual([])
    await converted(inputOf('examples/moe.csv'), { budget: 1, onFirstReading })
    expect(readings).toEqual([[0], undefined])
  },
)

/** Of queues and of threads that call a library: works by name, also of slices that are sums; and how many slices there are. */
const WORKS = `select what, name, sum(n), sum(dur) from (
    select kind as what, coalesce(extract_arg(arg_set_id, 'summed'), gpu_slice.name) as name,
      coalesce(extract_arg(arg_set_id, 'count'), 1) as n, dur from gpu_slice join
      (select arg_set_id, string_value as kind from args where key = 'kind') using (arg_set_id)
    union all select 'api', coalesce(extract_arg(arg_set_id, 'debug.summed'), name),
      coalesce(extract_arg(arg_set_id, 'debug.count'), 1), dur from slice where category in ('api', 'api_sum'))
  group by 1, 2 order by 1, 2`

test('work of a GPU and calls of its library are summed up by name, exactly', async () => {
  const log = inputOf('test/gpu/logs/nano.ggtrace.gz')
  const full = await made(log, { all: true }, WORKS)
  const thin = await made(log, { budget: 1 }, WORKS)
  expect(full.more.length).toBeGreaterThan(10)
  expect(thin.more).toEqual(full.more)
  expect(thin.problems).toEqual([])
  expect(thin.summary.thinned).toMatchObject({ calls_in_full: 0 })
  expect(thin.categories['api']! + thin.categories['api_sum']!).toBeLessThan(full.categories['api']! / 2)
  expect(thin.bytes).toBeLessThan(full.bytes / 2)
  const open = await openTrace(thin.trace)
  const sums = `select name, extract_arg(arg_set_id, 'summed'), extract_arg(arg_set_id, 'inferred') is not null from gpu_slice
    where extract_arg(arg_set_id, 'count') > 1 limit 1`
  const [[name, summed, isInferred]] = open.query(sums).rows as [[string, string, number]]
  open.close()
  expect(name).toMatch(/^Σ .* ×\d+$/)
  expect(name.startsWith(`Σ ${summed}`)).toBe(true)
  expect(isInferred).toBe(1)
})

test('a budget is above 0, and has no meaning with all', async () => {
  const tried = (options: object) => convert(inputOf('examples/moe.csv'), options).next()
  await expect(tried({ budget: 0 })).rejects.toThrow(UsageError)
  await expect(tried({ budget: 1e6, all: true })).rejects.toThrow('budget: has no meaning with all')
})

describe('any log, any budget', () => {
  const budgets = fc.oneof(fc.integer({ min: 1, max: 20_000 }), fc.integer({ min: 20_000, max: 400_000 }))

  inLong(test)('read twice: sums, calls and size', async () => {
    await fc.assert(
      fc.asyncProperty(randomLog, budgets, async (of, budget) => {
        const input = { name: 'log', source: bytesOf(of) }
        const [full, thin] = [await made(input, { all: true }), await made(input, { budget })]
        sameSums(thin, full)
        const least = await converted(input, { budget: 1 })
        expect(thin.bytes).toBeLessThan(Math.max(budget, least.trace.length) * 1.1 + OVERHEAD_BYTES)
      }),
      { numRuns: 50, endOnFailure: true },
    )
  })

  inParts(test)('read once: sums and calls', async () => {
    await fc.assert(
      fc.asyncProperty(randomLog, budgets, fc.constantFrom('shapes', 'full'), async (of, budget, detail) => {
        const bytes = bytesOf(of)
        const full = await made({ name: 'log', source: bytes }, { all: true, detail } as const)
        sameSums(await made(piped(bytes), { budget, detail } as const), full)
      }),
      { numRuns: isLong ? 50 : 3, endOnFailure: true },
    )
  })
})
