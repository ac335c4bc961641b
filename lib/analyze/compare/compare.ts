import { UsageError } from '../../errors.ts'
import { DefaultMap, getOrMake } from '../../model/default-map.ts'
import { ANALYSIS_SCHEMA, type Analysis } from '../analysis.ts'
import { ANALYSIS_HINT, checkGiven } from '../common/given.ts'
import { differencesOf } from './differences.ts'
import {
  type ChangedFinding,
  COMPARISON_SCHEMA,
  type Comparison,
  type Effect,
  type EffectGroup,
  type Verdict,
} from './figures.ts'
import { figuresOf, type RunFigure } from './figures-of-run.ts'
import { logRatio, margins, tailOfEach } from './interval.ts'
import { leastRuns, RUNS_MIN, type RunsFor, sentenceOf } from './verdict.ts'

/** Runs of one side. */
export interface RunsOfSide {
  /** How the side is called, such as its command. */
  readonly name: string
  readonly runs: readonly Analysis[]
}

/** All intervals together hold in this share of comparisons; and with this certainty, a change is named. */
const LEVEL = 0.95
const NAMED_LEVEL = 0.998
/** Parts, roles, layers, types and workers with a smaller share of the time of their phase are not compared. */
const SHARE_MIN = 0.01

/**
 * Of a single short call of each run: one preemption is many times its time. And time without a CPU, which other programs took: no spread of a
 * few runs is the true one, so that no change of these is certain.
 */
const DISTURBED: ReadonlySet<string> = new Set(['first decode', 'preempted', 'blocked'])
/** What a run does not have took no time in it. Of the other groups, it is not known. */
const isTime = ({ group }: Pick<Effect, 'group'>) => group !== 'speed' && group !== 'memory'
const isWithoutCpu = ({ group, name }: Values) => group === 'part' && DISTURBED.has(name)

/** The values of a figure in the runs of both sides. */
interface Values extends Pick<Effect, 'group' | 'phase' | 'name' | 'unit'> {
  readonly before: number[]
  readonly after: number[]
}

/**
 * Compares runs of two sides: speed, parts of calls, operators by role, layer and type, workers, findings. An effect is the ratio of
 * geometric means over runs, with an interval of Welch's kind on logarithms, whose spreads are moderated by those of all effects (Smyth
 * 2004), corrected for the number of effects (Šidák).
 */
export function compareRuns(before: RunsOfSide, after: RunsOfSide): Comparison {
  checkSide('before', before)
  checkSide('after', after)
  const differences = differencesOf(before.runs, after.runs)
  const compared = worthComparing(valuesOf(before.runs, after.runs))
  const speeds = compared.filter(({ group }) => group === 'speed')
  const others = compared.filter((values) => isTime(values) && !isWithoutCpu(values))
  const memory = compared.filter(({ group }) => group === 'memory')
  const sides = [before.runs.length, after.runs.length] as const
  const runs = Math.min(...sides)
  const neededOf = new Map<Effect, RunsFor>()
  // Spreads of one family say nothing about those of another.
  const effects = [speeds, others, compared.filter(isWithoutCpu), memory].flatMap((family) => {
    const ratios = new Map(family.flatMap((values) => (areAlike(values, sides) ? [[values, ratioOf(values)]] : [])))
    const marginOf = margins([...ratios.values()])
    return family.map((values) => {
      const ratio = ratios.get(values)
      const margin = (level: number) => marginOf(ratio!, tailOfEach(level, ratios.size))
      // Fewer runs are no certainty, whatever their spread.
      const least = Math.min(values.before.length, values.after.length)
      const named = () => (least < RUNS_MIN || DISTURBED.has(values.name) ? Infinity : margin(NAMED_LEVEL))
      const change = ratio && { estimate: ratio.estimate, margin: margin(LEVEL), named: named() }
      const effect = effectOf(values, change ?? onlyOn(values, sides))
      if (ratio)
        neededOf.set(effect, (_, share, isNamed) => {
          const tail = tailOfEach(isNamed ? NAMED_LEVEL : LEVEL, ratios.size)
          return leastRuns(runs, Math.log1p(share), (times) => marginOf(ratio, tail, times))
        })
      return effect
    })
  })
  const comparison = {
    schema: COMPARISON_SCHEMA as typeof COMPARISON_SCHEMA,
    before: sideOf(before),
    after: sideOf(after),
    differences,
    is_comparable: differences.every(({ is_obstacle }) => !is_obstacle),
    compared_speeds: speeds.length,
    compared_others: others.length,
    level_share: LEVEL,
    named_level_share: NAMED_LEVEL,
    effects: effects.sort(byVerdict),
    findings: changedFindings(before.runs, after.runs),
  }
  const { schema, ...rest } = comparison
  const verdict = sentenceOf(comparison, (effect, share, isNamed) => neededOf.get(effect)?.(effect, share, isNamed))
  return { schema, verdict, ...rest }
}

