import type { Analysis, Finding } from '../analysis.ts'
import type { Disturbance, Predicted, WhatIf } from './figures.ts'
import { sentenceOf } from './sentence.ts'
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
export function removalOf(analysis: Analysis, { rule, evidence }: Finding): WhatIf | undefined {
  const without = REMOVED[rule]
  if (without === undefined || !analysis.series?.calls || !analysis.series.steps) return undefined
  const prediction = predict(analysis, { without: [without] })
  if (prediction.basis.length === 0 || prediction.is_unchanged) return undefined
  const sentence = sentenceOfPhase(prediction, evidence['phase'])
  return sentence === undefined ? undefined : { ...prediction, sentence }
}

/** The answer about the phase of a finding only: what it explains is time of that phase. Undefined where that phase is not predicted, or does not change. */
function sentenceOfPhase(prediction: WhatIf, phase: Finding['evidence'][string] | undefined): string | undefined {
  const { decode_tokens_per_s, tpot_ns, ttft_ns, sentence } = prediction
  const none = { now: null, expected: null, low: null, high: null, why: null }
  const isSame = ({ low, high, expected }: Predicted) => expected === null || low === high
  if (phase === 'prefill')
    return isSame(ttft_ns) ? undefined : sentenceOf({ decode_tokens_per_s: none, tpot_ns: none, ttft_ns }, undefined)
  if (phase === 'decode')
    return isSame(tpot_ns) ? undefined : sentenceOf({ decode_tokens_per_s, tpot_ns, ttft_ns: none }, undefined)
  return sentence
}
