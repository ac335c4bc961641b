/** How often the diagnosis is right, with Wilson's intervals of 95 %. */

const Z = 1.96

/** Share of `right` in `count`, and its interval (Wilson 1927, without correction for continuity). */
export function shareOf(right, count) {
  if (count === 0) return { right, count, share: null, low: null, high: null }
  const share = right / count
  const middle = share + (Z * Z) / (2 * count)
  const half = Z * Math.sqrt((share * (1 - share)) / count + (Z * Z) / (4 * count * count))
  const whole = 1 + (Z * Z) / count
  return { right, count, share, low: (middle - half) / whole, high: (middle + half) / whole }
}

const all = (list, is) => shareOf(list.filter(is).length, list.length)

/**
 * Of each command. `first`: the first finding names the cause; `found`: any does; `abstained`: nothing is named; `wrong`: another cause is
 * named first; `pairs`: one of two causes is named first, `both`: both are found; `unseen`: of causes that no log shows, nothing is
 * named with high confidence; `quiet`: no finding of an undisturbed run is false; `confidence`: first findings that are right, by what they say of
 * themselves.
 */
export function scoreOf(planted, quiet, commands) {
  return Object.fromEntries(
    commands.map((by) => {
      const asked = planted.flatMap(({ kind, commands }) => (commands[by] ? [{ kind, ...commands[by] }] : []))
      const of = (kind) => asked.filter((run) => run.kind === kind)
      const single = of('single')
      const named = asked.filter(({ kind, first }) => first && kind !== 'unseen')
      const claims = [
        ...named.map(({ first, isRight }) => [first.confidence, isRight]),
        ...quiet.flatMap(({ findings }) =>
          findings[by].slice(0, 1).map(({ confidence, isTrue }) => [confidence, isTrue]),
        ),
      ]
      const confidences = ['high', 'medium', 'low']
      return [
        by,
        {
          first: all(single, ({ isRight }) => isRight),
          found: all(single, ({ isFound }) => isFound),
          abstained: all(single, ({ first }) => !first),
          wrong: all(single, ({ first, isRight }) => first && !isRight),
          pairs: all(of('pair'), ({ isRight }) => isRight),
          both: all(of('pair'), ({ isFound }) => isFound),
          unseen: all(of('unseen'), ({ isRight }) => isRight),
          quiet: all(quiet, ({ findings }) => findings[by].every(({ isTrue }) => isTrue)),
          confidence: Object.fromEntries(
            confidences.map((what) => [
              what,
              all(
                claims.filter(([claimed]) => claimed === what),
                ([, isRight]) => isRight,
              ),
            ]),
          ),
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
  found: 'found at all',
  abstained: 'nothing named',
  wrong: 'another named first',
  pairs: 'two causes: one of them first',
  both: 'both found',
  unseen: 'causes that no log shows: nothing named with high confidence',
  quiet: 'quiet runs: no finding that is false',
}

/** The score as a table. */
export function scoreTable(score) {
  const commands = Object.keys(score)
  const row = (title, of) => `| ${title} | ${commands.map((by) => textOf(of(score[by]))).join(' | ')} |`
  return [
    `| | ${commands.join(' | ')} |`,
    `|---|${commands.map(() => '---|').join('')}`,
    ...Object.entries(ROWS).map(([key, title]) => row(title, (of) => of[key])),
    ...['high', 'medium', 'low'].map((what) => row(`confidence ${what}: right`, ({ confidence }) => confidence[what])),
  ].join('\n')
}
