import { plural } from '../../model/units.ts'
import type { Comparison, Effect } from './figures.ts'

/** Figures of speed that a verdict may begin with, the first one that is there, and how it calls them; others only by their own names. */
const HEADLINES: Readonly<Record<string, string>> = {
  TPOT: 'decode',
  'prefill, a token': 'prefill',
  TTFT: 'first token',
}
/** Fewer runs a side give no certainty. */
export const RUNS_MIN = 3
const RUNS_ADVISED = 5
/** So many runs are recorded in practice. */
const RUNS_MAX = 100
/** A name of a side that is longer is not repeated in a sentence. */
const NAME_MAX = 30

/** The number of runs a side with which the interval of an effect is narrower than `±share`; undefined where it is not known, or too many. */
export type RunsFor = (effect: Effect, share: number, isNamed: boolean) => number | undefined

/** A comparison in one sentence: what is faster or slower, by how much, and how certain that is. */
export function sentenceOf(comparison: Omit<Comparison, 'verdict'>, runsFor: RunsFor): string {
  const { differences, is_comparable, effects } = comparison
  const obstacles = differences.filter(({ is_obstacle }) => is_obstacle).map(({ what }) => what)
  if (!is_comparable)
    return `not comparable: the sides differ in ${obstacles.join(', ')}, which ${obstacles.length === 1 ? 'explains' : 'explain'} other times by ${obstacles.length === 1 ? 'itself' : 'themselves'}`
  const speeds = inOrder(effects.filter(({ group, change_share }) => group === 'speed' && change_share !== null))
  const [first] = speeds
  if (first === undefined) return 'cannot say: there is no figure of speed that both sides have'
  const runs = runsText(comparison)
  const against = nameOf(comparison.before.name)
  if (first.low_share === null)
    return `${changeText(first)} than ${against}, which is no evidence with ${runs} a side: record ${RUNS_MIN}, better ${RUNS_ADVISED}`
  const [named, ...more] = speeds.filter(({ verdict }) => verdict === 'slower' || verdict === 'faster')
  if (named !== undefined) {
    const others = [...more.filter(({ name }) => name in HEADLINES), ...slowerOperators(effects)].slice(0, 1)
    return [`${changeText(named)} than ${against} (certain: ${intervalText(named)})`, ...others.map(changeText)].join(
      '; ',
    )
  }
  const maybe = speeds.find(({ name, verdict }) => /^maybe /.test(verdict) && name !== 'first decode')
  if (maybe)
    return `not certain: ${whatOf(maybe)} may take ${timeText(maybe)} than ${against}: ${untilCertain(maybe, comparison, runsFor)}`
  const rest = slowerOperators(effects).slice(0, 1).map(changeText)
  return [withoutChange(first, runs, runsFor), ...rest].join('; ')
}

const inOrder = (speeds: readonly Effect[]) => {
  const rank = ({ name }: Effect) => {
    const place = Object.keys(HEADLINES).indexOf(name)
    return place < 0 ? Number(/^TPOT |^first decode$/.test(name)) + Object.keys(HEADLINES).length : place
  }
  return [...speeds].sort((a, b) => rank(a) - rank(b))
}

const slowerOperators = (effects: readonly Effect[]) =>
  effects.filter(({ group, verdict }) => group === 'role' && (verdict === 'slower' || verdict === 'faster'))

/** `no difference above 3 % can be seen with 2 runs a side; 6 would show 2 %` */
function withoutChange(effect: Effect, runs: string, runsFor: RunsFor): string {
  if (effect.verdict === 'same') return `no difference: ${whatOf(effect)} takes the same time on both sides`
  const bound = Math.max(Math.abs(effect.low_share!), Math.abs(effect.high_share!))
  const wanted = rounded(bound / 2)
  const needed = runsFor(effect, wanted, false)
  const more = needed === undefined ? '' : `; ${needed} would show ${percentText(wanted)}`
  return `no difference of ${whatOf(effect)} above ${percentText(rounded(bound))} can be seen with ${runs} a side${more}`
}

