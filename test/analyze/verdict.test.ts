import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { type PeakFigures, type Roofline, readAnalysis } from '../../lib/analysis.ts'
import { type Analysis, analyze, type EventInput, type Input, summarize } from '../../lib/index.ts'
import { inputOf } from '../../lib/node.ts'
import { ROOT } from '../tables/of-logs.ts'
import { decodes, madeRun } from './findings/made-run.ts'

/** Each form of the verdict: of fixtures, and of runs with a planted cause. Recorded ones with a cause: test/native/findings.test.ts. */

const verdictOf = async (path: string) => (await analyze(inputOf(join(ROOT, path)))).verdict
const ofRun = async (run: EventInput) => (await analyze(run)).verdict

const STEPS = [{ name: 'ffn_up-0', op: 'MUL_MAT', ns: [1e6, 1e6] }] as const
const QUIET = madeRun({ calls: [{ phase: 'prefill', tokens: 4, steps: STEPS }, ...decodes(12, STEPS)] })

const PEAKS: PeakFigures = {
  ...{ device: null, flop_per_s: 1e12, flop_type: 'any', int8_op_per_s: null, bytes_per_s: 2e10 },
  ...{ origin: 'given', source: 'a test' },
}

/** The same with figures that a large model has: bytes and FLOP of decode calls of 1 ms; judged anew. */
async function withWork(run: Input, more: Partial<Roofline>, change: Partial<Analysis['calls']> = {}) {
  const { verdict: _, ...analysis } = await analyze(run, { peaks: PEAKS })
  const line: Roofline = {
    ...{ scope: 'phase', what: 'decode', backend: null, phase: 'decode', count: 12, time_ns: 12e6 },
    ...{ flop: 12e8, bytes: 12 * 1e8, bytes_are_max: false, flop_per_s: 1e11, bytes_per_s: 1e11, intensity: 1 },
    ...{ peak_flop_per_s: 1e13, peak_bytes_per_s: 2e11, ridge: 50, attainable_flop_per_s: 2e11 },
    peak_threads: null,
    ...{ mfu_share: 0.01, mbu_share: 0.5, roof_share: 0.5, bound: 'memory', margin: 0.02, note: null, ...more },
  }
  const calls = { ...analysis.calls, ...change }
  const document = { ...analysis, calls, rooflines: [line] }
  return (await readAnalysis(JSON.stringify(document))).verdict
}

