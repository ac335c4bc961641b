import { checkGiven } from '../common/given.ts'
import { COMPARISON_SCHEMA, type Comparison, type Effect } from './figures.ts'
import { RUNS_MIN } from './verdict.ts'

/** The answer to "is it slower by more than that?", of all figures of speed. */
export interface Gate {
  readonly limit_share: number
  /** `within`: no figure is slower by more; `worse`: one certainly is; `inconclusive`: neither is certain. */
  readonly answer: 'within' | 'worse' | 'inconclusive'
  readonly why: string
}

/** Compares the intervals of speed with a limit, such as 0.05. */
export function gateOf(comparison: Comparison, limitShare: number): Gate {
  checkGiven('gateOf', comparison, [COMPARISON_SCHEMA], 'compareRuns(before, after) returns one')
  const { before, after, differences, is_comparable, effects } = comparison
  const answer = (answer: Gate['answer'], why: string): Gate => ({ limit_share: limitShare, answer, why })
  const runs = Math.min(before.runs, after.runs)
  if (runs < RUNS_MIN)
    return answer('inconclusive', `${runs} ${runs === 1 ? 'run' : 'runs'} a side: it takes ${RUNS_MIN}`)
  if (!is_comparable) {
    const [first] = differences
    return answer('inconclusive', `the sides are not comparable: ${first!.what}: ${first!.before} and ${first!.after}`)
  }
  const speeds = effects.filter(({ group }) => group === 'speed')
  if (speeds.length === 0) return answer('inconclusive', 'the logs contain no calls')
  const worse = speeds.filter(({ low_share, verdict }) => verdict === 'slower' && low_share! > limitShare)
  if (worse.length > 0) return answer('worse', `${worse.map(describe).join(', ')}`)
  const open = speeds.filter(({ high_share }) => high_share === null || high_share > limitShare)
  if (open.length > 0)
    return answer('inconclusive', `${open.map(describe).join(', ')}: more runs make intervals smaller`)
  return answer('within', 'no figure of speed is slower by more')
}

function describe({ name, low_share, high_share }: Effect): string {
  if (low_share === null || high_share === null) return `${name} is not in enough runs`
  return `${name} ${signed(low_share)} to ${signed(high_share)}`
}

const signed = (share: number) => `${share < 0 ? '−' : '+'}${(100 * Math.abs(share)).toFixed(1)} %`
