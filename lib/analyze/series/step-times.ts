import { blockOf } from '../../model/blocks.ts'
import { putAt } from '../../model/by-id.ts'
import type { TensorEvent } from '../../model/events.ts'
import { parseTensorName } from '../../model/tensors.ts'
import type { CallRows } from '../calls/call-rows.ts'
import type { CallParts, OffCpu, Statistic } from '../common/statistic.ts'
import type { Defined } from '../graph/defined.ts'
import type { CallOperators } from '../graph/operators/call-operators.ts'
import type { Steps } from '../graph/operators/steps.ts'
import type { ThreadHistory } from '../threads/thread-history.ts'
import type { StepGroup, StepSeries, StepsOfCall } from './figures.ts'

/** Groups at most; further steps are in the last one. Models have 20 to 60. */
const GROUPS_MAX = 256

/** Threads whose latest call is remembered. */
const THREADS_MAX = 64

/** Barriers, those within ops too, and gaps of steps in which no thread lost its CPU, in ns. */
interface Overhead {
  sumNs: number
  steps: number
}

/** {@link StepSeries}: for each call, the time of its steps by group, as they ran and without preemption. */
export class StepTimes implements Statistic {
  private readonly groups: StepGroup[] = []
  private readonly byKey = new Map<string, number>()
  private readonly byTensor: number[] = []
  private readonly overheads: Overhead[] = []
  private readonly calls = new Map<number, StepsOfCall>()
  private hasStates = false
  /** End of the latest call of a thread. */
  private readonly ends = new Map<number, number>()
  /** Calls that were kept when those without a row were forgotten last. */
  private kept = 1024
  /** By step: its longest worker without the time that it lost, and whether any lost some. */
  private longestNs = new Float64Array(1024)
  private isDisturbed = new Uint8Array(1024)

  /** `table`: the calls that are kept. */
  constructor(
    private readonly defined: Defined,
    private readonly threads: ThreadHistory,
    private readonly table: CallRows,
  ) {}

  call({ operators, steps, off }: CallParts): void {
    const { event } = operators
    if (!event || !this.table.has(event.call)) return
    if (operators.isFurther) {
      this.calls.delete(event.call)
      return
    }
    if (off) this.hasStates = true
    this.findLongest(operators, steps, off)
    const lists: Lists = { steps: [], time_ns: [], compute_ns: [], undisturbed_ns: [] }
    let [workers, at] = [0, 0]
    for (const { count } of steps.runs(event.call)) {
      let untilNs = steps.startNs[at]!
      for (const end = at + count; at < end; at++) {
        this.addStep(lists, steps, at, untilNs)
        untilNs = Math.max(untilNs, steps.waitEndNs[at]!)
        workers = Math.max(workers, steps.workers[at]!)
      }
    }
    const [insideNs, beforeNs] = off ? this.lostOutside(operators, off) : [0, 0]
    this.calls.set(event.call, {
      call: event.call,
      workers,
      cache_tokens: this.cacheTokens(steps),
      ...lists,
      preempted_outside_ns: insideNs,
      preempted_before_ns: beforeNs,
      major_faults: event.resources?.majorFaults ?? null,
    })
    if (this.calls.size > 2 * this.kept) this.thin()
  }

  /** Forgets calls whose rows were dropped. */
  private thin(): void {
    for (const call of this.calls.keys()) if (!this.table.has(call)) this.calls.delete(call)
    this.kept = Math.max(this.calls.size, 1024)
  }

  private findLongest(operators: CallOperators, steps: Steps, off: OffCpu | undefined): void {
    const { count, startNs, endNs, innerWaitNs } = operators
    if (this.longestNs.length <= steps.count) {
      this.longestNs = new Float64Array(2 * steps.count)
      this.isDisturbed = new Uint8Array(2 * steps.count)
    }
    const { longestNs, isDisturbed } = this
    longestNs.fill(0, 0, steps.count + 1)
    isDisturbed.fill(0, 0, steps.count + 1)
    for (let i = 0; i < count; i++) {
      const step = steps.of[i]!
      if (step < 0) continue
      const lostNs = off ? off.preemptedNs[i]! : 0
      const ns = endNs[i]! - startNs[i]! - innerWaitNs[i]! - lostNs
      if (ns > longestNs[step]!) longestNs[step] = ns
      if (lostNs > 0) isDisturbed[step] = 1
      // Who lost its CPU at the barrier is late at the next step.
      if (off && off.waitPreemptedNs[i]! > 0) isDisturbed[step] = isDisturbed[step + 1] = 1
    }
  }

