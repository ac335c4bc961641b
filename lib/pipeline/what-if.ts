import type { Analysis } from '../analyze/analysis.ts'
import { checkChanges } from '../analyze/what-if/changes.ts'
import { type Changes, predict, type WhatIf } from '../analyze/what-if/what-if.ts'
import { checkNames } from '../errors.ts'
import { WHAT_IF_OPTIONS } from '../generated/option-names.ts'
import { type AnalyzeOptions, analyze } from './analyze.ts'
import type { Input } from './inputs.ts'

/** How inputs are read. */
export type WhatIfOptions = Omit<AnalyzeOptions, 'series' | 'call'>

/** The series of an Analysis from which {@link whatIf} predicts. */
export const WHAT_IF_SERIES = ['calls', 'steps'] as const

/**
 * Predicts what changes make of a run, from the times that it contains. `from`: its logs, which are read once, or its Analysis with the series
 * {@link WHAT_IF_SERIES}. Times are ns. The same input gives the same prediction. What the run does not show is refused in the result
 * (`why`). Throws as {@link analyze} does, and UsageError for changes that are none.
 */
export async function whatIf(
  from: Analysis | Input | readonly Input[],
  changes: Changes,
  options: WhatIfOptions = {},
): Promise<WhatIf> {
  checkChanges(changes)
  checkNames('whatIf', options, WHAT_IF_OPTIONS)
  if ('schema' in from) return predict(from, changes)
  return predict(await analyze(from, { ...options, series: WHAT_IF_SERIES }), changes)
}
