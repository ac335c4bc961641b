import type { Comparison, Effect, EffectGroup, Gate } from '../../lib/cli.ts'
import { firstRows, more, number, type Section, tableOf, text } from '../stats/section.ts'
import { duration, percent, plural, size } from '../units.ts'

const TITLES: Readonly<Record<EffectGroup, string>> = {
  speed: 'speed',
  part: 'time of calls, per call',
  role: 'operators, per call',
  layer: 'layers, per call',
  type: 'types of weights, per call',
  worker: 'workers, per call',
  memory: 'memory',
}

const CHANGED = new Set(['slower', 'maybe slower', 'faster', 'maybe faster', 'new', 'gone', 'more', 'less'])

/** Rows of changes, where no number of rows is given. */
const TOP = 10
/** Rows of what is not clear, where no number of rows is given. */
const UNCLEAR_TOP = 3

/** A comparison for people: the verdict, what differs, then changes, regressions first, then what stays. `top`: rows of each table. */
export function comparisonSections(comparison: Comparison, top: number | undefined, gate?: Gate): Section[] {
  const { before, after, differences, is_comparable, findings } = comparison
  const groups = Object.keys(TITLES) as EffectGroup[]
  const [a, b] = namesOf(comparison)
  return [
    {
      title: comparison.verdict,
      lines: gate ? [`slower by more than ${percent(gate.limit_share)}: ${ANSWERS[gate.answer]}: ${gate.why}`] : [],
    },
    {
      title: 'sides',
      facts: [sideFact(a, before), sideFact(b, after)],
    },
    ...(differences.length > 0
      ? [
          {
            title: is_comparable
              ? 'what differs'
              : 'not comparable: marked differences explain other times by themselves',
            tables: [
              tableOf(differences, {}, [
                text('', ({ what }) => what),
                number('', ({ is_obstacle }) => (is_obstacle ? '!' : '')),
                text(a, ({ before, after }) => withoutCommon(before, after)[0]),
                text(b, ({ before, after }) => withoutCommon(before, after)[1]),
              ]),
            ],
          },
        ]
      : []),
    ...groups.flatMap((group) => groupSection(group, comparison, top)),
    ...(findings.length > 0
      ? [
          {
            title: 'findings',
            lines: findings.map(
              ({ change, sentence, runs_before, runs_after }) =>
                `${CHANGES[change](a, b)} (${runs_before} of ${before.runs}, ${runs_after} of ${plural(after.runs, 'run')}): ${sentence}`,
            ),
          },
        ]
      : []),
    { title: 'how to read it', lines: legend(comparison) },
  ]
}

const CHANGES: Readonly<Record<Comparison['findings'][number]['change'], (a: string, b: string) => string>> = {
  appeared: () => 'appeared',
  vanished: () => 'vanished',
  'maybe appeared': (_, b) => `only in ${b}, perhaps by chance`,
  'maybe vanished': (a) => `only in ${a}, perhaps by chance`,
}

/** Longer names of sides are none of columns. */
const NAME_MAX = 14

/** The names of columns: those of the sides where they are short. */
function namesOf({ before, after }: Comparison): readonly [string, string] {
  return Math.max(before.name.length, after.name.length) <= NAME_MAX && before.name !== after.name
    ? [before.name, after.name]
    : ['a', 'b']
}

const sideFact = (column: string, { name, runs, inputs }: Comparison['before']): [string, string] => {
  const files = inputs.flat()
  const text = column !== name ? name : files.length < 2 ? `${files}` : `${files[0]} … ${files.at(-1)}`
  return [column, `${text}: ${plural(runs, 'run')}`]
}

/** What is not certain is not called slower or faster. */
const WORDS: Readonly<Partial<Record<Effect['verdict'], string>>> = {
  unclear: '~',
  'maybe slower': 'perhaps',
  'maybe faster': 'perhaps',
}

/** Texts that are short enough as they are. */
const SHORT = 40

/** Two texts; of long ones, the words at the begin and at the end that are the same are left out. */
function withoutCommon(before: string, after: string): [string, string] {
  if (Math.max(before.length, after.length) <= SHORT) return [before, after]
  const [a, b] = [before.split(/(?<=[ /])/), after.split(/(?<=[ /])/)]
  const least = Math.min(a.length, b.length)
  let [head, tail] = [0, 0]
  while (head < least && a[head] === b[head]) head++
  while (tail < least - head && a.at(-1 - tail) === b.at(-1 - tail)) tail++
  const rest = (parts: readonly string[]) =>
    `${head > 0 ? '…' : ''}${parts.slice(head, parts.length - tail).join('')}${tail > 0 ? '…' : ''}`
  return [rest(a), rest(b)]
}

const ANSWERS: Readonly<Record<Gate['answer'], string>> = { within: 'no', worse: 'yes', inconclusive: 'not certain' }

