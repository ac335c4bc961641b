/** How often the diagnosis is right, with Wilson's intervals of 95 %. */
import { brief } from './quiet.mjs'

/** Commands that print findings. */
export const COMMANDS = ['record', 'convert', 'why']
const CONFIDENCES = ['high', 'medium', 'low']

/** Does a finding name a cause: by one of its rules, and as the cause asks? */
const names = ({ rules, isNamed }, finding) => (rules?.includes(finding.rule) ?? true) && (isNamed?.(finding) ?? true)

/**
 * Is the cause, or one of two, named first; is it found at all? Of causes that no log shows, nothing may be named with high confidence; of one whose cost
 * no log contains, being found is enough; of what is no cause, none of its rules may find anything.
 */
export function resultOf(cause, findings) {
  const [first] = findings
  const all = cause.causes ?? [cause]
  const isFound = !cause.isUnseen && all.every((one) => findings.some((finding) => names(one, finding)))
  const isFirst = cause.isCostUnknown ? isFound : first !== undefined && all.some((one) => names(one, first))
  const isRight = cause.isHarmless ? !isFound : cause.isUnseen ? first?.confidence !== 'high' : isFirst
  return { first: first ? brief(first) : null, isRight, isFound }
}

const Z = 1.96

/** Share of `right` in `count`, and its interval (Wilson 1927, without correction for continuity). */
export function shareOf(right, count) {
  if (count === 0) return { right, count, share: null, low: null, high: null }
  const share = right / count
  const middle = share + (Z * Z) / (2 * count)
  const half = Z * Math.sqrt((share * (1 - share)) / count + (Z * Z) / (4 * count * count))
  const whole = 1 + (Z * Z) / count
  return { right, count, share, low: Math.max(0, (middle - half) / whole), high: Math.min(1, (middle + half) / whole) }
}

const all = (list, is) => shareOf(list.filter(is).length, list.length)

/** Runs of which the limits of rules may be changed, and those that are only counted: strengths of a cause differ by its number. */
const HALVES = { fitted: ({ number }) => number % 2 === 0, reported: ({ number }) => number % 2 === 1 }

/** How often first findings are right, by the confidence that they have. */
const calibrationOf = (claims) =>
  Object.fromEntries(
    CONFIDENCES.map((what) => [
      what,
      all(
        claims.filter(([claimed]) => claimed === what),
        ([, isRight]) => isRight,
      ),
    ]),
  )

const claimsOf = (runs) => runs.flatMap(({ first, isRight }) => (first ? [[first.confidence, isRight]] : []))

/**
 * Of each command. `first`: the first finding names the cause; `fitted` and `reported`: of runs of even and of odd numbers; `found`: any does;
 * `abstained`: nothing is named; `wrong`: another cause is named first; `pairs`: one of two causes is named first, `both`: both are found;
 * `unseen`: of causes that no log shows, nothing is named with high confidence; `harmless`: of what is no cause, its rules find nothing; `quiet`: no finding of an undisturbed run is false;
 * `confidence`: first findings that are right, by what they say of themselves.
 */
export function scoreOf(planted, quiet) {
  return Object.fromEntries(
    COMMANDS.map((by) => {
      const asked = planted.flatMap(({ kind, number, commands }) =>
        commands[by] ? [{ kind, number, ...commands[by] }] : [],
      )
      const runsOf = (kind) => asked.filter((run) => run.kind === kind)
      const single = runsOf('single')
      const isRight = (run) => run.isRight
      const claims = [
        ...claimsOf(asked.filter(({ kind }) => kind !== 'unseen' && kind !== 'harmless')),
        ...quiet.flatMap(({ findings }) =>
          findings[by].slice(0, 1).map(({ confidence, isTrue }) => [confidence, isTrue]),
        ),
      ]
      return [
        by,
        {
          first: all(single, isRight),
          fitted: all(single.filter(HALVES.fitted), isRight),
          reported: all(single.filter(HALVES.reported), isRight),
          found: all(single, ({ isFound }) => isFound),
          abstained: all(single, ({ first }) => !first),
          wrong: all(single, ({ first, isRight }) => first && !isRight),
          pairs: all(runsOf('pair'), isRight),
          both: all(runsOf('pair'), ({ isFound }) => isFound),
          unseen: all(runsOf('unseen'), isRight),
          harmless: all(runsOf('harmless'), isRight),
          quiet: all(quiet, ({ findings }) => findings[by].every(({ isTrue }) => isTrue)),
          confidence: calibrationOf(claims),
        },
      ]
    }),
  )
}

const percent = (share) => `${(100 * share).toFixed(0)} %`

const textOf = ({ right, count, share, low, high }) =>
  share === null ? '' : `${right} of ${count} (${percent(share)}, ${percent(low)} to ${percent(high)})`

const ROWS = {
  first: 'single causes: named first',
  fitted: 'of runs 1, 3, 5 … (limits may be fitted to them)',
  reported: 'of runs 2, 4 … (only counted)',
  found: 'found at all',
  abstained: 'nothing named',
  wrong: 'another named first',
  pairs: 'two causes: one of them first',
  both: 'both found',
  unseen: 'causes that no log shows: nothing named with high confidence',
  harmless: 'what is no cause: not named',
  quiet: 'quiet runs: no finding that is false',
}

/** The score as a table. */
export function scoreTable(score) {
  const commands = Object.keys(score)
  const row = (title, of) => {
    const texts = commands.map((by) => textOf(of(score[by])))
    return texts.some((text) => text !== '') ? [`| ${title} | ${texts.join(' | ')} |`] : []
  }
  return [
    `| | ${commands.join(' | ')} |`,
    `|---|${commands.map(() => '---|').join('')}`,
    ...Object.entries(ROWS).flatMap(([key, title]) => row(title, (of) => of[key])),
    ...CONFIDENCES.flatMap((what) => row(`confidence ${what}: right`, ({ confidence }) => confidence[what])),
  ].join('\n')
}

/** `high 4 of 4, medium 1 of 1`: first findings that are right, of all commands. */
const confidencesOf = (runs) =>
  Object.entries(calibrationOf(claimsOf(runs.flatMap(({ commands }) => Object.values(commands)))))
    .filter(([, { count }]) => count > 0)
    .map(([what, { right, count }]) => `${what} ${right} of ${count}`)
    .join(', ')

/** A row for each cause: how often each command names it first, and how often first findings are right by their confidence. */
export function causesTable(planted, quiet, titleOf) {
  const rows = [...new Set(planted.map(({ cause }) => cause))].map((id) => {
    const runs = planted.filter(({ cause }) => cause === id)
    const counts = COMMANDS.map((by) => {
      const asked = runs.flatMap(({ commands }) => commands[by] ?? [])
      return asked.length === 0 ? '' : `${asked.filter(({ isRight }) => isRight).length} of ${asked.length}`
    })
    return `| ${id} | ${titleOf(id)} | ${counts.join(' | ')} | ${confidencesOf(runs)} |`
  })
  const right = (by) => quiet.filter(({ findings }) => findings[by].every(({ isTrue }) => isTrue)).length
  const quietRow = `| quiet | no finding that is false | ${COMMANDS.map((by) => `${right(by)} of ${quiet.length}`).join(' | ')} | |`
  return [
    `| cause | | ${COMMANDS.join(' | ')} | confidence |`,
    `|---|---|${COMMANDS.map(() => '---|').join('')}---|`,
    ...rows,
    ...(quiet.length > 0 ? [quietRow] : []),
  ].join('\n')
}
