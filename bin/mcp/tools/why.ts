import { type Analysis, type Finding, lookedAt, UsageError } from '../../../lib/cli.ts'
import { type Answer, callOf, type ToolCall, withMost } from '../answer.ts'
import { documentOf, isAnalysis, verdictOf } from '../documents.ts'
import { type Call, FROM, LOGS, list, object, placesOf, runOn, type Session, type Tool, whole } from '../tool.ts'

interface Arguments {
  readonly logs: readonly string[]
  readonly from?: number
  readonly request?: number
  readonly task?: number
}

/** The tool `why`. */
export const whyTool: Tool<Arguments> = {
  name: 'why',
  title: 'Why the run was slow',
  description:
    'Findings: what made the run slow, most time first, each with evidence, confidence, what to do, and a check. No findings: the figures that ' +
    'were looked at. With `request` or `task`: what the time of one answer of a server went to.',
  input: {
    logs: LOGS,
    from: FROM,
    request: whole('The number of a request in the log', 1),
    task: whole("The number of the server's task of a request"),
  },
  required: ['logs'],
  evidence: {
    findings: list('Findings, as `why --json` prints them'),
    from: { type: 'integer', description: 'The number of the first of them, from 0' },
    looked_at: list('Without findings: figures below the limits of their rules'),
    answer: object('Of one request: its parts, as `why --request --json` prints them'),
  },
  isReadOnly: true,
  async run(args, session, call) {
    if (args.request !== undefined || args.task !== undefined) return ofRequest(args, session, call)
    const { logs, from = 0 } = args
    const document = await documentOf(logs, session, call)
    const { findings } = document
    if (from > 0 && from >= findings.length)
      throw new UsageError(`from ${from}: expected a number below that of findings, found ${findings.length} of them`)
    if (findings.length === 0) return withoutFindings(document as Analysis, logs)
    return withMost(findings.slice(from), (shown) => {
      const count = findings.length - from - shown.length
      const next = callOf('why', { logs, from: from + shown.length }, 'the next findings')
      const checks = shown.map((finding, i) => checkOf(finding, from + i, logs))
      return {
        verdict: verdictOf(document),
        evidence: { from, findings: shown },
        check: checks.slice(0, 1),
        next: [...(count > 0 ? [next] : []), ...checks.slice(1, 2), ...moreOf(logs)],
        left: count > 0 ? { what: 'findings', count, next } : null,
      }
    })
  },
}

const moreOf = (logs: readonly string[]): ToolCall[] => [
  callOf('stats', { logs, by: ['role', 'op'] }, 'which operators take the time'),
  callOf('open', { logs }, 'a timeline for people'),
]

/** How a finding is checked: its SQL on the trace of the same logs, or statistics. */
function checkOf({ check, rule }: Finding, index: number, logs: readonly string[]): ToolCall {
  if (check.sql !== undefined)
    return callOf('query', { logs, finding: index }, `${rule}: its figure ${check.evidence} by SQL on the trace`)
  return callOf('stats', { logs }, `${rule}: ${check.evidence}, by ${check.command}`)
}

function withoutFindings(analysis: Analysis, logs: readonly string[]): Answer {
  const looked = isAnalysis(analysis)
    ? lookedAt(analysis).flatMap(({ rule, figures }) => figures.map(({ figure }) => ({ rule, figure })))
    : []
  return withMost(looked, (shown) => {
    const count = looked.length - shown.length
    return {
      verdict: verdictOf(analysis),
      evidence: { from: 0, findings: [], looked_at: shown },
      check: [callOf('stats', { logs, section: 'verdict' }, 'the verdict, with its confidence')],
      next: moreOf(logs),
      left: count > 0 ? { what: 'figures below their limits', count, next: moreOf(logs)[0]! } : null,
    }
  })
}

async function ofRequest({ logs, request, task }: Arguments, session: Session, call: Call): Promise<Answer> {
  const places = await placesOf(logs, session)
  const which = [...(request === undefined ? [] : ['--request', `${request}`])]
  if (task !== undefined) which.push('--task', `${task}`)
  const args = ['why', ...places.map(({ path }) => path), ...which, '--json']
  const { reasons, ...rest } = JSON.parse((await runOn(places, args, session, call)).stdout) as {
    readonly reasons: readonly { readonly sentence: string }[]
  }
  return withMost(reasons, (shown) => {
    const count = reasons.length - shown.length
    const next = callOf('stats', { logs, section: 'requests' }, 'the figures of all requests')
    return {
      verdict: reasons[0]?.sentence ?? 'no part of its time is unusual',
      evidence: { answer: { ...rest, reasons: shown } },
      check: [next],
      next: [callOf('why', { logs }, 'the findings of the whole run')],
      left: count > 0 ? { what: 'reasons', count, next } : null,
    }
  })
}
