import { DDSketch } from '@datadog/sketches-js'
import { resized } from '../../bytes/resized.ts'
import { blockOf } from '../../model/blocks.ts'
import { putAt } from '../../model/by-id.ts'
import { DefaultMap, getOrMake } from '../../model/default-map.ts'
import type { Phase, TensorEvent, TokenEvent } from '../../model/events.ts'
import { formatShape, parseTensorName } from '../../model/tensors.ts'
import type { RoleTable } from '../calls/roles.ts'
import { bucketsOf, distributionOf, RELATIVE_ERROR } from '../common/sketches.ts'
import type { CallParts, Statistic } from '../common/statistic.ts'
import type { Defined } from '../graph/defined.ts'
import type { CallOperators } from '../graph/operators/call-operators.ts'
import type { Steps } from '../graph/operators/steps.ts'
import { notRead, plus, type StepWork } from '../graph/work.ts'
import type { OperatorFigures, OperatorRow } from './figures.ts'

/** Rows at most; further nodes are counted in one row per op. */
const ROWS_MAX = 1 << 15

const NO_WORK = { flop: 0, bytes: 0, bytesAreMax: false }

/** Sums of a worker in a row. */
interface OfWorker {
  executions: number
  timeNs: number
  offNs: number
  waitNs: number
  openNs: number
  last: number
}

const TIMES = ['wallNs', 'timeNs', 'waitNs', 'openNs', 'stoppedNs', 'innerWaitNs', 'preemptedNs', 'blockedNs'] as const
const WORK = ['flop', 'bytesRead', 'bytesWritten', 'weightBytes'] as const
const KEYS = ['executions', 'timeNs', 'offNs', 'waitNs', 'openNs', 'last'] as const

/** A multiple of a sum of work; -1 remains: not known. */
const times = (sum: number, by: number) => (sum < 0 ? -1 : sum * by)

/** Sums of one row. */
class Row {
  steps = 0
  executions = 0
  wallNs = 0
  timeNs = 0
  waitNs = 0
  openNs = 0
  stoppedNs = 0
  innerWaitNs = 0
  preemptedNs = 0
  blockedNs = 0
  flop = 0
  bytesRead = 0
  bytesWritten = 0
  weightBytes = 0
  bytesAreMax = false
  readonly workers: (OfWorker | undefined)[] = []
  readonly counts: number[] = []
  readonly durations: DDSketch | undefined

  constructor(
    readonly key: Pick<OperatorRow, 'op' | 'role' | 'layer' | 'block' | 'type' | 'backend' | 'phase' | 'shape'>,
    hasDurations: boolean,
  ) {
    this.durations = hasDurations ? new DDSketch({ relativeAccuracy: RELATIVE_ERROR }) : undefined
  }

  /** Multiplies all sums; -1 remains: not known. */
  scale(by: number): void {
    if (by === 1) return
    this.steps = Math.round(this.steps * by)
    this.executions = Math.round(this.executions * by)
    for (const key of TIMES) this[key] *= by
    for (const key of WORK) this[key] = times(this[key], by)
    for (const [i, count] of this.counts.entries()) this.counts[i] = count * by
    for (const worker of this.workers) if (worker) for (const key of KEYS) worker[key] *= by
  }

  worker(worker: number): OfWorker {
    const known = this.workers[worker]
    if (known) return known
    const made = { executions: 0, timeNs: 0, offNs: 0, waitNs: 0, openNs: 0, last: 0 }
    putAt(this.workers, worker, made, undefined)
    return made
  }
}

/** What rows are made from. */
export interface RowsContext {
  readonly defined: Defined
  /** Distributions of durations too, which cost as much as all else. */
  readonly hasDurations: boolean
  /** Rows by role, op, phase and backend, and for products with weights by type and shape: enough for findings. */
  readonly byRole: boolean
  readonly roles: RoleTable
  /** The backend that computes a graph at this time. */
  backendAt(call: number, atNs: number): string
  /** The number of experts that were chosen for a step: `tensor` contains the choice. 0: not known. */
  expertsChosen(tensor: number, endNs: number): number
  /** Are states of threads known? */
  hasStates(): boolean
  /** A factor of the sums of a phase. */
  scaleOf(phase: Phase | 'none'): number
}

