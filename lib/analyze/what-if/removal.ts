import type { Analysis, Finding } from '../analysis.ts'
import type { Disturbance, WhatIf } from './figures.ts'
import { predict } from './what-if.ts'

/** What can be taken out, by the rule that finds it. */
const REMOVED: Readonly<Record<string, Disturbance>> = {
  preempted: 'preempted',
  'page-faults': 'faults',
  'first-call': 'first-call',
}

/**
 * What a run would be without what a finding names; undefined where that cannot be said, nothing would change, or the Analysis does not contain
 * the series `calls` and `steps`.
 */
export function removalOf(analysis: Analysis, { rule }: Finding): WhatIf | undefined {
  const without = REMOVED[rule]
  if (without === undefined || !analysis.series?.calls || !analysis.series.steps) return undefined
  const prediction = predict(analysis, { without: [without] })
  return prediction.basis.length === 0 || prediction.is_unchanged ? undefined : prediction
}