function groupSection(group: EffectGroup, comparison: Comparison, top: number | undefined): Section[] {
  const { effects } = comparison
  const [a, b] = namesOf(comparison)
  const inGroup = effects.filter((effect) => effect.group === group && effect.verdict !== 'same')
  if (inGroup.length === 0) return []
  const changed = inGroup.filter(({ verdict }) => CHANGED.has(verdict))
  const unclear = inGroup.filter(({ verdict }) => !CHANGED.has(verdict))
  const most = top ?? Math.max(UNCLEAR_TOP, Math.min(changed.length, TOP))
  const max = group === 'speed' ? Infinity : most
  const sorted = group === 'speed' ? inGroup : [...changed, ...unclear]
  const widest = scaleOf(firstRows(sorted, max).shown)
  const rest = (rest: readonly Effect[]) => [more(rest), '', '', '', '', '', changed.length > most ? '' : '~']
  const table = tableOf(sorted, { max, rest }, [
    text('', ({ name }) => name),
    text('phase', ({ phase }) => (group === 'speed' ? '' : (phase ?? ''))),
    number(a, (effect) => valueText(effect, effect.before)),
    number(b, (effect) => valueText(effect, effect.after)),
    number('[low estimate high] %', changeText),
    { ...text(`±${percent(widest)}`, (effect) => drawn(effect, widest), DRAWING), isDrawing: true },
    text('', ({ verdict }) => WORDS[verdict] ?? verdict),
  ])
  return [{ title: TITLES[group], tables: [table] }]
}

function valueText({ unit }: Effect, value: number | null): string {
  if (value === null) return ''
  return unit === 'bytes' ? size(value) : duration(value)
}

/** `[+3.1 +4.0 +4.9]`, from a factor of two `[×2.1 ×2.3 ×2.4]`; without an interval, or where all runs agree, only the estimate. */
function changeText({ change_share, low_share, high_share }: Effect): string {
  if (change_share === null) return ''
  const text = change_share >= 1 || change_share <= -0.5 ? factor : signed
  if (low_share === null || high_share === null || low_share === high_share) return text(change_share)
  return `[${[low_share, change_share, high_share].map(text).join(' ')}]`
}

/** `×4.1` or `÷4.1`; more than a thousandfold has no useful number. */
function factor(share: number): string {
  const [sign, value] = share >= 0 ? ['×', 1 + share] : ['÷', 1 / (1 + share)]
  return value > 1000 ? `>${sign}1000` : `${sign}${value.toFixed(value >= 9.95 ? 0 : 1)}`
}

/** Columns of drawings are left out first, and not in Markdown. */
const DRAWING = 9
/** Characters on each side of 0. */
const HALF = 10

/** What the drawings of a table reach to: the largest bound, from 5 % to 100 %. */
function scaleOf(effects: readonly Effect[]): number {
  const bounds = effects.flatMap(({ low_share, high_share }) => [Math.abs(low_share ?? 0), Math.abs(high_share ?? 0)])
  return Math.min(1, Math.max(0.05, ...bounds))
}

/** An interval around the line of no change: `     │  ├──●──┤`. */
function drawn({ low_share, change_share, high_share }: Effect, scale: number): string {
  if (low_share === null || change_share === null || high_share === null) return ''
  const at = (share: number) => HALF + Math.round(Math.min(1, Math.max(-1, share / scale)) * HALF)
  const [low, middle, high] = [at(low_share), at(change_share), at(high_share)]
  const character = (i: number) => {
    if (i === middle) return '●'
    if (i < low || i > high) return i === HALF ? '│' : ' '
    if (i === low) return '├'
    if (i === high) return '┤'
    return i === HALF ? '┼' : '─'
  }
  return Array.from({ length: 2 * HALF + 1 }, (_, i) => character(i)).join('')
}

/** In percent. */
function signed(share: number): string {
  const value = 100 * share
  if (value >= 999.95) return '>+999'
  const text = Math.abs(value).toFixed(1)
  return `${value < 0 && Number(text) !== 0 ? '−' : '+'}${text}`
}

function legend({
  before,
  after,
  level_share,
  named_level_share,
  compared_speeds,
  compared_others,
}: Comparison): string[] {
  const runs = Math.min(before.runs, after.runs)
  const level = percent(level_share)
  return [
    `a change of b against a; the unit is the run. Intervals of ${level}, all ${compared_speeds} of speed together and all ${compared_others} others together`,
    `slower, faster: with ${percent(named_level_share)} and 3 runs a side; perhaps: with ${level}; ~: neither`,
    ...(runs < 3
      ? [
          `${plural(runs, 'run')} a side ${runs === 1 ? 'gives' : 'give'} no useful interval: record at least 3, better 5`,
        ]
      : []),
  ]
}
