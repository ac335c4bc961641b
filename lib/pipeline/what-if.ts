import type { Analysis } from '../analyze/analysis.ts'
import { checkChanges } from '../analyze/what-if/changes.ts'
import type { KernelTimes } from '../analyze/what-if/kernels.ts'
import { type Changes, predict, type WhatIf } from '../analyze/what-if/what-if.ts'
import { checkNames } from '../errors.ts'
import { WHAT_IF_OPTIONS } from '../generated/option-names.ts'
import { type AnalyzeOptions, analyzeSteps } from './analyze.ts'
import type { Input } from './inputs.ts'

/** A run: its logs, or its Analysis with the series {@link WHAT_IF_SERIES}. */
export type RunOfWhatIf = Analysis | Input | readonly Input[]

/** How inputs are read, and what a prediction may rest on in addition to the run. */
export interface WhatIfOptions extends Omit<AnalyzeOptions, 'series' | 'call'> {
  /** Runs of the same program with other numbers of threads: `threads` is predicted by them. */
  readonly others?: readonly RunOfWhatIf[] | undefined
  /** Measured products of ggml (`measureKernels`), for `threads`, `type` and `batch`. They apply to runs on their machine with their ggml only. */
  readonly kernels?: KernelTimes | undefined
}

/** The series of an Analysis from which {@link whatIf} predicts. */
export const WHAT_IF_SERIES = ['calls', 'steps'] as const

/**
 * Predicts what changes make of a run, from the times that it contains. `from`: its logs, which are read once, or its Analysis with the series
 * {@link WHAT_IF_SERIES}. Times are ns. The same input gives the same prediction. What the run does not show is refused in the result
 * (`why`). Throws as `analyze` does, and UsageError for changes that are none.
 */
export async function whatIf(from: RunOfWhatIf, changes: Changes, options: WhatIfOptions = {}): Promise<WhatIf> {
  checkChanges(changes)
  checkNames('whatIf', options, WHAT_IF_OPTIONS)
  const { others = [], kernels, ...reading } = options
  const analysisOf = async (run: RunOfWhatIf) =>
    'schema' in run ? run : await analyzeSteps(run, { ...reading, series: WHAT_IF_SERIES })
  const analysis = await analysisOf(from)
  const analyses: Analysis[] = []
  for (const other of others) analyses.push(await analysisOf(other))
  return predict(analysis, changes, { others: analyses, kernels, peaks: options.peaks })
}