/** A node, or several fused ones, that a GPU computed. */
export interface StepOnGpu {
  readonly tensor: number
  /** The last of fused nodes; else the same as `tensor`. */
  readonly last: number
  /** Name of ggml's backend; empty where it is not known. */
  readonly backend: string
  readonly startNs: number
  /** Sum over its parts: it may continue in another command buffer. */
  durationNs: number
}

/** What GPUs computed of one call, or a part of it. */
export interface GpuCallOperators {
  /** The call; undefined where none was recorded. */
  readonly event: TokenEvent | undefined
  readonly steps: readonly StepOnGpu[]
}

/** Sums operators by op, role, layer, type, backend, phase and shape. */
export class OperatorRows implements Statistic {
  private readonly byKey = new Map<string, Row>()
  /** By phase, then tensor. */
  private readonly byTensor = new DefaultMap<Phase | 'none', (Row | undefined)[]>(() => [])
  /** The same of work on GPUs. */
  private readonly byTensorOnGpu = new DefaultMap<Phase | 'none', (Row | undefined)[]>(() => [])
  /** By step of the call that was added last: the number of experts that were chosen, for steps that read experts; 0: not known. */
  chosen = new Int32Array(1024)
  /** Work of the operators that were added last; -1: not known. */
  readonly latest = { ...NO_WORK }

  /** The rows, most operator time first; known after {@link finish}. */
  list: readonly OperatorRow[] = []
  private readonly defined: Defined

  constructor(private readonly context: RowsContext) {
    this.defined = context.defined
  }

  call({ operators, steps, off, weight }: CallParts): void {
    const phase = operators.event?.phase ?? 'none'
    const rows = this.byTensor.of(phase)
    const { count, tensor, worker, startNs, endNs, waitEndNs, innerWaitNs, counts } = operators
    const hasCounts = counts.length > 0
    for (let i = 0; i < count; i++) {
      const row = rows[tensor[i]!] ?? this.rowOf(tensor[i]!, operators.last[i]!, phase, rows, operators, i)
      const timeNs = (endNs[i]! - startNs[i]!) * weight
      const waitNs = (waitEndNs[i]! - endNs[i]!) * weight
      const openNs = steps.openPartNs(operators, i, off) * weight
      row.executions += weight
      row.timeNs += timeNs
      row.waitNs += waitNs
      row.openNs += openNs
      row.innerWaitNs += innerWaitNs[i]! * weight
      const ofWorker = row.workers[worker[i]!] ?? row.worker(worker[i]!)
      ofWorker.executions += weight
      ofWorker.timeNs += timeNs
      ofWorker.waitNs += waitNs
      ofWorker.openNs += openNs
      row.durations?.accept(timeNs)
      if (hasCounts && counts[i]) addCounts(row.counts, counts[i]!, weight)
      if (!off) continue
      row.preemptedNs += off.preemptedNs[i]! * weight
      row.blockedNs += off.blockedNs[i]! * weight
      row.stoppedNs += off.stoppedNs(endNs[i]!, waitEndNs[i]!) * weight
      ofWorker.offNs += (off.preemptedNs[i]! + off.blockedNs[i]!) * weight
    }
    this.addSteps(steps, rows, weight)
  }

  private addSteps(steps: Steps, rows: readonly (Row | undefined)[], weight: number): void {
    const { count, tensor, startNs, waitEndNs, workers, slowest } = steps
    for (let step = 0; step < count; step++) {
      const row = rows[tensor[step]!]!
      row.steps += weight
      row.wallNs += (waitEndNs[step]! - startNs[step]!) * weight
      if (workers[step]! > 1) row.worker(slowest[step]!).last += weight
    }
    this.addWork(steps, rows, weight)
  }

