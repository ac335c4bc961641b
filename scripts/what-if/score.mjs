/** What trials show: errors, coverage and width of intervals, and each miss. */
import { sideText } from './draw.mjs'
import { EXCESS_MAX } from './steady.mjs'

/** An error above this is a miss, as is a figure outside of its interval. */
const ERROR_MAX = 0.12

/** A prediction, and what was measured. */
export function compared(what, { expected, low, high, why }, measured) {
  if (expected === null) return { what, measured, why }
  const error = expected / measured - 1
  const half_width = (high - low) / 2 / expected
  return { what, measured, expected, low, high, error, half_width, isWithin: measured >= low && measured <= high }
}

/** The one in the middle. */
export const medianOf = (values) => {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted.length === 0 ? NaN : (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2
}
const shareOf = (list, isTrue) => list.filter(isTrue).length / list.length
const percent = (share) => `${(100 * share).toFixed(1)} %`

/** Is it far off, or outside of its interval? */
export const isMiss = ({ error, isWithin }) => !isWithin || Math.abs(error) > ERROR_MAX
const partOf = (trial) => trial.figures.map((figure) => ({ ...figure, trial }))

/** A row of the table: of some trials. */
function row(name, trials) {
  const all = trials.flatMap(partOf)
  const said = all.filter(({ expected }) => expected !== undefined)
  const errors = said.map(({ error }) => Math.abs(error))
  return [
    name,
    `${said.length}`,
    `${all.length - said.length}`,
    percent(medianOf(errors)),
    percent(shareOf(errors, (error) => error <= ERROR_MAX)),
    percent(shareOf(said, ({ isWithin }) => isWithin)),
    percent(medianOf(said.map(({ half_width }) => half_width))),
  ]
}

const HEAD = [
  'change',
  'predicted',
  'refused',
  'median error',
  `≤ ${100 * ERROR_MAX} %`,
  'within the interval',
  'median half-width',
]

/** The table, in Markdown, and the misses; before them by how much recordings of the same differ. */
export function scoreText(trials) {
  const kinds = [...new Set(trials.map(({ kind }) => kind))]
  const rows = [
    ...kinds.map((kind) =>
      row(
        kind,
        trials.filter((trial) => trial.kind === kind),
      ),
    ),
    row('all', trials),
  ]
  const line = (cells) => `| ${cells.join(' | ')} |`
  const misses = trials.flatMap(partOf).filter((figure) => figure.expected !== undefined && isMiss(figure))
  const drifts = trials.map(({ drift }) => Math.abs(drift))
  const excesses = trials.flatMap(({ disturbed }) => Object.values(disturbed).flat()).map(({ excess }) => excess ?? 0)
  const slowed = excesses.filter((excess) => excess > EXCESS_MAX).length
  return [
    `${trials.length} trials; the TPOT of the same run, recorded again, differed by ${percent(medianOf(drifts))} in the median, by ${percent(Math.max(...drifts))} at most.`,
    ...(slowed > 0
      ? [
          `The reference took too long beside ${slowed} of ${excesses.length} recordings, also of those that were made again.`,
        ]
      : []),
    '',
    line(HEAD),
    line(HEAD.map((_, i) => (i === 0 ? '---' : '---:'))),
    ...rows.map(line),
    '',
    `${misses.length} misses:`,
    '',
    ...misses.map(missText),
  ].join('\n')
}

const ms = (ns) => `${(ns / 1e6).toPrecision(3)} ms`

function missText({ trial, what, measured, expected, low, high, error }) {
  const { seed, number, before, changes } = trial
  return `- ${seed}/${number}: ${sideText(before)}; ${JSON.stringify(changes)}: ${what} ${ms(expected)} (${ms(low)} to ${ms(high)}), measured ${ms(measured)}, ${percent(error)}`
}
