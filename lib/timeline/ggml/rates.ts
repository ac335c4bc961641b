import type { Plan } from '../../analyze/graph/plan.ts'
import type { GraphRun } from '../../analyze/graph/runs.ts'
import type { GraphWork, Works } from '../../analyze/graph/work.ts'
import { hasRate } from '../../model/calls.ts'
import type { ExpertsEvent, TokenEvent } from '../../model/events.ts'
import type { Rate } from '../../sink/track.ts'
import type { TrackContext } from '../context.ts'

/** Choices of one router that are remembered: a log has 13 000 operators of one worker in a row. */
const CHOICES_MAX = 4096
/** Ids that are distinguished, more than any model has experts (llama.cpp's LLAMA_MAX_EXPERTS is 512). */
const EXPERTS_MAX = 4096

/** Of the Rates group: tokens, bytes and floating-point operations by time. */
export class Rates {
  private readonly rows = new Map<Rate, { readonly track: number; endNs: number }[]>()
  private readonly choices = new Map<number, Choices>()

  constructor(
    private readonly context: TrackContext,
    private readonly works: Works,
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
    const work = this.works.graph(plan)
    const { starts, ends, count } = run
    const [startNs, endNs] = [starts[0]!, ends[count - 1]!]
    if (work.bytes > 0) this.place('GB/s', startNs, endNs, work.bytes - this.notRead(work, startNs, endNs))
    if (work.flop > 0) this.place('GFLOP/s', startNs, endNs, work.flop)
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
      row = { track: this.context.tracks.add(rate, {}, rows.length), endNs }
      rows.push(row)
    }
    row.endNs = endNs
    this.context.writer.counter(row.track, startNs, amount / (endNs - startNs))
    this.context.writer.counter(row.track, endNs, 0)
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
