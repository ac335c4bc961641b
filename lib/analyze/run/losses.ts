import type { RecordedKind } from '../../model/issues.ts'
import { kindOfIssue, type LostKind } from '../../model/issues.ts'
import type { IssueCount } from '../summary/figures.ts'
import type { AnalysedInput, InputLoss } from './figures.ts'

type Lossy = Pick<AnalysedInput, 'losses'>

/** The losses among the issues of an input that contains data of the kinds `recorded`. */
export function lossesIn(issues: readonly IssueCount[], recorded: readonly RecordedKind[]): InputLoss[] {
  return issues.flatMap(({ code, count, is_loss, first }) =>
    is_loss && code !== undefined ? [{ code, count, lost: first.lost ?? kindOfIssue(first)!.lost ?? recorded }] : [],
  )
}

/** The same of numbers by code, without knowledge of what the input contains. */
export function lossesNamed(issues: Readonly<Record<string, number>> = {}): InputLoss[] {
  return Object.entries(issues).flatMap(([code, count]) => {
    const kind = kindOfIssue({ code })
    return kind?.isLoss ? [{ code, count, lost: kind.lost ?? [] }] : []
  })
}

/** Their numbers by code, over all inputs. */
export function countsOfLosses(inputs: readonly Lossy[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { code, count } of inputs.flatMap(({ losses }) => losses)) counts[code] = (counts[code] ?? 0) + count
  return counts
}

/** What figures of calls are made of. */
export const CALLS = ['calls', 'graphs', 'operators'] as const satisfies readonly RecordedKind[]

/** The number of losses in which data of these kinds are missing. What is missing at the end makes no figure wrong. */
export function lossesOf({ inputs }: { readonly inputs: readonly Lossy[] }, kinds: readonly LostKind[]): number {
  return inputs
    .flatMap(({ losses }) => losses)
    .filter(({ lost }) => lost.length === 0 || lost.some((kind) => kinds.includes(kind)))
    .reduce((sum, { count }) => sum + count, 0)
}
