import type { Phase } from '../../model/events.ts'
import type { LostKind } from '../../model/issues.ts'
import { duration, plural } from '../../model/units.ts'
import type { Analysis, CallTime, Finding } from '../analysis.ts'
import type { OperatorRow } from '../operators/figures.ts'
import type { LeftOutCalls } from '../run/figures.ts'
import { CALLS, lossesOf } from '../run/losses.ts'
import type { Advice } from './program.ts'

/** A figure from which a rule makes a finding, and why just there: it is above what a quiet run shows. */
export interface Limit {
  readonly value: number
  readonly why: string
}

/** How sure a finding is. */
export type Confidence = Pick<Finding, 'confidence' | 'confidence_reason'>

/** Advice of one finding, in place of its rule's. */
export interface OwnAdvice {
  /** Where the rule's own depends on what was found. */
  readonly advice?: string | undefined
}

/** What a rule looked at. */
export interface Looked {
  /** The figure, in words; of a finding, its sentence. */
  readonly figure: string
  /** Undefined where the figure is within what a quiet run shows. */
  readonly finding?: (Omit<Finding, 'rule' | 'advice'> & OwnAdvice) | undefined
}

/** What a rule found: its sentence is the figure, unless it has one of its own. */
export const found = (
  figure: string,
  finding: Omit<Finding, 'rule' | 'advice' | 'sentence'> & OwnAdvice & { readonly sentence?: string },
): Looked[] => [{ figure, finding: { sentence: figure, ...finding } }]

/** A rule of the diagnosis: a pure function of the Analysis. docs/reference/findings.md describes all of them. */
export interface Rule<Of = Analysis> {
  readonly id: string
  readonly title: string
  readonly limits: Readonly<Record<string, Limit>>
  readonly advice: Advice
  /** Rules whose findings are consequences of this one: of those that explain no more time than it does, none is shown. */
  readonly covers?: readonly string[]
  /** Its findings are what the machine permits: no time that could be saved. */
  readonly isLimit?: boolean
  /** All figures that it looks at; none where the document does not contain them. */
  look(subject: Of): readonly Looked[]
}

/** Phases whose calls a rule looks at, those that make tokens. */
export const RULE_PHASES = ['decode', 'mixed', 'prefill', 'encode', 'compute'] as const satisfies readonly Phase[]

/** The times of phases, the longest first. */
export function phasesOf({ call_time }: Analysis): CallTime[] {
  return call_time
    .filter(({ phase, time_ns }) => time_ns > 0 && (RULE_PHASES as readonly Phase[]).includes(phase))
    .sort((a, b) => b.time_ns - a.time_ns)
}

/** Time of parts of a phase's calls, in ns. */
export function partsNs({ parts }: CallTime, ...what: readonly CallTime['parts'][number]['what'][]): number {
  return parts.filter((part) => what.includes(part.what)).reduce((sum, { time_ns }) => sum + time_ns, 0)
}

/** Confidence in figures of these calls: losses of what they are made of (`kinds`) make them doubtful, few calls too. */
export function confidenceOf(analysis: Analysis, calls: number, kinds: readonly LostKind[] = CALLS): Confidence {
  const lost = lossesOf(analysis, kinds)
  if (lost > 0) return doubtful(lost)
  const { left_out } = analysis.run
  if (left_out && left_out.calls > 0) return { confidence: 'medium', confidence_reason: ofSlowCalls(left_out) }
  if (calls < FEW)
    return {
      confidence: 'medium',
      confidence_reason: calls === 1 ? 'only one call was recorded' : `only ${plural(calls, 'call')} were recorded`,
    }
  return { confidence: 'high', confidence_reason: `measured in ${calls} calls, none of which is lost` }
}

/** Of the waits of operators at barriers: the time in which all workers of their call were blocked at once, summed over workers. */
export const stoppedIn = (rows: readonly Pick<OperatorRow, 'wait_stopped_ns'>[]): number =>
  rows.reduce((sum, { wait_stopped_ns = 0 }) => sum + wait_stopped_ns, 0)

/** What the figures of a log of slow calls are of. */
const ofSlowCalls = ({ calls, time_ns, limit }: LeftOutCalls): string =>
  `of calls from ${limit} on, and what preceded them: ${plural(calls, 'other')}, ${duration(time_ns)} in all, left out`

/** Confidence in figures of which a part is lost. */
export const doubtful = (lost: number): Confidence => ({
  confidence: 'low',
  confidence_reason: `${plural(lost, 'loss')} in what it is computed from: a part of the run was not recorded`,
})

/** Fewer calls than these show a tendency only. */
const FEW = 8