function untilCertain(
  effect: Effect,
  { before, after }: Pick<Comparison, 'before' | 'after'>,
  runsFor: RunsFor,
): string {
  const needed = runsFor(effect, Math.abs(effect.change_share!), true)
  const least = Math.max(RUNS_MIN, Math.min(before.runs, after.runs) + 1)
  return needed === undefined ? 'more runs would decide' : `${Math.max(needed, least)} runs a side would decide`
}

const runsText = ({ before, after }: Pick<Comparison, 'before' | 'after'>) =>
  before.runs === after.runs ? plural(before.runs, 'run') : `${before.runs} and ${after.runs} runs`

const nameOf = (name: string) => `"${name.length <= NAME_MAX ? name : 'a'}"`

/** What the figure is of, in words. */
const whatOf = ({ name, group, phase }: Effect) =>
  group === 'speed' ? (HEADLINES[name] ?? name) : phase === null ? name : `${name} (${phase})`

/** `decode 12 % slower`, by the time; `4.1 × faster decode`. */
function changeText(effect: Effect): string {
  const change = effect.change_share!
  const word = change > 0 ? 'slower' : 'faster'
  const factor = factorOf(change)
  return factor >= 2
    ? `${digits(factor)} × ${word} ${whatOf(effect)}`
    : `${whatOf(effect)} ${percentText(factor - 1)} ${word}`
}

/** The bounds in the direction of the change, and in its form: `3.9 … 4.3`, `9 … 15 %`. */
function intervalText({ change_share, low_share, high_share }: Effect): string {
  const isFaster = change_share! < 0
  const bounds = [isFaster ? high_share! : low_share!, isFaster ? low_share! : high_share!]
  const factors = bounds.map((share) => (isFaster ? 1 / (1 + share) : 1 + share))
  if (factorOf(change_share!) >= 2) return apart(factors)
  return `${apart(factors.map((factor) => 100 * (factor - 1)))} %`
}

/** `3 … 14 % more time`: what is not certain is not called slower or faster. */
function timeText({ low_share, high_share }: Effect): string {
  const bounds = low_share! > 0 ? [low_share!, high_share!] : [-high_share!, -low_share!]
  return `${apart(bounds.map((share) => 100 * share))} % ${low_share! > 0 ? 'more' : 'less'} time`
}

/** Two numbers with as many digits as it takes to see both. */
function apart(numbers: readonly number[]): string {
  const width = Math.abs(numbers[1]! - numbers[0]!)
  const digits = width >= 3 ? 0 : width >= 0.1 ? 1 : 2
  return numbers.map((number) => number.toFixed(digits).replace('-', '−')).join(' … ')
}

const factorOf = (change: number) => (change > 0 ? 1 + change : 1 / (1 + change))

const digits = (factor: number) => (factor >= 9.95 ? factor.toFixed(0) : factor.toFixed(1))

/** A share in percent, with a digit after the point below 10 %. */
const percentText = (share: number) => {
  const value = 100 * share
  return `${Math.abs(value) >= 9.95 ? value.toFixed(0) : value.toFixed(1).replace(/\.0$/, '')} %`.replace('-', '−')
}

/** One digit that counts, rounded up: 0.0312 is 0.04. */
function rounded(share: number): number {
  const unit = 10 ** Math.floor(Math.log10(share))
  return share === 0 ? 0 : Math.ceil(share / unit - 1e-9) * unit
}

/** The smallest number of runs a side, more than there are, with which `marginOf` is at most `margin`; `times`: that number by the present one. */
export function leastRuns(runs: number, margin: number, marginOf: (times: number) => number): number | undefined {
  for (let more = runs + 1; more <= RUNS_MAX; more++) if (marginOf(more / runs) <= margin) return more
  return undefined
}
