import { plural } from '../../model/units.ts'
import type { Undetermined } from '../common/figures.ts'
import type { Summary } from '../summary/figures.ts'
import type { SchedulingFigures } from './figures.ts'
import type { ThreadHistory } from './thread-history.ts'

const WITH_SCHED = 'record with --sched (needs root) and give its recording of the scheduler, too'

/** What is not known of the threads of workers, and why. */
export function unknownScheduling(
  { operators, attributes }: Summary,
  scheduling: SchedulingFigures | undefined,
  threads: ThreadHistory,
): Undetermined[] {
  const what = 'scheduling'
  const { late, isFull } = threads
  const found: Undetermined[] = []
  if (isFull) {
    const why = `more than ${threads.heldMax} states and switches of threads would have to be held in memory`
    found.push({ what, why, hint: 'record for a shorter time' })
  } else if (!scheduling) found.push({ what, ...missing(operators, attributes, threads) })
  if (late > 0) {
    const why = `${plural(late, 'state')} of threads, late in the log, ${late === 1 ? 'is' : 'are'} missing in the times of operators`
    found.push({ what: `${what}.workers`, why })
  }
  if (!scheduling) return found
  const { takers, workers } = scheduling
  if (takers === 'none') {
    const why = 'the states of threads that a log contains do not show who took a CPU'
    found.push({ what: `${what}.workers.takers`, why, hint: WITH_SCHED })
  }
  if (workers.some(({ woken_ns }) => woken_ns === null)) {
    const why = 'the times at which threads were woken are not recorded'
    found.push({ what: `${what}.workers.woken_ns`, why, hint: takers === 'none' ? WITH_SCHED : undefined })
  }
  return found
}

function missing(
  operators: number,
  attributes: Summary['attributes'],
  threads: ThreadHistory,
): Omit<Undetermined, 'what'> {
  if (operators === 0) return { why: 'no operators of workers were recorded' }
  if (threads.source !== 'log') {
    return { why: 'the recording of the scheduler contains no thread of a worker', hint: 'give that of the same run' }
  }
  const { states } = attributes
  const hasReason = states !== undefined && !`${states}`.startsWith('by ')
  return {
    why: hasReason ? `the log contains no states of threads: ${states}` : 'the log contains no states of threads',
    hint: `record with \`ggml2perfetto record\`, which records them where perf_event_open is allowed, or ${WITH_SCHED}`,
  }
}
