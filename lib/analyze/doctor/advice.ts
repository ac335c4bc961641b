import { percent, threeDigits } from '../../model/units.ts'
import type { Analysis, Finding } from '../analysis.ts'
import { phasesOf } from '../findings/rule.ts'
import { speedOf } from '../scaling/runs.ts'
import { type SweepFigures, type SweptRun, WITHIN } from '../scaling/sweep.ts'
import { removalOf } from '../what-if/removal.ts'
import { type Evidence, predict } from '../what-if/what-if.ts'
import type { Advice } from './figures.ts'

/** Types of weights that take fewer bytes, by those of most models. */
const SMALLER: Readonly<Record<string, string>> = {
  ...{ f32: 'q8_0', f16: 'q8_0', bf16: 'q8_0' },
  ...{ q8_0: 'q4_0', q6_K: 'q4_0', q5_K: 'q4_0', q5_1: 'q4_0', q5_0: 'q4_0' },
}
/** Sequences that are decoded at once, as an example of a batch. */
const BATCH = 4

/** The run that advice is about: the fastest decode with the recommended number of threads, or of all where none is recommended. */
export function judgedRun(runs: readonly SweptRun[], { phases }: SweepFigures): SweptRun {
  const recommended = phases.find(({ phase }) => phase === 'decode')?.recommended?.value
  const candidates = recommended === undefined ? runs : runs.filter(({ value }) => value === recommended)
  const speed = ({ analysis }: SweptRun) => speedOf(analysis, 'decode')
  return candidates.reduce((best, run) => (speed(run) > speed(best) ? run : best))
}

/**
 * What to change, and what it would give: another number of threads than the usual one, as measured, then the findings of the judged run, most
 * time first, as predicted. `judged`: with the series `calls` and `steps`.
 */
export function adviceFor(judged: Analysis, swept: SweepFigures, usual: number, evidence: Evidence): Advice[] {
  // What to do is the same for all findings of a rule, such as those of several phases.
  const first = judged.findings.filter(({ rule }, i, all) => all.findIndex((other) => other.rule === rule) === i)
  return [
    ...ofThreads(swept, usual),
    ...first.flatMap((finding) => (finding.rule === 'losses' ? [] : ofFinding(judged, finding, evidence))),
  ]
}

function ofThreads({ phases }: SweepFigures, usual: number): Advice[] {
  const decode = phases.find(({ phase }) => phase === 'decode')
  const now = decode?.values.find(({ value }) => value === `${usual}`)?.tokens_per_s ?? null
  if (!decode?.recommended || now === null) return []
  const { value, tokens_per_s, is_certain } = decode.recommended
  const gain = tokens_per_s / now - 1
  if (gain <= WITHIN) return []
  return [
    {
      sentence: `decode is ${percent(gain)} faster with -t ${value} than with -t ${usual}, one thread a core, as llama.cpp takes by default`,
      to_do: `Run with -t ${value} (--threads)${is_certain ? '' : '; other numbers could be as fast: the runs differ'}`,
      rule: null,
      phase: 'decode',
      explains_share: null,
      gives: [`decode ${threeDigits(now)} → ${threeDigits(tokens_per_s)} tok/s`],
      by: 'measured',
    },
  ]
}

function ofFinding(analysis: Analysis, finding: Finding, evidence: Evidence): Advice[] {
  const { sentence, advice, rule, time_ns } = finding
  const isLimit = rule === 'roofline'
  const removed = removalOf(analysis, finding)
  const gives = isLimit ? atLimit(analysis, finding, evidence) : removed ? [removed.sentence] : []
  const time = phasesOf(analysis).find(({ phase }) => phase === finding.evidence['phase'])
  return [
    {
      sentence,
      to_do: advice,
      rule,
      phase: time?.phase ?? null,
      explains_share: isLimit || !time || time_ns === 0 ? null : Math.min(1, time_ns / time.time_ns),
      gives,
      by: gives.length > 0 ? 'predicted' : null,
    },
  ]
}

/** Decode at the limit of the memory: fewer bytes, or several tokens for the same bytes. */
function atLimit(analysis: Analysis, { evidence: { phase } }: Finding, evidence: Evidence): string[] {
  const { rooflines, run, calls, series } = analysis
  const line = rooflines.find((roofline) => roofline.scope === 'phase' && roofline.phase === phase)
  if (phase !== 'decode' || line?.bound !== 'memory' || !series?.calls || !series.steps) return []
  const type = SMALLER[run.weights?.[0]?.type ?? '']
  const changes = [
    ...(type === undefined ? [] : [{ text: `weights in ${type}`, change: { type } }]),
    ...((calls.sequences ?? 1) < BATCH ? [{ text: `${BATCH} sequences at once`, change: { batch: BATCH } }] : []),
  ]
  return changes.flatMap(({ text, change }) => {
    const { decode_tokens_per_s, sentence, is_unchanged } = predict(analysis, change, evidence)
    return decode_tokens_per_s.expected === null || is_unchanged ? [] : [`${text}: ${sentence}`]
  })
}