describe('decode', () => {
  test('without anything unusual: never without a figure; peaks unknown: no ceiling', async () => {
    const verdict = await ofRun(QUIET)
    expect(verdict).toMatchObject({ subject: 'decode', unit: 'tok/s', cause: null, ceiling: null, confidence: 'high' })
    expect(verdict.sentence).toMatch(/^nothing unusual: decode [\d ]+ tok\/s$/)
    expect(verdict.hint).toBeNull()
  })

  test('a cause: the finding with most time, with its share of the calls', async () => {
    const calls = decodes(12, STEPS, { outsideNs: 1e6 })
    const analysis = await analyze(madeRun({ calls }))
    expect(analysis.findings[0]).toMatchObject({ rule: 'outside-graphs', time_ns: 12e6 })
    expect(analysis.verdict.cause).toEqual({ rule: 'outside-graphs', time_ns: 12e6, share: 0.5, confidence: 'high' })
    expect(analysis.verdict.sentence).toBe(
      `decode ${Math.round(analysis.calls.decode_tokens_per_s!)} tok/s; ${analysis.findings[0]!.sentence}`,
    )
  })

  test('with peaks of a real log, and how to get them without', async () => {
    const log = () => inputOf(join(ROOT, 'examples/moe.ggtrace.gz'))
    expect((await analyze(log())).verdict.hint).toMatch(/ggml2perfetto stats <logs> --peaks measure/)
    const known = (await analyze(log(), { peaks: PEAKS })).verdict
    // The weights of this model are smaller than the caches of CPUs.
    expect([known.hint, known.ceiling]).toEqual([null, null])
  })

  test('far from the ceiling without a cause, near it, and beyond it', async () => {
    const far = await withWork(QUIET, {})
    expect([far.ceiling, far.ceiling_by]).toEqual([2000, 'memory'])
    expect(far.ceiling_share).toBeCloseTo(far.rate! / 2000)
    expect(far.sentence).toMatch(
      /^decode 999 tok\/s, 50 % of the 2 000 tok\/s that this machine's memory allows; no cause was found$/,
    )
    const near = await withWork(QUIET, { attainable_flop_per_s: 1.1e11 })
    expect(near.sentence).toMatch(
      /^decode 999 tok\/s, 91 % of the 1 100 tok\/s that this machine's memory allows: smaller weights, a batch or speculation would help; more threads would not$/,
    )
    const computing = await withWork(QUIET, { attainable_flop_per_s: 1.1e11, ridge: 0.5 })
    expect(computing.sentence).toMatch(/that this machine's arithmetic allows: more or faster cores/)
    expect((await withWork(QUIET, { note: 'more bytes than the peak allows' })).ceiling).toBeNull()
    expect((await withWork(QUIET, { bytes_are_max: true })).ceiling).toBeNull()
    expect((await withWork(QUIET, { attainable_flop_per_s: 9e10 })).ceiling).toBeNull()
  })

  test('of one thread, and beside a program that takes the CPU', async () => {
    const alone = await withWork(QUIET, { peak_threads: 1 })
    expect(alone.sentence).toMatch(
      /^decode 999 tok\/s, 50 % of the 2 000 tok\/s that this machine's memory allows to one thread; /,
    )
    expect(alone.ceiling_running_share).toBeNull()
    const log = inputOf(join(ROOT, 'test/recorded/preempted.ggtrace.gz'))
    const { scheduling } = await analyze(log)
    const { preempted_ns, call_time_ns } = scheduling!.workers.find(({ phase }) => phase === 'decode')!
    expect(preempted_ns / call_time_ns).toBeCloseTo(0.82, 2)
    const beside = await withWork(log, { attainable_flop_per_s: 1e12 })
    expect(beside.ceiling_running_share! / beside.ceiling_share!).toBeCloseTo(1 / (1 - preempted_ns / call_time_ns))
    expect(beside.sentence).toMatch(
      / allows \([\d.]+ % while it had its CPUs\) \(only 2 calls were recorded\); worker 0 was preempted 82 % of decode$/,
    )
  })

  test('no ceiling where calls make more tokens than one, or other calls take a part of the time', async () => {
    const drafts = { drafted_tokens: 9, accepted_tokens: 3, acceptance_share: 1 / 3 }
    expect((await withWork(QUIET, {}, { drafts })).ceiling).toBeNull()
    const { calls } = await analyze(QUIET)
    const contexts = [calls.contexts[0]!, calls.contexts[0]!]
    expect((await withWork(QUIET, {}, { contexts })).ceiling).toBeNull()
  })

  test('losses make it doubtful: no ceiling, and no cause of low confidence', async () => {
    const verdict = await ofRun(madeRun({ calls: decodes(12, STEPS, { outsideNs: 1e6 }), losses: 1 }))
    expect(verdict).toMatchObject({ confidence: 'low', cause: null })
    expect(verdict.sentence).toMatch(/^decode 500 tok\/s \(1 loss in what it is computed from: /)
  })

  test('a finding of low confidence is no cause, and the run is not quiet', async () => {
    const { verdict: _, ...analysis } = await analyze(madeRun({ calls: decodes(12, STEPS, { outsideNs: 1e6 }) }))
    const findings = analysis.findings.map((finding) => ({ ...finding, confidence: 'low' }))
    const { verdict } = await readAnalysis(JSON.stringify({ ...analysis, findings }))
    expect(verdict).toMatchObject({ cause: null, sentence: 'decode 500 tok/s' })
  })

  test('few calls: they are named', async () => {
    expect((await verdictOf('test/fixtures/session/run.ggtrace.gz')).sentence).toBe(
      'decode 4 027 tok/s (only 6 calls were recorded); first token after 53.8 ms: worker 0 was preempted 52 % of prefill',
    )
  })

  test('without operators: how to see causes', async () => {
    const verdict = await verdictOf('test/fixtures/bpftrace/token.txt')
    expect(verdict.sentence).toBe('decode 842 tok/s (only 5 calls were recorded)')
    expect(verdict.hint).toMatch(/without operators: sudo ggml2perfetto record --attach <process id> --level op$/)
    const started = await ofRun(madeRun({ calls: decodes(12, []) }))
    expect(started.hint).toMatch(/without operators: ggml2perfetto record -- <program>/)
  })
})

test('prompts alone', async () => {
  expect(await verdictOf('test/fixtures/profinfer-csv/quoted-names.csv')).toMatchObject({
    subject: 'prompt',
    sentence: 'prompt processing 52 867 tok/s (only one call was recorded)',
    unit: 'tok/s',
  })
})

test('calls without a rate', async () => {
  const verdict = await ofRun(madeRun({ calls: decodes(12, STEPS).map((call) => ({ ...call, phase: 'encode' })) }))
  expect(verdict).toMatchObject({ subject: 'calls', rate: null })
  expect(verdict.sentence).toBe('nothing unusual: 12 encode calls in 12 ms')
})

test.each([
  ['v0.7.0-lv4.log', 'the slowest (task 64) took 548 ms (95 %) to generate 64 tokens'],
  ['v0.5.0-lv5.log', 'the slowest (task 4) waited 21 ms for a free slot'],
  ['v0.7.0-lv5.log', 'the slowest (task 5) waited 43 ms for the end of the running call'],
])('requests of a server: %s', async (name, why) => {
  const { verdict, requests } = await analyze(inputOf(join(ROOT, 'test/fixtures/server', name)))
  const { latency } = requests!.by_type.completion!
  expect(verdict).toMatchObject({ subject: 'requests', unit: 'ns', rate: latency!.p50_ns })
  expect(verdict.sentence).toMatch(
    new RegExp(
      `^${requests!.count} requests(?:; of ${latency!.count} completions)?, p50 [\\d.]+ ms, p99 [\\d.]+ ms: ${why.replaceAll(/[()]/g, '\\$&')}$`,
    ),
  )
})

test('slow loading is named with the time to the first token', async () => {
  const { verdict: _, ...analysis } = await analyze(inputOf(join(ROOT, 'examples/qwen2.ggtrace.gz')))
  const part = (what: string, time_ns: number | null, before_ns: number | null) => ({
    ...{ what, time_ns, share: null, before_ns, stages: [], is_inferred: false, findings: [] },
  })
  const parts = [part('load', 1.9e9, null), part('context', null, null), part('prefill', 4e8, 1e8)]
  const finding = {
    ...{
      rule: 'slow-load',
      sentence: 'loading takes 1.9 s',
      time_ns: 1.8e9,
      confidence: 'high',
      confidence_reason: '',
    },
    ...{ evidence: {}, check: { evidence: 'stage_ns' }, advice: '' },
  }
  const judged = async (shown: readonly object[]) => {
    const document = { ...analysis, first_token: { time_ns: 0, parts: shown }, findings: [finding] }
    return (await readAnalysis(JSON.stringify(document))).verdict.sentence
  }
  expect(await judged(parts)).toMatch(/tok\/s.*; first token after 2\.4 s: loading takes 1\.9 s$/)
  expect(await judged([part('load', null, null), ...parts.slice(1)])).toMatch(/; loading takes 1\.9 s$/)
})

test('one request', async () => {
  expect((await verdictOf('test/fixtures/server/drafts.log')).sentence).toBe(
    '1 request in 6 s: it took 4 s (67 %) to process 2 000 tokens of its prompt',
  )
})

test.each([
  [
    'nsys/one-gpu.sqlite.gz',
    /^GPU 0 busy 65 % of 43 ms: waits for launches 34 % of the time: 4 gaps with nothing launched$/,
  ],
  [
    'chrome-json/h100.json.gz',
    /^GPU 0: 17 pieces of work, [\d.]+ µs in all within [\d.]+ ms: too few for a judgement$/,
  ],
])('a GPU: %s', async (path, sentence) => {
  const { verdict } = await analyze(inputOf(join(ROOT, 'test/fixtures', path)))
  expect(verdict.sentence).toMatch(sentence)
  expect(verdict.unit).toBe(verdict.rate === null ? null : 'busy')
})

test('benchmarks', async () => {
  expect(await verdictOf('test/fixtures/llama-bench/tests.json')).toMatchObject({
    subject: 'benchmarks',
    sentence: 'pp32 23.3 tok/s, tg8 9.86 tok/s, pp16+tg4 23.2 tok/s, and 3 more tests',
  })
})

describe('cannot say', () => {
  const warmUp = { phase: 'warm-up', tokens: 2, steps: STEPS } as const

  test.each([
    [1, 'cannot say: 1 call recorded, and it is a warm-up'],
    [2, 'cannot say: 2 calls recorded, and all are warm-ups'],
  ])('%d warm-ups', async (count, sentence) => {
    const run = madeRun({ calls: Array.from({ length: count }, () => warmUp) })
    expect(await ofRun(run)).toMatchObject({ subject: 'none', sentence, rate: null, confidence: 'low' })
    expect((await summarize(run, { findings: true })).verdict!.sentence).toBe(sentence)
  })

  test('operators without calls', async () => {
    expect((await verdictOf('test/fixtures/bpftrace/op.txt')).sentence).toBe(
      'cannot say: no calls of llama.cpp were recorded; 80 operators took 1.65 ms',
    )
  })

  test('calls of CUDA without work of a GPU', async () => {
    const call = { ph: 'X', cat: 'cuda_runtime', name: 'cudaMalloc', pid: 1, tid: 2, ts: 10, dur: 8 }
    const trace = { schemaVersion: 1, deviceProperties: [], traceEvents: [call, { ...call, ts: 30 }] }
    const { verdict } = await analyze({ name: 'a.json', source: Buffer.from(JSON.stringify(trace)) })
    expect(verdict.sentence).toBe(
      "cannot say: no calls of llama.cpp were recorded; 2 calls of the GPU's library took 16 µs",
    )
  })
})

test('an Analysis of an earlier version, which has none, gets it when it is read', async () => {
  const { verdict, ...document } = await analyze(QUIET)
  expect((await readAnalysis(JSON.stringify(document))).verdict).toEqual(verdict)
})