  private addWork(steps: Steps, rows: readonly (Row | undefined)[], weight: number): void {
    const { count, tensor, last, waitEndNs } = steps
    const { works, isWeight } = this.defined
    Object.assign(this.latest, NO_WORK)
    for (let step = 0; step < count; step++) {
      const work = works.step(tensor[step]!, last[step]!, isWeight)
      const chosen = this.addStep(rows[tensor[step]!]!, work, waitEndNs[step]!, weight)
      if (chosen < 0) continue
      if (step >= this.chosen.length) this.chosen = resized(this.chosen, 2 * count)
      this.chosen[step] = chosen
    }
  }

  /** Adds the work of a step to its row. Returns the number of experts that were chosen, 0 if it is not known, -1 if it reads none. */
  private addStep(row: Row, work: StepWork, endNs: number, weight: number): number {
    const { latest } = this
    let [read, weights, chosen] = [work.bytesRead, work.weightBytes, -1]
    if (work.expertsRead > 0) {
      chosen = this.context.expertsChosen(work.chosen, endNs)
      if (chosen === 0) {
        row.bytesAreMax ||= work.isUpperBound
        latest.bytesAreMax ||= work.isUpperBound
      } else {
        const less = notRead(work, chosen)
        read -= less
        weights -= less
      }
    }
    row.flop = plus(row.flop, times(work.flop, weight))
    row.bytesRead = plus(row.bytesRead, work.bytesRead < 0 ? -1 : read * weight)
    row.weightBytes = plus(row.weightBytes, work.weightBytes < 0 ? -1 : weights * weight)
    row.bytesWritten = plus(row.bytesWritten, times(work.bytesWritten, weight))
    latest.flop = plus(latest.flop, work.flop)
    const areKnown = work.bytesRead >= 0 && work.bytesWritten >= 0
    latest.bytes = areKnown ? plus(latest.bytes, read + work.bytesWritten) : -1
    return chosen
  }

  /** Adds the work of a call on GPUs: each operator is a step that no worker computed. */
  addOnGpu(operators: GpuCallOperators): void {
    const phase = operators.event?.phase ?? 'none'
    const rows = this.byTensorOnGpu.of(phase)
    const { works, isWeight } = this.defined
    Object.assign(this.latest, NO_WORK)
    for (const { tensor, last, backend, startNs, durationNs } of operators.steps) {
      let row = rows[tensor]
      if (row?.key.backend !== backend) {
        row = this.rowOfNode(tensor, last, backend, phase)
        putAt(rows, tensor, row, undefined)
      }
      row.steps++
      row.executions++
      row.wallNs += durationNs
      row.timeNs += durationNs
      row.durations?.accept(durationNs)
      this.addStep(row, works.step(tensor, last, isWeight), startNs + durationNs, 1)
    }
  }

  private rowOf(
    id: number,
    last: number,
    phase: Phase | 'none',
    rows: (Row | undefined)[],
    operators: CallOperators,
    i: number,
  ): Row {
    const backend = this.context.backendAt(operators.event?.call ?? -1, operators.startNs[i]!)
    const row = this.context.byRole
      ? this.rowOfRole(id, last, backend, phase)
      : this.rowOfNode(id, last, backend, phase)
    putAt(rows, id, row, undefined)
    return row
  }

  private rowOfNode(id: number, last: number, backend: string, phase: Phase | 'none'): Row {
    const { tensors, names } = this.defined
    const [first, result] = [tensors[id]!, tensors[last]!]
    const ops = last === id ? [first] : [first, result]
    const op = ops.map((tensor) => names.text(tensor.op)).join('+')
    const { role } = parseTensorName(names.text(result.name))
    const key = {
      op,
      role,
      layer: this.defined.layerOf(last),
      block: blockOf(role, names.text(first.op)),
      type: this.typeOf(first, result),
      backend,
      phase,
      shape: this.shapeOf(first),
    }
    if (this.byKey.size < ROWS_MAX) return this.rowAt(JSON.stringify(key), key)
    return this.rowAt(op, { ...key, role: '', layer: -1, block: 'other', type: '', shape: '' })
  }

