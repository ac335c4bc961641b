import { nodesOf, type Plan } from '../../analyze/graph/plan.ts'
import type { GraphRun } from '../../analyze/graph/runs.ts'
import { hasRate } from '../../model/calls.ts'
import type { ExpertsEvent, TensorEvent, TokenEvent } from '../../model/events.ts'
import { workOf } from '../../model/work.ts'
import type { Rate } from '../../sink/track.ts'
import { LazyGroup, rowName, type TrackTree } from '../tracks.ts'

const RANK = 5 * 16 + 8
const DESCRIPTIONS: Readonly<Record<Rate, string>> = {
  'tok/s':
    'Tokens of each call by its time; 0 between calls. Calls that failed, or whose end is not known, have no rate.',
  'GB/s':
    'Bytes that the operators of a graph read and write, by the time from its first operator to its last; 0 between ' +
    'graphs. Worked out from shapes and sizes: each source counts once, MUL_MAT_ID with the chosen experts, or, where ' +
    'the choice was not recorded, with as many as it may have used. Caches may have served part of it.',
  'GFLOP/s':
    'Floating-point operations of the matrix products of a graph, by the time from its first operator to its last; 0 ' +
    'between graphs. Worked out from shapes, 2 for each multiplication and addition.',
}
const RATES = Object.keys(DESCRIPTIONS) as Rate[]

/** Choices of one router that are remembered: a log has 13 000 operators of one worker in a row. */
const CHOICES_MAX = 4096
/** Ids that are told apart, more than any model has experts (llama.cpp's LLAMA_MAX_EXPERTS is 512). */
const EXPERTS_MAX = 4096

/** The part of a graph's work that depends on which experts were chosen. */
interface ExpertStep {
  /** The tensor that holds the choice. */
  readonly chosen: number
  /** Of one expert. */
  readonly bytes: number
  /** That were counted without knowing. */
  readonly experts: number
}

interface GraphWork {
  readonly flop: number
  /** -1 = not known. */
  readonly bytes: number
  readonly expertSteps: readonly ExpertStep[]
}

/** The group of all rates. */
export function ratesGroup(tree: TrackTree, root: number): LazyGroup {
  const description =
    'How fast it went: tokens, bytes and operations by call and by graph; by operator what was counted, where it was.'
  return new LazyGroup(tree, root, { name: 'Rates', description, rank: RANK })
}

/** Of the Rates group: tokens, bytes and floating-point operations by time. */
export class Rates {
  private readonly rows = new Map<Rate, { readonly track: number; endNs: number }[]>()
  private readonly works = new WeakMap<Plan, GraphWork>()
  private readonly choices = new Map<number, Choices>()

  constructor(
    private readonly tree: TrackTree,
    private readonly group: LazyGroup,
    private readonly tensors: readonly TensorEvent[],
    private readonly opOf: (tensor: TensorEvent) => string,
  ) {}

  call(event: TokenEvent): void {
    if (hasRate(event)) this.place('tok/s', event.startNs, event.endNs, event.tokens * 1e9)
  }

  choose({ tensor, atNs, ids }: ExpertsEvent): void {
    let choices = this.choices.get(tensor)
    if (!choices) {
      choices = new Choices()
      this.choices.set(tensor, choices)
    }
    choices.add(atNs, ids)
  }

  run(run: GraphRun, plan: Plan): void {
    let work = this.works.get(plan)
    if (!work) {
      work = this.workOf(plan)
      this.works.set(plan, work)
    }
    const { starts, ends, count } = run
    const [startNs, endNs] = [starts[0]!, ends[count - 1]!]
    if (work.bytes > 0) this.place('GB/s', startNs, endNs, work.bytes - this.notRead(work, startNs, endNs))
    if (work.flop > 0) this.place('GFLOP/s', startNs, endNs, work.flop)
  }

