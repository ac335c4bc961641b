import type { ModelBlock } from '../../model/blocks.ts'
import { getOrMake } from '../../model/default-map.ts'
import type { Phase } from '../../model/events.ts'
import type { Distribution } from '../common/figures.ts'
import { MergedSketch } from '../common/sketches.ts'
import { plus } from '../graph/work.ts'
import { computingNs } from './computing.ts'
import type { OperatorFigures, OperatorRow } from './figures.ts'

/** What operators can be grouped by. */
export const GROUP_KEYS = ['op', 'role', 'layer', 'block', 'type', 'backend', 'phase', 'shape', 'worker'] as const

/** One of {@link GROUP_KEYS}. */
export type GroupKey = (typeof GROUP_KEYS)[number]

/** The part of all operators of a phase that is in a group. The parts of all groups sum to 1. */
export interface GroupShare {
  /** Of wall time; null by worker. */
  readonly wall_share: number | null
  /** Of the time of all workers in operators. */
  readonly operator_time_share: number
}

/** The total of a counter in a group. */
export interface GroupCounter {
  readonly total: number
  readonly per_operator: number
  /** Per byte read or written; null where the bytes are not known or 0. */
  readonly per_byte: number | null
}

/**
 * Operators with the same values of some keys; the others are null where their values differ. A step is computed by all workers
 * together: by worker, the figures of steps (wall time, FLOP, bytes, counters, quantiles) are null.
 */
export interface OperatorGroup {
  readonly op: string | null
  readonly role: string | null
  /** -1: in no layer. */
  readonly layer: number | null
  readonly block: ModelBlock | null
  readonly type: string | null
  readonly backend: string | null
  readonly phase: Phase | 'none' | null
  readonly shape: string | null
  /** Only by worker. */
  readonly worker: number | null
  readonly steps: number | null
  readonly executions: number
  /** From the first start to the end of the last barrier, over all steps. */
  readonly wall_ns: number | null
  /** In operators, waiting at the barrier after them, and waiting at barriers in them, over all workers. */
  readonly operator_time_ns: number
  readonly wait_ns: number
  readonly inner_wait_ns: number | null
  /** Part of `operator_time_ns` in which the threads had a CPU; the same where it was not recorded. */
  readonly computing_ns: number
  readonly preempted_ns: number | null
  readonly blocked_ns: number | null
  /** Steps in which the worker was the last to end; only by worker. */
  readonly last: number | null
  /** Per operator. */
  readonly mean_ns: number
  /** Of operators; null by worker, or where the Analysis has no distributions. */
  readonly duration: Distribution | null
  /** Null where they are not known for one of the rows. */
  readonly flop: number | null
  readonly bytes_read: number | null
  readonly bytes_written: number | null
  readonly weight_bytes: number | null
  /** Bytes are an upper bound: the choice of experts was not recorded. */
  readonly bytes_are_max: boolean
  /** 10⁹ bytes read and written per second of wall time. */
  readonly gb_per_s: number | null
  readonly gflop_per_s: number | null
  /** Arithmetic intensity, over the bytes read and written. */
  readonly flop_per_byte: number | null
  /** By phase; phases without operators of the group are missing. */
  readonly shares: Readonly<Partial<Record<Phase | 'none', GroupShare>>>
  /** By key. */
  readonly counters: Readonly<Record<string, GroupCounter>>
}

/** Sums of a phase. */
interface PhaseSums {
  wallNs: number
  timeNs: number
}

type Part = OperatorRow['workers'][number]
type Labels = Record<GroupKey, string | number | null>

/** Sums of a group. */
class Group {
  executions = 0
  timeNs = 0
  computingNs = 0
  waitNs = 0
  last = 0
  readonly phases = new Map<Phase | 'none', PhaseSums>()
  /** Figures of steps, which are of all workers. */
  readonly steps = { steps: 0, wallNs: 0, innerWaitNs: 0, flop: 0, read: 0, written: 0, weights: 0 }
  preemptedNs: number | null = 0
  blockedNs: number | null = 0
  bytesAreMax = false
  readonly counters = new Map<string, number>()
  /** Undefined where a row has no distribution. */
  sketch: MergedSketch | undefined = new MergedSketch()

  constructor(readonly labels: Labels) {}

  /** Adds a row, or the part of it that one worker computed. */
  add(row: OperatorRow, part: OperatorRow | Part): void {
    for (const key of GROUP_KEYS) if (key !== 'worker' && this.labels[key] !== row[key]) this.labels[key] = null
    this.executions += part.executions
    this.timeNs += part.operator_time_ns
    this.computingNs += computingNs(part)
    this.waitNs += part.wait_ns
    const sums = getOrMake(this.phases, row.phase, () => ({ wallNs: 0, timeNs: 0 }))
    sums.timeNs += part.operator_time_ns
    if ('last' in part) {
      this.last += part.last
      return
    }
    sums.wallNs += row.wall_ns
    this.addSteps(row)
  }

