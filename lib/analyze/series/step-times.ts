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
import type { AttentionShape, StepGroup, StepSeries, StepsOfCall } from './figures.ts'

/** Groups at most; further steps are in the last one. Models have 20 to 60. */
const GROUPS_MAX = 256

/** Threads whose latest call is remembered. */
const THREADS_MAX = 64
/** Between two of its operators, a worker may have lost its CPU where it takes at least this. */
const GAP_MIN_NS = 20_000

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
  /** By group: in decode, and elsewhere, where steps are longer. */
  private readonly overheads: (readonly [decode: Overhead, other: Overhead])[] = []
  private readonly calls = new Map<number, StepsOfCall>()
  private hasStates = false
  /** End of the latest call of a thread. */
  private readonly ends = new Map<number, number>()
  /** Calls that were kept when those without a row were forgotten last. */
  private kept = 1024
  /** By step: its longest worker without the time that it lost, and whether any lost some. */
  private longestNs = new Float64Array(1024)
  private isDisturbed = new Uint8Array(1024)
  /** By worker of the latest call: the end of its operator before. */
  private readonly doneNs: number[] = []
  /** Time that worker 0 lost between steps of the latest call. */
  private lostBetweenNs = 0

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
    const runs = steps.runs(event.call)
    this.findLongest(operators, steps, off)
    this.lostBetweenNs = 0
    if (off) this.findLostBetween(operators, steps, runs)
    const lists = NO_LISTS()
    let [workers, at] = [0, 0]
    for (const { count } of runs) {
      let untilNs = steps.startNs[at]!
      for (const end = at + count; at < end; at++) {
        this.addStep(lists, steps, at, untilNs, event.phase === 'decode')
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

  /** Steps before which a worker lost its CPU, after its operator before. Before its first one, worker 0 is outside of steps. */
  private findLostBetween(operators: CallOperators, steps: Steps, runs: readonly { readonly count: number }[]): void {
    const { event, count, worker, tid, startNs, waitEndNs } = operators
    const { doneNs, isDisturbed } = this
    const firsts = new Set<number>()
    let at = 0
    for (const run of runs) {
      firsts.add(at)
      at += run.count
    }
    doneNs.length = 0
    for (let i = 0; i < count; i++) {
      const [by, step] = [worker[i]!, steps.of[i]!]
      const beforeNs = doneNs[by] ?? Number.NaN
      const fromNs = Number.isNaN(beforeNs) ? (by === 0 ? startNs[i]! : event!.startNs) : beforeNs
      putAt(doneNs, by, waitEndNs[i]!, Number.NaN)
      if (step < 0 || startNs[i]! - fromNs < GAP_MIN_NS) continue
      const lostNs = this.lostNs(tid[i]!, fromNs, startNs[i]!)
      if (lostNs === 0 || (by === 0 && firsts.has(step))) continue
      isDisturbed[step] = 1
      if (by === 0) this.lostBetweenNs += lostNs
    }
  }

  private addStep(lists: Lists, steps: Steps, step: number, untilNs: number, isDecode: boolean): void {
    const group = this.groupOf(steps.tensor[step]!, steps.last[step]!)
    const timeNs = Math.max(steps.waitEndNs[step]! - untilNs, 0)
    const longestNs = Math.min(this.longestNs[step]!, timeNs)
    const overhead = this.overheads[group]![isDecode ? 0 : 1]
    let undisturbedNs = timeNs
    if (this.isDisturbed[step] === 0) {
      overhead.sumNs += timeNs - longestNs
      overhead.steps++
      add(lists.quiet_steps, group, 1)
      add(lists.quiet_ns, group, timeNs)
    } else {
      const usualNs = overhead.steps > 0 ? overhead.sumNs / overhead.steps : 0
      undisturbedNs = Math.min(timeNs, longestNs + usualNs)
    }
    const computeNs = Math.min(steps.endNs[step]! - steps.startNs[step]!, timeNs)
    add(lists.steps, group, 1)
    add(lists.tokens, group, this.tokensOf(steps.tensor[step]!, group))
    add(lists.time_ns, group, timeNs)
    add(lists.compute_ns, group, computeNs)
    add(lists.undisturbed_ns, group, undisturbedNs)
  }

  /** Time that the call's thread, which is worker 0, lost outside of its operators, and before the call. */
  private lostOutside({ event, count, worker }: CallOperators, off: OffCpu): readonly [inside: number, before: number] {
    const { tid, startNs, endNs } = event!
    if (tid < 0 || !this.threads.of(tid)) return [0, 0]
    let insideNs = this.lostNs(tid, startNs, endNs) - this.lostBetweenNs
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

  private tokensOf(tensor: number, group: number): number {
    const { op, weight_rows } = this.groups[group]!
    // Of experts, a result has those of a token before its tokens.
    return weight_rows > 0 ? (this.defined.tensors[tensor]!.ne?.[op.startsWith('MUL_MAT_ID') ? 2 : 1] ?? 1) : 0
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
    const experts_used =
      weight && op.startsWith('MUL_MAT_ID') ? (tensors[node.sources[2] ?? -1]?.ne?.[0] ?? null) : null
    const attention = this.attentionOf(node)
    const shape = attention && Object.values(attention).join()
    const key = [op, role, type, weight_elements, weight_columns, experts_used, shape].join('\0')
    let group = this.byKey.get(key)
    if (group === undefined) {
      group = Math.min(this.groups.length, GROUPS_MAX - 1)
      if (group === this.groups.length) {
        const block = blockOf(role, names.text(node.op))
        const weights = { type, weight_elements, weight_columns, weight_rows }
        this.groups.push({ op, role, block, ...weights, experts_used, attention })
        this.overheads.push([
          { sumNs: 0, steps: 0 },
          { sumNs: 0, steps: 0 },
        ])
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

  /** Of flash attention: its sources are Q, K, V. */
  private attentionOf({ op, sources }: TensorEvent): AttentionShape | null {
    const { tensors, names } = this.defined
    const [q, k, v] = sources.map((source) => tensors[source])
    if (names.text(op) !== 'FLASH_ATTN_EXT' || !q?.ne || !k?.ne || !v?.ne) return null
    const [[head_size = 0, , heads = 0], [, , kv_heads = 0], [value_size = 0]] = [q.ne, k.ne, v.ne]
    return { head_size, value_size, heads, kv_heads, k_type: names.text(k.type), v_type: names.text(v.type) }
  }

  finish(): { readonly steps: StepSeries } {
    this.thin()
    const calls = [...this.calls.values()].sort((a, b) => a.call - b.call)
    return { steps: { groups: this.groups, calls, has_states: this.hasStates } }
  }
}

type Lists = Record<
  'steps' | 'tokens' | 'time_ns' | 'compute_ns' | 'undisturbed_ns' | 'quiet_steps' | 'quiet_ns',
  number[]
>

const NO_LISTS = (): Lists => ({
  ...{ steps: [], tokens: [], time_ns: [], compute_ns: [] },
  ...{ undisturbed_ns: [], quiet_steps: [], quiet_ns: [] },
})

function add(list: number[], at: number, value: number): void {
  while (list.length <= at) list.push(0)
  list[at]! += value
}
