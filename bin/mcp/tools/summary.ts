import type { Analysis } from '../../../lib/cli.ts'
import { ANSWER_BYTES, type Answer, bytesOf, callOf, shortened } from '../answer.ts'
import { type Document, documentOf, isAnalysis, verdictOf } from '../documents.ts'
import { LOGS, list, object, type Tool } from '../tool.ts'

interface Arguments {
  readonly logs: readonly string[]
}

/** Findings and missing figures that a first answer names. */
const NAMED = 4

/** The tool `summary`. */
export const summaryTool: Tool<Arguments> = {
  name: 'summary',
  title: 'Summary of a run',
  description:
    'Call this first. How fast the run was, and its largest cause of slowness, in one sentence; what ran; what is not known. Then call `why`.',
  input: { logs: LOGS },
  required: ['logs'],
  evidence: {
    verdict: object('The verdict of the Analysis: rate, ceiling, cause, confidence; hint: how to get what is missing'),
    findings: list('Rule, sentence, time and confidence of the first findings'),
    findings_count: { type: 'integer', description: 'Number of findings' },
    calls: object('Calls: TTFT, TPOT, tok/s'),
    run: object('What ran, where'),
    losses: object('Records that are missing, by issue'),
    not_known: list('Figures that the logs cannot give, and why: the first ones'),
    not_known_count: { type: 'integer', description: 'Number of these figures' },
  },
  isReadOnly: true,
  async run({ logs }, session, call) {
    const document = await documentOf(logs, session, call)
    const { findings } = document
    const next = [
      findings.length > 0
        ? callOf('why', { logs }, 'the findings, with evidence and what to do')
        : callOf('why', { logs }, 'what was looked at, and is no finding'),
      callOf('stats', { logs }, 'the sections of all figures'),
    ]
    const check = [callOf('stats', { logs, section: 'verdict' }, 'the same verdict in the Analysis')]
    const answerOf = (parts: readonly [string, unknown][], left: number): Answer => ({
      verdict: verdictOf(document),
      evidence: Object.fromEntries(parts),
      ...{ check, next },
      left: left > 0 ? { what: 'parts', count: left, next: next.at(-1)! } : null,
    })
    const parts = partsOf(document)
    const shown: [string, unknown][] = []
    for (const part of parts) if (bytesOf(answerOf([...shown, part], parts.length)) <= ANSWER_BYTES) shown.push(part)
    return shortened(answerOf(shown, parts.length - shown.length))
  },
}

/** Parts of the answer, the most important first. */
function partsOf(document: Document): [string, unknown][] {
  const named = document.findings
    .slice(0, NAMED)
    .map(({ rule, sentence, time_ns, confidence }) => ({ rule, sentence, time_ns, confidence }))
  const findings: [string, unknown][] = [
    ['findings', named],
    ['findings_count', document.findings.length],
  ]
  const { undetermined } = document
  const notKnown: [string, unknown][] = [
    ['not_known_count', undetermined.length],
    ['not_known', undetermined.slice(0, NAMED).map(({ what, why }) => ({ what, why }))],
  ]
  if (!isAnalysis(document)) return [...findings, ['run', { runs: document.runs.length }], ...notKnown]
  return [
    ['verdict', document.verdict],
    ...findings,
    ['losses', document.run.losses],
    ['calls', callsOf(document)],
    ['run', runOf(document)],
    ...notKnown,
  ]
}

function callsOf({ calls }: Analysis) {
  const { count, by_phase, failed, ttft_ns, tpot_ns, decode_tokens_per_s, prefill_tokens_per_s } = calls
  return { count, by_phase, failed, ttft_ns, tpot_ns, decode_tokens_per_s, prefill_tokens_per_s }
}

function runOf({ run }: Analysis) {
  const { command, model, cpu, cpus, workers, backends, version, level } = run
  return { command, model, cpu, cpus, workers, backends, version, level }
}
