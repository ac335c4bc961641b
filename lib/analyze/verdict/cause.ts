import type { Analysis, Finding } from '../analysis.ts'
import { type Limit, phasesOf } from '../findings/rule.ts'
import type { RequestParts } from '../requests/figures.ts'
import type { RunVerdictCause } from './figures.ts'

/** Findings that name no cause: what a machine allows, and what is missing in a log. */
const NO_CAUSES = ['roofline', 'losses']

const SHARE: Limit = { value: 0.1, why: 'of the time that is asked about: what takes less of it is not why it is long' }

/** The finding with the most time, with its share of the time that is asked about. */
export interface Cause {
  readonly finding: Finding
  readonly typed: RunVerdictCause
}

/** The largest cause that can be removed, of so much time; undefined where something else takes the larger part of that. */
function causeIn({ findings }: Analysis, timeOf: (finding: Finding) => number): Cause | undefined {
  const finding = findings.find(
    ({ rule, time_ns, confidence }) => !NO_CAUSES.includes(rule) && time_ns > 0 && confidence !== 'low',
  )
  if (!finding) return undefined
  const { rule, time_ns, confidence } = finding
  const allNs = timeOf(finding)
  const share = allNs > 0 ? Math.min(1, time_ns / allNs) : null
  if (share !== null && share < SHARE.value) return undefined
  return { finding, typed: { rule, time_ns, share, confidence } }
}

/** Of the time of calls: those of a finding's phase, else all. */
export const causeOfCalls = (analysis: Analysis): Cause | undefined =>
  causeIn(analysis, ({ evidence }) => {
    const phases = phasesOf(analysis)
    const own = phases.find(({ phase }) => phase === evidence['phase'])
    return own?.time_ns ?? phases.reduce((sum, { time_ns }) => sum + time_ns, 0)
  })

const UNNAMED: Limit = { value: 0.5, why: 'of the time without work: the larger part of it has another reason' }

/** Of the time of a device. */
export function causeOfDevice(analysis: Analysis, busyNs: number, allNs: number): Cause | undefined {
  const cause = causeIn(analysis, () => allNs)
  return cause && cause.typed.time_ns >= UNNAMED.value * (allNs - busyNs) ? cause : undefined
}

/** Parts of the latency of requests that are compared with each other. */
const PARTS = {
  queue: ['call_wait_ns', 'deferred_ns', 'queued_ns'],
  prompt: ['prepare_ns', 'prefill_ns'],
  tokens: ['decode_ns', 'draft_ns', 'verify_ns', 'sample_ns', 'text_ns'],
  others: ['stalled_ns'],
  preempted: ['preempted_ns'],
} as const satisfies Readonly<Record<string, readonly (keyof RequestParts)[]>>

type Part = keyof typeof PARTS

/** Parts in which the time of a rule's findings is. */
const PARTS_OF_RULE: Readonly<Record<string, readonly Part[]>> = {
  'queue-time': ['queue'],
  'request-stalled': ['others'],
  'prompt-processed-again': ['prompt'],
  'context-growth': ['tokens'],
  'slow-grammar': ['tokens'],
  'slow-samplers': ['tokens'],
  'speculation-slower': ['tokens'],
}
/** The same by the phase of a finding: others wait for prompts. */
const PARTS_OF_PHASE: Readonly<Record<string, readonly Part[]>> = {
  prefill: ['prompt', 'others', 'preempted'],
  decode: ['tokens', 'preempted'],
}

/** Of the latencies of requests: the cause is in the largest of their parts. */
export function causeOfRequests(analysis: Analysis): Cause | undefined {
  const { parts, latency_ns } = analysis.requests!
  const cause = causeIn(analysis, () => latency_ns)
  if (!cause) return undefined
  const { rule, evidence } = cause.finding
  const own = PARTS_OF_RULE[rule] ?? PARTS_OF_PHASE[`${evidence['phase']}`]
  if (!own) return cause
  const timeOf = (part: Part) => PARTS[part].reduce((sum, key) => sum + (parts[key] ?? 0), 0)
  const ownNs = own.reduce((sum, part) => sum + timeOf(part), 0)
  const isLargest = (Object.keys(PARTS) as Part[]).every((part) => own.includes(part) || timeOf(part) <= ownNs)
  return isLargest ? cause : undefined
}
