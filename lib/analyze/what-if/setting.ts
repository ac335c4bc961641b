import { plural } from '../../model/units.ts'
import type { StepGroup } from '../series/figures.ts'
import type { ModelCall } from './calls.ts'
import type { PlanContext } from './plan.ts'
import { tokensOf } from './weights.ts'

/** With what calls of a phase compute. */
export interface Setting {
  readonly threads: number
  /** Of the weights; undefined: the types of the run. */
  readonly type: string | undefined
  readonly sequences: number
  /** That a token uses; undefined: as many as in the run. */
  readonly experts: number | undefined
}

/** Of the run. */
export const settingOf = ({ calls }: PlanContext): Setting => ({
  threads: Math.max(...calls.map(({ workers }) => workers)),
  type: undefined,
  sequences: calls[0]!.sequences,
  experts: undefined,
})

/** The call that is typical of a phase: of a prompt in several, the largest one. */
export const typicalOf = ({ calls, phase }: PlanContext): ModelCall =>
  phase === 'decode' ? calls[0]! : calls.toSorted((a, b) => b.tokens - a.tokens)[0]!

/** Tokens whose products a step of the group computes at once. */
export function tokensAt(group: StepGroup, { sequences }: Setting, context: PlanContext): number {
  const { tokens } = typicalOf(context)
  return tokensOf(group, { tokens: context.phase === 'decode' ? sequences : tokens, sequences })
}

/** Such as `q8_0, 2 threads`. */
export const describe = ({ threads, type, sequences, experts }: Setting): string =>
  [
    type ?? 'the types of the run',
    plural(threads, 'thread'),
    ...(sequences > 1 ? [plural(sequences, 'sequence')] : []),
    ...(experts === undefined ? [] : [plural(experts, 'expert')]),
  ].join(', ')