  private addStep(lists: Lists, steps: Steps, step: number, untilNs: number): void {
    const group = this.groupOf(steps.tensor[step]!, steps.last[step]!)
    const timeNs = Math.max(steps.waitEndNs[step]! - untilNs, 0)
    const longestNs = Math.min(this.longestNs[step]!, timeNs)
    const overhead = this.overheads[group]!
    let undisturbedNs = timeNs
    if (this.isDisturbed[step] === 0) {
      overhead.sumNs += timeNs - longestNs
      overhead.steps++
    } else {
      const usualNs = overhead.steps > 0 ? overhead.sumNs / overhead.steps : 0
      undisturbedNs = Math.min(timeNs, longestNs + usualNs)
    }
    const computeNs = Math.min(steps.endNs[step]! - steps.startNs[step]!, timeNs)
    add(lists.steps, group, 1)
    add(lists.time_ns, group, timeNs)
    add(lists.compute_ns, group, computeNs)
    add(lists.undisturbed_ns, group, undisturbedNs)
  }

  /** Time that the call's thread, which is worker 0, lost outside of its operators, and before the call. */
  private lostOutside({ event, count, worker }: CallOperators, off: OffCpu): readonly [inside: number, before: number] {
    const { tid, startNs, endNs } = event!
    if (tid < 0 || !this.threads.of(tid)) return [0, 0]
    let insideNs = this.lostNs(tid, startNs, endNs)
    for (let i = 0; i < count; i++) if (worker[i] === 0) insideNs -= off.preemptedNs[i]! + off.waitPreemptedNs[i]!
    const fromNs = this.ends.get(tid) ?? startNs
    this.ends.set(tid, endNs)
    if (this.ends.size > THREADS_MAX) this.ends.delete(this.ends.keys().next().value!)
    return [Math.max(insideNs, 0), this.lostNs(tid, fromNs, startNs)]
  }

  private lostNs(tid: number, startNs: number, endNs: number): number {
    const found = this.threads.preemptedIn(tid, startNs, endNs)
    let lostNs = 0
    for (let i = 0; i < found.length; i += 2) lostNs += found[i + 1]! - found[i]!
    return lostNs
  }

  /** Rows of K that the first attention of a call reads. */
  private cacheTokens({ count, tensor }: Steps): number | null {
    const { tensors, names } = this.defined
    for (let step = 0; step < count; step++) {
      const { op, ne, sources } = tensors[tensor[step]!]!
      const name = names.text(op)
      if (name === 'FLASH_ATTN_EXT') return tensors[sources[1] ?? -1]?.ne?.[1] ?? null
      if (name === 'SOFT_MAX' && ne) return ne[0] ?? null
    }
    return null
  }

  private groupOf(first: number, last: number): number {
    const known = this.byTensor[first]
    return known === undefined || known < 0 ? this.findGroup(first, last) : known
  }

  private findGroup(first: number, last: number): number {
    const { tensors, names } = this.defined
    const [node, result] = [tensors[first]!, tensors[last]!]
    const op = (first === last ? [node] : [node, result]).map((tensor) => names.text(tensor.op)).join('+')
    const { role } = parseTensorName(names.text(result.name))
    const weight = /^MUL_MAT/.test(op) ? this.weightOf(node) : undefined
    const type = weight ? names.text(weight.type) : ''
    const weight_elements = weight?.ne?.reduce((product, n) => product * n, 1) ?? 0
    const [weight_columns = 0, weight_rows = 0] = weight?.ne ?? []
    const key = `${op}\0${role}\0${type}\0${weight_elements}\0${weight_columns}`
    let group = this.byKey.get(key)
    if (group === undefined) {
      group = Math.min(this.groups.length, GROUPS_MAX - 1)
      if (group === this.groups.length) {
        const block = blockOf(role, names.text(node.op))
        this.groups.push({ op, role, block, type, weight_elements, weight_columns, weight_rows })
        this.overheads.push({ sumNs: 0, steps: 0 })
      }
      this.byKey.set(key, group)
    }
    putAt(this.byTensor, first, group, -1)
    return group
  }

  private weightOf({ sources }: TensorEvent): TensorEvent | undefined {
    const { tensors, isWeight } = this.defined
    return sources.map((source) => tensors[source]!).find((source) => source && isWeight(source))
  }

  finish(): { readonly steps: StepSeries } {
    this.thin()
    const calls = [...this.calls.values()].sort((a, b) => a.call - b.call)
    return { steps: { groups: this.groups, calls, has_states: this.hasStates } }
  }
}

type Lists = Record<'steps' | 'time_ns' | 'compute_ns' | 'undisturbed_ns', number[]>

function add(list: number[], at: number, value: number): void {
  while (list.length <= at) list.push(0)
  list[at]! += value
}
