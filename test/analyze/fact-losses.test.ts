import { expect, test } from '@jest/globals'
import { describeLosses } from '../../bin/summary.ts'
import { findings } from '../../lib/analysis.ts'
import { type Analysis, analyze, convert } from '../../lib/index.ts'
import { appendedFacts } from '../../lib/log/ggtrace-appended.ts'
import { ISSUES, type IssueCode, type LostKind } from '../../lib/model/issues.ts'
import { inputOf, openTrace } from '../../lib/node.ts'
import { pathOf } from '../line/support.ts'
import { begun, joined, runCalls } from '../read/ggtrace-logs.ts'
import { decodes, madeRun } from './findings/made-run.ts'

/** What a recorder counts or names as missing in a fact of its log is a loss like any other, wherever losses are shown. */

interface Missing {
  readonly fact: readonly [key: string, value: string]
  readonly code: IssueCode
  readonly detail: string
  readonly lost: readonly LostKind[]
}

const missing = (key: string, value: string, code: IssueCode, detail: string, ...lost: LostKind[]): Missing => ({
  fact: [key, value],
  ...{ code, detail, lost },
})

const CASES: readonly Missing[] = [
  missing(
    'functions.left_out',
    '15904 conversions of a token to text: more than 1024 between two calls',
    ...(['left-out-functions', '15904 conversions of a token', 'functions'] as const),
  ),
  missing('gpu.without_times', '13', 'lost-gpu-work', '13 pieces of work of a GPU without times', 'gpu'),
  missing('gpu.without_launch', '1', 'gpu-work-without-launch', '1 piece of work of a GPU without', 'gpu'),
  missing('program.copies', 'ggml_backend_dev_supports_op', 'unseen-calls', 'calls of ggml_backend_dev_', 'placement'),
  missing('program.copies', 'llama_decode; ggml_free', 'unseen-calls', 'llama_decode, ggml_free', 'calls', 'functions'),
  missing('program.copies', 'ggml_backend_graph_compute', 'unseen-calls', 'ggml_backend_graph', 'graphs'),
  missing('program.copies', 'ggml_barrier', 'unseen-calls', 'ggml_barrier', 'operators'),
  missing('program.copies', 'ggml_backend_tensor_set', 'unseen-calls', 'tensor_set', 'copies'),
  missing('program.copies', 'ggml_backend_buffer_free', 'unseen-calls', 'buffer_free', 'memory'),
  missing('calls.left_out', 'calls by a thread', 'unseen-calls', 'calls by a thread', 'calls', 'graphs', 'operators'),
  missing('numa.missing', 'pages: move_pages(2) fails', 'unseen-pages', 'move_pages(2) fails', 'pages'),
  missing('states.end', 'the rest may be missing', 'states-end', 'the rest may be missing', 'states'),
]

/** A run whose recorder wrote the fact at its start, or at its end. */
function logWith([key, value]: Missing['fact'], isLast: boolean) {
  const writer = begun(isLast ? {} : { [key]: value })
  runCalls(writer, [5, 1, 1], 1)
  writer.end(1e6)
  const log = writer.take()
  return { name: 'log', source: isLast ? joined([log, appendedFacts({ [key]: value })]) : log }
}

test.each(CASES.flatMap((of) => [false, true].map((isLast) => ({ ...of, isLast, name: of.fact.join(' ') }))))(
  '$name, last: $isLast: is in the summary, the statistics and the trace',
  async ({ fact, isLast, code, detail, lost }) => {
    const pieces: Uint8Array[] = []
    const converted = convert(logWith(fact, isLast))
    let next = await converted.next()
    for (; !next.done; next = await converted.next()) pieces.push(next.value)
    const [summary] = next.value
    expect(summary!.issues).toEqual([expect.objectContaining({ code, count: 1, is_loss: true })])
    expect(describeLosses(summary!)).toMatch(/^1 loss\b/)
    const analysis = await analyze(logWith(fact, isLast))
    expect(analysis.run.losses).toEqual({ [code]: 1 })
    expect(analysis.inputs.map(({ losses }) => losses)).toEqual([[{ code, count: 1, lost }]])
    expect(analysis.findings.map(({ rule }) => rule)).toContain('losses')
    const trace = await openTrace(joined(pieces))
    try {
      const sql = `select name, extract_arg(arg_set_id, 'debug.detail') from slice where category = 'issue'`
      const { rows } = await trace.query(sql)
      expect(rows).toEqual([[ISSUES[code].title, expect.stringContaining(detail)]])
    } finally {
      trace.close()
    }
  },
)

test('no such facts are no losses, and small errors of the clock no issues', async () => {
  for (const fact of [
    ['clock.error_ns', '890'],
    ['program.functions', '57'],
    ['nvtx.emitted', 'tokens'],
    ['program.refused', 'llama_tokenize: its code jumps back to its begin'],
  ] as const) {
    const { run, inputs } = await analyze(logWith(fact, false))
    expect([run.losses, inputs[0]!.issues]).toEqual([{}, {}])
  }
  const { run, inputs } = await analyze(logWith(['clock.error_ns', '2500000'], true))
  expect([run.losses, inputs[0]!.issues]).toEqual([{}, { 'clock-corrected': 1 }])
})

/** Findings of a run with a loss. */
const found = (analysis: Analysis, code: IssueCode) => {
  const losses = [{ code, count: 1, lost: ISSUES[code].lost! }]
  const [first, ...others] = analysis.inputs
  return findings({ ...analysis, inputs: [{ ...first!, losses }, ...others] })
}
const confidences = (of: readonly { readonly rule: string; readonly confidence: string }[], isMeant: RegExp) =>
  of.filter(({ rule }) => isMeant.test(rule)).map(({ confidence }) => confidence)

test('less sure are findings of what is missing, and no others', async () => {
  const steps = [{ name: 'ffn-0', op: 'MUL_MAT', ns: [60_000, 100_000] }]
  const waiting = await analyze(madeRun({ calls: decodes(20, steps), attributes: { cpus: '4' }, gapNs: 90_000 }))
  const isOfWorkers = /^(barrier-wait|unbalanced-op)$/
  expect(confidences(waiting.findings, /^between-calls$/)).toEqual(['high'])
  expect(confidences(found(waiting, 'left-out-functions'), /^between-calls$/)).toEqual(['low'])
  expect(confidences(found(waiting, 'left-out-functions'), isOfWorkers)).toEqual(['high'])
  expect(confidences(found(waiting, 'states-end'), isOfWorkers)).toEqual(['high'])

  const launches = await analyze(inputOf(pathOf('nsys/one-gpu.sqlite.gz')))
  const isOfGpu = /^gpu-/
  const sure = confidences(launches.findings, isOfGpu)
  expect(sure.length).toBeGreaterThan(0)
  for (const code of ['lost-gpu-work', 'gpu-work-without-launch'] as const)
    expect(confidences(found(launches, code), isOfGpu)).toEqual(sure.map(() => 'low'))
})
