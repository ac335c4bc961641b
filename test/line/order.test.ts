import { createHash } from 'node:crypto'
import { describe, expect, it } from '@jest/globals'
import { type AnalyzeOptions, analyze, convert, type LogInput, UsageError } from '../../lib/index.ts'
import { tablesOf } from '../../lib/tables.ts'
import { plainBytes } from './support.ts'

/** The inputs of a run: in each order, the same trace, Analysis, tables, or the same error. */

const log = (fixture: string, name = fixture): LogInput => ({ name, source: plainBytes(fixture) })
const text = (name: string, ...lines: readonly object[]): LogInput => {
  const source = new TextEncoder().encode(lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
  return { name, source }
}
const buffers = text('buffer_stats.jsonl', {
  ...{
    timestamp_ms: 600604880.5,
    event: 'alloc',
    buffer_id: 93901530271744,
    size: 12288,
    name: 'CPU_Compute',
    usage: 2,
  },
})

const RUNS: Readonly<Record<string, { readonly inputs: readonly LogInput[]; readonly options?: AnalyzeOptions }>> = {
  'a log and its recording of the scheduler': {
    inputs: [log('session/run.ggtrace.gz'), log('session/run.sched.dat.gz')],
  },
  'operators and calls of two scripts, and the scheduler': {
    inputs: [log('bpftrace/op.txt'), log('bpftrace/token.txt'), log('bpftrace/sched.txt')],
  },
  'a log, what completes it, and the scheduler': {
    inputs: [log('tensor-trace/tiny-v4.bin'), buffers, log('bpftrace/sched.txt')],
    options: { clocks: { 'bpftrace/sched.txt': '@600604.9s' } },
  },
  'calls, and power on a clock that the user moves': {
    inputs: [log('bpftrace/token.txt'), log('power/power.csv'), log('llama-log/vulkan.log')],
    options: { clocks: { 'power/power.csv': '+1ms', 'llama-log/vulkan.log': '@5s' } },
  },
  'the log is moved': {
    inputs: [log('ggtrace/tiny.ggtrace'), log('power/power.csv')],
    options: { clocks: { 'tiny.ggtrace': '+1s' } },
  },
  'two processes': { inputs: [log('ggtrace/tiny.ggtrace', 'b'), log('ggtrace/tiny.ggtrace', 'a')] },
  'no relation': { inputs: [log('perf-script/default.txt'), log('ggtrace/tiny.ggtrace')] },
}

const permutations = <T>(all: readonly T[]): T[][] =>
  all.length < 2 ? [[...all]] : all.flatMap((one, i) => permutations(all.toSpliced(i, 1)).map((rest) => [one, ...rest]))

/** A hash of all bytes, or the error that a user gets. */
const hashed = async (pieces: AsyncIterable<Uint8Array>) => {
  const hash = createHash('sha256')
  try {
    for await (const piece of pieces) hash.update(piece)
  } catch (error) {
    if (error instanceof UsageError) return error.message
    throw error
  }
  return hash.digest('hex')
}

async function* document(inputs: readonly LogInput[], options: AnalyzeOptions) {
  yield new TextEncoder().encode(JSON.stringify(await analyze(inputs, options)))
}

async function* tables(inputs: readonly LogInput[], options: AnalyzeOptions) {
  const pieces = tablesOf(inputs, { ...options, traceId: '0'.repeat(32) }, { name: 'test', version: '1' })
  for await (const { table, bytes } of pieces) {
    yield new TextEncoder().encode(table)
    yield bytes
  }
}

describe.each(Object.entries(RUNS))('%s', (_, { inputs, options = {} }) => {
  it.each([
    ['trace', convert],
    ['Analysis', document],
    ['tables', tables],
  ] as const)('have one %s', async (_, of) => {
    const all = new Set<string>()
    for (const order of permutations(inputs)) all.add(await hashed(of(order, options)))
    expect([...all]).toHaveLength(1)
  })
})

it('a log, its buffers and the scheduler: allocations are the log’s', async () => {
  const { inputs, options } = RUNS['a log, what completes it, and the scheduler']!
  const { memory } = await analyze(inputs, options)
  expect(memory?.allocations).toMatchObject({ peak_bytes: 12288 })
})

it('the run is the log with calls, whatever else is drawn', async () => {
  const { inputs, options } = RUNS['calls, and power on a clock that the user moves']!
  const analysis = await analyze(inputs, options)
  expect(analysis.calls.contexts.length).toBeGreaterThan(0)
})
