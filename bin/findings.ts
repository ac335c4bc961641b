import type { Finding, RunVerdict } from '../lib/cli.ts'
import type { Coloured } from './terminal.ts'
import { duration, inUnit, labelOf, plural, threeDigits } from './units.ts'

/** Findings in the last lines of a command. */
const SHOWN = 3

/**
 * The most important findings, a line each, and the command that shows all with their evidence; no line without findings. `areEstimates`: not
 * all calls were looked at.
 */
export function describeFindings(findings: readonly Finding[], command: string, areEstimates: boolean): string[] {
  if (findings.length === 0) return []
  const [first, ...others] = findings.slice(0, SHOWN).map(({ sentence }) => sentence)
  const more = findings.length > SHOWN ? ` (${findings.length - SHOWN} more)` : ''
  return [
    `why: ${first}`,
    ...others.map((sentence) => `     ${sentence}`),
    `     ${areEstimates ? 'estimated from some of the calls; of all calls, with ' : ''}evidence and checks${more}: ${command}`,
  ]
}

/** Shares of the time, from which on what costs it is red, and yellow; what is not certain is never red. */
const [RED, YELLOW] = [0.2, 0.05]

/** Colours of the first line and of findings, by the share of the time that each explains. */
export function coloursOf(
  { cause, sentence }: RunVerdict,
  findings: readonly Finding[],
): { readonly verdict: Coloured['colour']; readonly findings: readonly Coloured['colour'][] } {
  const wholeNs = cause?.share ? cause.time_ns / cause.share : undefined
  const of = (ns: number, confidence: Finding['confidence']): Coloured['colour'] => {
    if (wholeNs === undefined || ns < YELLOW * wholeNs) return undefined
    return ns >= RED * wholeNs && confidence !== 'low' ? 'red' : 'yellow'
  }
  const isQuiet = sentence.startsWith('nothing unusual')
  return {
    verdict: cause ? of(cause.time_ns, cause.confidence) : isQuiet ? 'green' : undefined,
    findings: findings.map(({ time_ns, confidence }) => of(time_ns, confidence)),
  }
}

/**
 * A finding: its sentence, what of it is measured, what to do; and how to check it, with `query`: the command that runs SQL on the trace of the same logs.
 * `removal`: what the run would be without it.
 */
export function describeFinding(finding: Finding, number: number, query?: string, removal?: string): string[] {
  const { sentence, time_ns, confidence, confidence_reason, evidence, check, advice } = finding
  const indent = ' '.repeat(`${number}. `.length)
  const time = time_ns > 0 ? `explains ${duration(time_ns)}; ` : ''
  const command = check.sql === undefined ? check.command : `${query} "${check.sql}"`
  return [
    `${number}. ${sentence}`,
    `${indent}${time}confidence ${confidence}: ${confidence_reason}`,
    `${indent}measured: ${evidenceText(evidence)}`,
    `${indent}to do: ${advice}`,
    ...(removal === undefined ? [] : [`${indent}without it: ${removal}`]),
    ...(query === undefined || command === undefined
      ? []
      : [`${indent}check of ${labelOf(check.evidence)}: ${command}`]),
  ]
}

/** Figures in words and units; those of the same are in one: `preempted 51.7 % (27.9 ms)`. */
function evidenceText(evidence: Finding['evidence']): string {
  const byLabel = new Map<string, string[]>()
  for (const [key, value] of Object.entries(evidence)) {
    if (value === '') continue
    const [label, text] = typeof value === 'string' ? [labelOf(key), value] : figureText(key, value)
    byLabel.set(label, [...(byLabel.get(label) ?? []), text])
  }
  return [...byLabel]
    .map(([label, [first, ...more]]) => `${label} ${first}${more.map((text) => ` (${text})`).join('')}`)
    .join(', ')
}

/** Rates and counts, whose keys end in no unit of the Analysis. */
const UNITS: readonly (readonly [end: RegExp, text: (value: number) => string])[] = [
  [/_?bytes_per_s$/, (value) => `${threeDigits(value / 1e9)} GB/s`],
  [/_?flop_per_s$/, (value) => `${threeDigits(value / 1e9)} GFLOP/s`],
  [/_?ms_per_1000_tokens$/, (value) => `${threeDigits(value)} ms per 1 000 tokens`],
  [/_?error_ms$/, (value) => `error ${threeDigits(value)} ms`],
  [/_tokens$/, (value) => plural(value, 'token')],
  [/_hz$/, (value) => `${threeDigits(value / 1e9)} GHz`],
  [/_w$/, (value) => `${threeDigits(value)} W`],
  [/_c$/, (value) => `${threeDigits(value)} °C`],
]

function figureText(key: string, value: number): readonly [label: string, text: string] {
  const unit = UNITS.find(([end]) => end.test(key))
  if (unit) return [labelOf(key.replace(unit[0], '')) || 'reached', unit[1](value)]
  // Whole numbers are counts and identifiers, of processes for instance.
  return [labelOf(key), inUnit(key, value) ?? String(Number.isInteger(value) ? value : Number(value.toPrecision(4)))]
}