  private workOf({ nodes, lasts }: Plan): GraphWork {
    const { tensors } = this
    let [flop, bytes] = [0, 0]
    const expertSteps: ExpertStep[] = []
    for (const [step, first] of nodes.entries()) {
      const fused = nodesOf(tensors, first, lasts[step]!)
      for (const node of fused) {
        const tensor = tensors[node]!
        // What passes between fused nodes is neither read nor written.
        const sources = tensor.sources.map((id) => (fused.includes(id) ? undefined : tensors[id]))
        const work = workOf(this.opOf(tensor), tensor, sources)
        flop += Math.max(work.flop, 0)
        const own = work.bytesRead + (node === lasts[step] ? work.bytesWritten : 0)
        const isKnown = work.bytesRead >= 0 && work.bytesWritten >= 0
        bytes = bytes < 0 || !isKnown ? -1 : bytes + own
        const { expertsRead: experts, expertBytes } = work
        if (experts > 0) expertSteps.push({ chosen: tensor.sources[2] ?? -1, bytes: expertBytes / experts, experts })
      }
    }
    return { flop, bytes, expertSteps }
  }

  /** Bytes of experts that were counted, but not chosen. */
  private notRead({ expertSteps }: GraphWork, startNs: number, endNs: number): number {
    if (this.choices.size === 0) return 0
    let bytes = 0
    const chosen = new Map<number, number>()
    for (const step of expertSteps) {
      if (!chosen.has(step.chosen)) chosen.set(step.chosen, this.choices.get(step.chosen)?.take(startNs, endNs) ?? 0)
      const experts = chosen.get(step.chosen)!
      if (experts > 0) bytes += step.bytes * (step.experts - experts)
    }
    return bytes
  }

  /** A value that holds for a while, in the first row that is free then; `amount` per ns is giga per second. */
  private place(rate: Rate, startNs: number, endNs: number, amount: number): void {
    if (endNs <= startNs) return
    const rows = this.rows.get(rate) ?? []
    this.rows.set(rate, rows)
    let row = rows.find((row) => row.endNs <= startNs)
    if (!row) {
      const name = rowName(rate, rows.length)
      const rank = RATES.indexOf(rate) * 16 + Math.min(rows.length, 15)
      const track = this.group.add({ name, description: DESCRIPTIONS[rate], rank, kind: 'counter', unit: rate })
      row = { track, endNs }
      rows.push(row)
    }
    row.endNs = endNs
    this.tree.writer.counter(row.track, startNs, amount / (endNs - startNs))
    this.tree.writer.counter(row.track, endNs, 0)
  }
}

/** How many different experts one router chose, for the runs that are still to come. */
class Choices {
  /** In order of time, from `first` to before `end`. Plain numbers: choices are many, and kept for a while. */
  private times = new Float64Array(64)
  private counts = new Uint16Array(64)
  private first = 0
  private end = 0
  /** By id, of the last choice: a long one comes in parts. */
  private readonly isChosen = new Uint8Array(EXPERTS_MAX)

  add(atNs: number, ids: Int32Array): void {
    const { isChosen } = this
    if (this.first === this.end || this.times[this.end - 1] !== atNs) {
      isChosen.fill(0)
      this.makeRoom()
      this.times[this.end] = atNs
      this.counts[this.end++] = 0
    }
    let count = this.counts[this.end - 1]!
    for (const id of ids) {
      if (isChosen[id] !== 0) continue // chosen already, or no expert
      isChosen[id] = 1
      count++
    }
    this.counts[this.end - 1] = count
  }

  /** Those of the last choice in this time; 0 if there was none. Forgets it, and earlier ones. */
  take(startNs: number, endNs: number): number {
    let found = 0
    for (; this.first < this.end && this.times[this.first]! <= endNs; this.first++) {
      if (this.times[this.first]! >= startNs) found = this.counts[this.first]!
    }
    return found
  }

  private makeRoom(): void {
    const { times, counts, end } = this
    if (end < times.length) return
    const from = Math.max(this.first, end - CHOICES_MAX + 1)
    if (2 * (end - from) > times.length) {
      this.times = new Float64Array(2 * times.length)
      this.counts = new Uint16Array(2 * times.length)
    }
    this.times.set(times.subarray(from, end))
    this.counts.set(counts.subarray(from, end))
    this.first = 0
    this.end = end - from
  }
}
