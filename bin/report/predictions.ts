import { type Analysis, predict, removalOf, type WhatIf } from '../../lib/cli.ts'

/** Numbers of threads beyond those that were measured: the powers of two up to so many times the most of them. */
const TIMES_MAX = 2

/**
 * What the run would be without what its findings name, and with the numbers of threads of other runs of the same program, and some more. All with the series
 * `calls` and `steps`.
 */
export function predictionsOf(analysis: Analysis, others: readonly Analysis[]): WhatIf[] {
  // A rule can have several findings, one of each phase.
  const named = analysis.findings.filter(({ rule }, i, all) => all.findIndex((other) => other.rule === rule) === i)
  const removals = named.flatMap((finding) => removalOf(analysis, finding) ?? [])
  return [...removals, ...(others.length > 0 ? byThreads(analysis, others) : [])]
}

/** What cannot be said of decode is left out, unless nothing can be said. */
function byThreads(analysis: Analysis, others: readonly Analysis[]): WhatIf[] {
  const measured = others.map(({ run }) => run.workers)
  const most = TIMES_MAX * Math.max(analysis.run.workers, ...measured)
  const powers = Array.from({ length: Math.floor(Math.log2(most)) + 1 }, (_, i) => 2 ** i)
  const counts = [...new Set([...measured, ...powers])].filter((count) => count > 0 && count !== analysis.run.workers)
  const all = counts.sort((a, b) => a - b).map((threads) => predict(analysis, { threads }, { others }))
  const known = all.filter(({ decode_tokens_per_s }) => decode_tokens_per_s.expected !== null)
  return known.length > 0 ? known : all.slice(0, 1)
}