function checkSide(side: 'before' | 'after', given: RunsOfSide): void {
  const place = `compareRuns: ${side}`
  const { name, runs } = (given ?? {}) as Partial<RunsOfSide>
  if (typeof name !== 'string' || !Array.isArray(runs) || runs.length === 0)
    throw new UsageError(
      `${place}: expected a name and at least one run, found ${JSON.stringify(given)?.slice(0, 60)}\nhint: { name, runs: [analysis] }; ${ANALYSIS_HINT}`,
    )
  for (const [i, run] of runs.entries()) checkGiven(`${place}.runs[${i}]`, run, [ANALYSIS_SCHEMA], ANALYSIS_HINT)
}

const sideOf = ({ name, runs }: RunsOfSide) => ({
  name,
  runs: runs.length,
  inputs: runs.map(({ inputs }) => inputs.map(({ name }) => name)),
})

function valuesOf(before: readonly Analysis[], after: readonly Analysis[]): Values[] {
  const byKey = new Map<string, Values>()
  const add = (side: 'before' | 'after', { value, ...rest }: RunFigure) => {
    const key = JSON.stringify(rest)
    const values = getOrMake(byKey, key, () => ({ ...rest, before: [], after: [] }))
    if (value > 0) values[side].push(value)
  }
  for (const run of before) for (const figure of figuresOf(run)) add('before', figure)
  for (const run of after) for (const figure of figuresOf(run)) add('after', figure)
  return [...byKey.values()].filter(({ before, after }) => before.length + after.length > 0)
}

/** Leaves out what is a small share of its group and phase on both sides: on average of all runs, those without it included. */
function worthComparing(all: readonly Values[]): Values[] {
  const sums = new DefaultMap<string, { before: number; after: number }>(() => ({ before: 0, after: 0 }))
  const sum = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0)
  for (const values of all) {
    const totals = sums.of(`${values.group} ${values.phase}`)
    totals.before += sum(values.before)
    totals.after += sum(values.after)
  }
  return all.filter((values) => {
    const totals = sums.of(`${values.group} ${values.phase}`)
    if (values.group === 'speed' || values.group === 'memory') return true
    return sum(values.before) >= SHARE_MIN * totals.before || sum(values.after) >= SHARE_MIN * totals.after
  })
}

type Runs = readonly [before: number, after: number]

/** Do runs of both sides have it, and all of them if it is a time? Those without it would be missing in the mean. */
function areAlike({ before: a, after: b, group }: Values, [before, after]: Runs): boolean {
  return isTime({ group }) ? a.length === before && b.length === after : a.length > 0 && b.length > 0
}

/** The verdict of what not all runs have: a change, if all runs of one side have it and none of the other. */
function onlyOn(values: Values, [before, after]: Runs): Verdict {
  const [a, b] = [values.before.length, values.after.length]
  const isNew = a === 0 && b === after
  if (!isNew && !(b === 0 && a === before)) return 'unclear'
  if (!isWithoutCpu(values)) return isNew ? 'new' : 'gone'
  if (chanceOf([a, before], [b, after]) > CHANCE_MAX) return 'unclear'
  return isNew ? 'maybe slower' : 'maybe faster'
}

const ratioOf = ({ before, after }: Values) => logRatio(before, after)

/** A logarithm, and halves of the widths of its intervals. */
interface Change {
  readonly estimate: number
  readonly margin: number
  readonly named: number
}

function effectOf({ before: a, after: b, ...rest }: Values, change: Change | Verdict): Effect {
  const shown = {
    ...rest,
    before: geometricMean(a),
    after: geometricMean(b),
    runs_before: a.length,
    runs_after: b.length,
  }
  if (typeof change === 'string')
    return { ...shown, change_share: null, low_share: null, high_share: null, verdict: change }
  const { estimate, margin, named } = change
  const isKnown = Number.isFinite(margin)
  return {
    ...shown,
    change_share: Math.expm1(estimate),
    low_share: isKnown ? Math.expm1(estimate - margin) : null,
    high_share: isKnown ? Math.expm1(estimate + margin) : null,
    verdict: rest.group === 'memory' ? moreOrLess(estimate, margin) : verdictOf(estimate, margin, named),
  }
}