  private addSteps(row: OperatorRow): void {
    const { steps: sums } = this
    sums.steps += row.steps
    sums.wallNs += row.wall_ns
    sums.innerWaitNs += row.inner_wait_ns
    sums.flop = plus(sums.flop, row.flop)
    sums.read = plus(sums.read, row.bytes_read)
    sums.written = plus(sums.written, row.bytes_written)
    sums.weights = plus(sums.weights, row.weight_bytes)
    this.preemptedNs = both(this.preemptedNs, row.preempted_ns)
    this.blockedNs = both(this.blockedNs, row.blocked_ns)
    this.bytesAreMax ||= row.bytes_are_max
    for (const [key, value] of Object.entries(row.counters))
      this.counters.set(key, (this.counters.get(key) ?? 0) + value)
    if (row.duration && row.buckets) this.sketch?.add(row.duration, row.buckets)
    else this.sketch = undefined
  }

  finish(isByWorker: boolean, totals: ReadonlyMap<Phase | 'none', PhaseSums>): OperatorGroup {
    const { steps: sums, executions, timeNs } = this
    const ofSteps = <T>(value: T) => (isByWorker ? null : value)
    const known = (value: number) => (isByWorker || value < 0 ? null : value)
    const bytes = known(plus(sums.read, sums.written))
    const per = (value: number | null, divisor: number | null) =>
      value === null || divisor === null || divisor === 0 ? null : value / divisor
    const shares = [...this.phases].map(([phase, { wallNs, timeNs }]) => {
      const all = totals.get(phase)!
      return [phase, { wall_share: ofSteps(share(wallNs, all.wallNs)), operator_time_share: share(timeNs, all.timeNs) }]
    })
    return {
      ...(this.labels as Pick<OperatorGroup, GroupKey>),
      steps: ofSteps(sums.steps),
      executions,
      wall_ns: ofSteps(sums.wallNs),
      operator_time_ns: timeNs,
      wait_ns: this.waitNs,
      inner_wait_ns: ofSteps(sums.innerWaitNs),
      computing_ns: this.computingNs,
      preempted_ns: ofSteps(this.preemptedNs),
      blocked_ns: ofSteps(this.blockedNs),
      last: isByWorker ? this.last : null,
      mean_ns: share(timeNs, executions),
      duration: ofSteps(this.sketch?.finish() ?? null),
      flop: known(sums.flop),
      bytes_read: known(sums.read),
      bytes_written: known(sums.written),
      weight_bytes: known(sums.weights),
      bytes_are_max: this.bytesAreMax,
      gb_per_s: per(bytes, sums.wallNs),
      gflop_per_s: per(known(sums.flop), sums.wallNs),
      flop_per_byte: per(known(sums.flop), bytes),
      shares: Object.fromEntries(shares),
      counters: Object.fromEntries(
        [...this.counters].map(([key, total]) => [
          key,
          { total, per_operator: share(total, executions), per_byte: per(total, bytes) },
        ]),
      ),
    }
  }
}

const both = (a: number | null, b: number | null) => (a === null || b === null ? null : a + b)
const share = (part: number, whole: number) => (whole > 0 ? part / whole : 0)

/**
 * Sums operators up by any of {@link GROUP_KEYS}; without keys, all in one group. The groups with the most wall time are first (by worker,
 * the workers in order).
 */
export function groupOperators(
  analysis: { readonly operators: OperatorFigures },
  by: readonly GroupKey[],
): OperatorGroup[] {
  const isByWorker = by.includes('worker')
  const keys = GROUP_KEYS.filter((key) => key !== 'worker' && by.includes(key)) as Exclude<GroupKey, 'worker'>[]
  const groups = new Map<string, Group>()
  const totals = new Map<Phase | 'none', PhaseSums>()
  const add = (row: OperatorRow, part: OperatorRow | Part, worker: number | null) => {
    const key = JSON.stringify([worker, ...keys.map((key) => row[key])])
    const group = getOrMake(groups, key, () => {
      const { op, role, layer, block, type, backend, phase, shape } = row
      return new Group({ op, role, layer, block, type, backend, phase, shape, worker })
    })
    group.add(row, part)
  }
  for (const row of analysis.operators.rows) {
    const all = totals.get(row.phase) ?? { wallNs: 0, timeNs: 0 }
    totals.set(row.phase, { wallNs: all.wallNs + row.wall_ns, timeNs: all.timeNs + row.operator_time_ns })
    if (!isByWorker) add(row, row, null)
    else for (const part of row.workers) add(row, part, part.worker)
  }
  const made = [...groups.values()].map((group) => group.finish(isByWorker, totals))
  return isByWorker
    ? made.sort((a, b) => a.worker! - b.worker! || b.operator_time_ns - a.operator_time_ns)
    : made.sort((a, b) => b.wall_ns! - a.wall_ns!)
}
