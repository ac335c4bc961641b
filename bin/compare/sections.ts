import type { Comparison, Effect, EffectGroup, Gate } from '../../lib/cli.ts'
import { firstRows, more, type Section } from '../stats/section.ts'
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

/** A comparison for people: what differs, then changes, regressions first, then what stays. `top`: rows of each table. */
export function comparisonSections(comparison: Comparison, top: number | undefined, gate?: Gate): Section[] {
  const { before, after, differences, is_comparable, effects, findings } = comparison
  const groups = Object.keys(TITLES) as EffectGroup[]
  return [
    {
      title: 'sides',
      facts: [
        ['a', `${before.name}: ${plural(before.runs, 'run')}`],
        ['b', `${after.name}: ${plural(after.runs, 'run')}`],
      ],
    },
    ...(differences.length > 0
      ? [
          {
            title: is_comparable
              ? 'what differs'
              : 'not comparable: marked differences explain other times by themselves',
            tables: [
              {
                columns: [
                  { title: '', isText: true },
                  { title: '' },
                  { title: 'a', isText: true },
                  { title: 'b', isText: true },
                ],
                rows: differences.map(({ what, before, after, is_obstacle }) => [
                  what,
                  is_obstacle ? '!' : '',
                  ...withoutCommon(before, after),
                ]),
              },
            ],
          },
        ]
      : []),
    ...groups.flatMap((group) => groupSection(group, effects, top)),
    ...(findings.length > 0
      ? [
          {
            title: 'findings',
            lines: findings.map(
              ({ change, sentence, runs_before, runs_after }) =>
                `${change} (${runs_before} of ${before.runs}, ${runs_after} of ${plural(after.runs, 'run')}): ${sentence}`,
            ),
          },
        ]
      : []),
    { title: 'how to read it', lines: legend(comparison) },
    ...(gate
      ? [
          {
            title: 'answer',
            lines: [`slower by more than ${percent(gate.limit_share)}: ${ANSWERS[gate.answer]}: ${gate.why}`],
          },
        ]
      : []),
  ]
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

function groupSection(group: EffectGroup, effects: readonly Effect[], top: number | undefined): Section[] {
  const inGroup = effects.filter((effect) => effect.group === group && effect.verdict !== 'same')
  if (inGroup.length === 0) return []
  const changed = inGroup.filter(({ verdict }) => CHANGED.has(verdict))
  const unclear = inGroup.filter(({ verdict }) => !CHANGED.has(verdict))
  const most = top ?? Math.max(UNCLEAR_TOP, Math.min(changed.length, TOP))
  const { shown, rest } = group === 'speed' ? { shown: inGroup, rest: [] } : firstRows([...changed, ...unclear], most)
  const widest = scaleOf(shown)
  const rows = shown.map((effect) => [
    effect.name,
    effect.group === 'speed' ? '' : (effect.phase ?? ''),
    valueText(effect, effect.before),
    valueText(effect, effect.after),
    changeText(effect),
    drawn(effect, widest),
    effect.verdict === 'unclear' ? '~' : effect.verdict,
  ])
  if (rest.length > 0) rows.push([more(rest), '', '', '', '', '', changed.length > most ? '' : '~'])
  return [
    {
      title: TITLES[group],
      tables: [
        {
          columns: [
            { title: '', isText: true },
            { title: 'phase', isText: true },
            { title: 'a' },
            { title: 'b' },
            { title: '[low estimate high] %' },
            { title: `±${percent(widest)}`, isText: true, isDrawing: true, rank: DRAWING },
            { title: '', isText: true },
          ],
          rows,
        },
      ],
    },
  ]
}

function valueText({ unit }: Effect, value: number | null): string {
  if (value === null) return ''
  return unit === 'bytes' ? size(value) : duration(value)
}

/** `[+3.1 +4.0 +4.9]`; without an interval, or where all runs agree, only the estimate. */
function changeText({ change_share, low_share, high_share }: Effect): string {
  if (change_share === null) return ''
  if (low_share === null || high_share === null || low_share === high_share) return signed(change_share)
  return `[${[low_share, change_share, high_share].map(signed).join(' ')}]`
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

/** In percent; more than a tenfold change has no useful number. */
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
    `slower, faster: with ${percent(named_level_share)}; maybe: with ${level}; ~: neither`,
    ...(runs < 3
      ? [
          `${plural(runs, 'run')} a side ${runs === 1 ? 'gives' : 'give'} no useful interval: record at least 3, better 5`,
        ]
      : []),
  ]
}