function verdictOf(estimate: number, margin: number, namedMargin: number): Verdict {
  if (estimate === 0 && margin === 0) return 'same'
  const change = estimate > 0 ? 'slower' : 'faster'
  if (Math.abs(estimate) > namedMargin) return change
  return Math.abs(estimate) > margin ? `maybe ${change}` : 'unclear'
}

/** Bytes do not vary from run to run, or hardly. */
function moreOrLess(estimate: number, margin: number): Verdict {
  if (Math.abs(estimate) < 1e-9) return 'same'
  if (Math.abs(estimate) <= margin) return 'unclear'
  return estimate > 0 ? 'more' : 'less'
}

function geometricMean(values: readonly number[]): number | null {
  if (values.length === 0) return null
  return Math.exp(values.reduce((sum, value) => sum + Math.log(value), 0) / values.length)
}

const VERDICTS: readonly Verdict[] = [
  'slower',
  'maybe slower',
  'more',
  'less',
  'new',
  'gone',
  'faster',
  'maybe faster',
  'unclear',
  'same',
]
const GROUPS: readonly EffectGroup[] = ['speed', 'part', 'role', 'layer', 'type', 'worker', 'memory']

/** Groups in order of how much they sum up; in each, regressions first, most time first. */
function byVerdict(a: Effect, b: Effect): number {
  const group = GROUPS.indexOf(a.group) - GROUPS.indexOf(b.group)
  const verdict = VERDICTS.indexOf(a.verdict) - VERDICTS.indexOf(b.verdict)
  const lost = (effect: Effect) => Math.abs((effect.after ?? 0) - (effect.before ?? 0))
  const time = (effect: Effect) => Math.max(effect.before ?? 0, effect.after ?? 0)
  return verdict || group || (a.verdict === 'unclear' ? time(b) - time(a) : lost(b) - lost(a))
}

/** The chance with which equal sides differ that much is at most this where a finding appears or vanishes. */
const CHANCE_MAX = 0.01

/**
 * The chance that runs of two equal sides differ at least as much in how many of them have a finding (R. A. Fisher's exact test, of both
 * directions).
 */
function chanceOf([a, before]: readonly [number, number], [b, after]: readonly [number, number]): number {
  const ways = (n: number, k: number) =>
    Array.from({ length: k }, (_, i) => (n - i) / (i + 1)).reduce((x, y) => x * y, 1)
  const chance = (inA: number) => (ways(before, inA) * ways(after, a + b - inA)) / ways(before + after, a + b)
  const [least, most] = [Math.max(0, a + b - after), Math.min(before, a + b)]
  const found = chance(a)
  return Array.from({ length: most - least + 1 }, (_, i) => chance(least + i))
    .filter((other) => other <= found * (1 + 1e-9))
    .reduce((sum, other) => sum + other, 0)
}

function changedFindings(before: readonly Analysis[], after: readonly Analysis[]): ChangedFinding[] {
  const found = new Map<
    string,
    { before: number; after: number; of: Pick<ChangedFinding, 'rule' | 'phase' | 'sentence'> }
  >()
  const add = (side: 'before' | 'after', { findings }: Analysis) => {
    const seen = new Set<string>()
    for (const { rule, sentence, evidence } of findings) {
      const phase = typeof evidence['phase'] === 'string' ? evidence['phase'] : null
      const key = `${rule} ${phase}`
      const known = getOrMake(found, key, () => ({ before: 0, after: 0, of: { rule, phase, sentence } }))
      if (!seen.has(key)) known[side]++
      seen.add(key)
    }
  }
  for (const run of before) add('before', run)
  for (const run of after) add('after', run)
  return [...found.values()].flatMap((known): ChangedFinding[] => {
    const isCertain = chanceOf([known.before, before.length], [known.after, after.length]) <= CHANCE_MAX
    const isAfter = known.after / after.length > known.before / before.length
    const isUnanimous = isAfter
      ? known.after === after.length && known.before === 0
      : known.after === 0 && known.before === before.length
    if (!isCertain && !isUnanimous) return []
    const word = isAfter ? ('appeared' as const) : ('vanished' as const)
    const change = isCertain ? word : (`maybe ${word}` as const)
    return [{ ...known.of, change, runs_before: known.before, runs_after: known.after }]
  })
}