  private rowOfRole(id: number, last: number, backend: string, phase: Phase | 'none'): Row {
    const { roles } = this.context
    const number = roles.of(id, last)
    const role = roles.role(number)
    const first = this.defined.tensors[id]!
    const weights = role.op.startsWith('MUL_MAT') ? this.weightsOf(first) : undefined
    const key = {
      ...role,
      layer: -1,
      type: weights ? this.typeOf(first, first) : '',
      backend,
      phase,
      shape: weights ? this.shapeOf(first) : '',
    }
    return this.rowAt(`${number} ${phase} ${key.type} ${key.shape} ${backend}`, key)
  }

  private rowAt(text: string, key: Row['key']): Row {
    return getOrMake(this.byKey, text, () => new Row(key, this.context.hasDurations))
  }

  private typeOf(first: TensorEvent, result: TensorEvent): string {
    return this.defined.names.text((this.weightsOf(first) ?? result).type)
  }

  private weightsOf({ sources }: TensorEvent): TensorEvent | undefined {
    const { tensors, isWeight } = this.defined
    return sources.map((source) => tensors[source]!).find(isWeight)
  }

  /** M×N×K of a matrix product, in ggml's meaning: M rows of the weights, N columns of the result, K summed up; else the result's shape. */
  private shapeOf({ op, ne, sources }: TensorEvent): string {
    const { tensors, names } = this.defined
    if (!ne) return ''
    const k = sources.length > 0 ? tensors[sources[0]!]!.ne?.[0] : undefined
    if (!/^(MUL_MAT|MUL_MAT_ID)$/.test(names.text(op)) || k === undefined) return formatShape(ne)
    const batch = ne.slice(2).reduce((product, n) => product * n, 1)
    return `${ne[0]}×${ne[1] ?? 1}×${k}${batch > 1 ? `×${batch}` : ''}`
  }

  finish(): { readonly operators: OperatorFigures } {
    this.list = this.rows()
    const total = (figureOf: (row: OperatorRow) => number) => this.list.reduce((sum, row) => sum + figureOf(row), 0)
    return {
      operators: {
        operator_time_ns: total((row) => row.operator_time_ns),
        wait_ns: total((row) => row.wait_ns),
        wait_open_ns: total((row) => row.wait_open_ns ?? 0),
        executions: total((row) => row.executions),
        rows: this.list,
      },
    }
  }

  private rows(): OperatorRow[] {
    const { counters } = this.defined.counters
    const hasStates = this.context.hasStates()
    for (const row of this.byKey.values()) row.scale(this.context.scaleOf(row.key.phase))
    return [...this.byKey.values()]
      .sort((a, b) => b.timeNs - a.timeNs)
      .map((row) => ({
        ...row.key,
        steps: row.steps,
        executions: row.executions,
        wall_ns: row.wallNs,
        operator_time_ns: row.timeNs,
        wait_ns: row.waitNs,
        wait_open_ns: row.openNs,
        ...(row.stoppedNs > 0 && { wait_stopped_ns: row.stoppedNs }),
        inner_wait_ns: row.innerWaitNs,
        workers: row.workers.flatMap((ofWorker, worker) => {
          if (!ofWorker) return []
          const { executions, timeNs, offNs, waitNs, openNs, last } = ofWorker
          const time = { operator_time_ns: timeNs, off_cpu_ns: hasStates ? offNs : null, wait_ns: waitNs }
          return [{ worker, executions, ...time, wait_open_ns: openNs, last }]
        }),
        preempted_ns: hasStates ? row.preemptedNs : null,
        blocked_ns: hasStates ? row.blockedNs : null,
        flop: row.flop,
        bytes_read: row.bytesRead,
        bytes_written: row.bytesWritten,
        weight_bytes: row.weightBytes,
        bytes_are_max: row.bytesAreMax,
        counters: Object.fromEntries(row.counts.map((value, i) => [counters[i]?.key ?? `counter_${i}`, value])),
        duration: distributionOf(row.durations, row.executions, row.timeNs),
        buckets: bucketsOf(row.durations),
      }))
  }
}

function addCounts(sums: number[], counts: readonly number[], weight: number): void {
  for (let i = 0; i < counts.length; i++) {
    while (sums.length <= i) sums.push(0)
    sums[i]! += (counts[i] ?? 0) * weight
  }
}
