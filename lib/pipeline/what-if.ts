import type { Analysis } from '../analyze/analysis.ts'
import { type Changes, predict, type WhatIf } from '../analyze/what-if/what-if.ts'
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
  if ('schema' in from) return predict(from, changes)
  return predict(await analyze(from, { ...options, series: WHAT_IF_SERIES }), changes)
}
