import { expect, test } from '@jest/globals'
import { GgtraceWriter } from '../../lib/core.ts'
import type { ConvertOptions } from '../../lib/index.ts'
import { convert, type Input } from '../../lib/index.ts'
import { inputOf, openTrace } from '../../lib/node.ts'
import { inLong, inParts, someOf } from '../long.ts'

/** Short waits at barriers are gaps between operators: views have the same rows as of a trace in which all are drawn. */

const VIEWS = `INCLUDE PERFETTO MODULE ggml.waits; INCLUDE PERFETTO MODULE ggml.workers; INCLUDE PERFETTO MODULE ggml.sums;`
const QUESTIONS = [
  'select min(ts), sum(dur), worker, op, role, call, phase from ggml_waits group by operator_id order by worker, min(ts)',
  // Shorter ones have no parts, unless all are drawn.
  `select worker, ts, sum(iif(part = 'open', dur, 0)), count(part) > 0 from (
     select *, sum(dur) over (partition by operator_id) as whole from ggml_waits) where whole >= 1000 and dur > 1 group by operator_id, part order by 1, 2`,
  'select ts, dur, worker, name, wait_dur from ggml_operators order by worker, ts, dur',
  'select worker, call, operators, operator_dur, wait_dur from ggml_worker_calls order by 1, 2',
  'select worker, phase, idle_dur, wait_share from ggml_workers_by_phase order by 1, 2',
  'select worker, phase, what, name, count, dur from ggml_time_by_name order by 1, 2, 3, 4',
]

async function answers(input: Input, options: ConvertOptions) {
  const trace = await openTrace(convert(input, options))
  try {
    expect(trace.problems()).toEqual([])
    const drawn = Number(trace.query("select count(*) from slice where category = 'barrier'").rows[0]![0])
    return { drawn, rows: QUESTIONS.map((sql) => trace.query(`${VIEWS} ${sql}`).rows) }
  } finally {
    trace.close()
  }
}

async function expectSame(input: () => Input, options: ConvertOptions = {}): Promise<number> {
  const all = await answers(input(), { ...options, barriers: 'all' })
  const long = await answers(input(), options)
  expect(long.rows).toEqual(all.rows)

  return all.drawn - long.drawn
}

const LOGS: readonly (readonly [path: string, least: number])[] = [
  ['examples/moe.ggtrace.gz', 1000],
  ['examples/qwen2.ggtrace.gz', 0],
  ['test/fixtures/profinfer-csv/moe-2threads.csv.gz', 100],
  ['test/fixtures/tensor-trace/tiny-v4.bin', 0],
]
inParts(test).each(someOf(LOGS, 2, 1))('of %s', async (path, least) => {
  for (const detail of ['names', 'shapes'] as const)
    expect(await expectSame(() => inputOf(path), { detail })).toBeGreaterThanOrEqual(least)
})

inLong(test)('of a long run of which most calls are summed up, though more of them fit in full', async () => {
  const sums = async (barriers: 'long' | 'all') => {
    const trace = await openTrace(convert(inputOf('examples/moe.ggtrace.gz'), { budget: 200_000, barriers }))
    const sql = `${VIEWS} select worker, what, name, sum(count), sum(dur) from ggml_time_by_name group by 1, 2, 3 order by 1, 2, 3`
    const { rows } = trace.query(sql)
    expect(trace.query("select count(*) from slice where category = 'barrier_sum'").rows).not.toEqual([[0]])
    trace.close()
    return rows
  }
  expect(await sums('long')).toEqual(await sums('all'))
})

test('pauses that are as short as a wait are none, before and after the first wait that is drawn', async () => {
  const writer = new GgtraceWriter({ originNs: 1_000_000_000n })
  writer.run({ 'format.version': '0' })
  writer.type(0, 'f32')
  writer.op(2, 'ADD')
  const tensor = writer.tensor({ name: 'a-0', op: 2 })
  const thread = writer.thread(7, 0)
  let atNs = 0
  const operator = (pauseNs: number, waitNs: number) => {
    const startNs = atNs + pauseNs
    atNs = startNs + 100 + waitNs
    thread.operator({ tensor, startNs, endNs: startNs + 100, waitEndNs: atNs })
  }
  const lengths = [0, 0, 20, 999, 1000, 5000, 0, 300]
  for (const pauseNs of lengths) for (const waitNs of lengths) operator(pauseNs, waitNs)
  writer.end(atNs)
  const bytes = writer.take()
  const input = () => ({ name: 'log', source: bytes })
  for (const detail of ['names', 'shapes', 'full'] as const)
    expect(await expectSame(input, { detail })).toBe(detail === 'full' ? 0 : 7)
})
