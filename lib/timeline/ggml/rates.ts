import type { Plan } from '../../analyze/graph/plan.ts'
import type { GraphRun } from '../../analyze/graph/runs.ts'
import type { GraphWork, Works } from '../../analyze/graph/work.ts'
import { hasRate } from '../../model/calls.ts'
import { DefaultMap } from '../../model/default-map.ts'
import type { ExpertsEvent, TokenEvent } from '../../model/events.ts'
import type { Rate } from '../../sink/track.ts'
import type { TrackContext } from '../context.ts'

/** Choices of one router that are kept: a log contains up to 13 000 operators of one worker in a row. */
const CHOICES_MAX = 4096
/** Experts that are distinguished: more than any model has (llama.cpp's LLAMA_MAX_EXPERTS is 512). */
const EXPERTS_MAX = 4096

/** Counters of the Rates group: tokens, bytes and floating-point operations per second. */
export class Rates {
  private readonly rows = new DefaultMap<Rate, { readonly track: number; endNs: number }[]>(() => [])
  private readonly choices = new DefaultMap<number, Choices>(() => new Choices())

  constructor(
    private readonly context: TrackContext,
    private readonly works: Works,
  ) {}

  call(event: TokenEvent): void {
    if (hasRate(event)) this.place('tok/s', event.startNs, event.endNs, event.tokens * 1e9)
  }

  choose({ tensor, atNs, ids }: ExpertsEvent): void {
    this.choices.of(tensor).add(atNs, ids)
  }

  run(run: GraphRun, plan: Plan): void {
    const work = this.works.graph(plan)
    const { starts, ends, count } = run
    const [startNs, endNs] = [starts[0]!, ends[count - 1]!]
    if (work.bytes > 0) this.place('GB/s', startNs, endNs, work.bytes - this.notRead(work, startNs, endNs))
    if (work.flop > 0) this.place('GFLOP/s', startNs, endNs, work.flop)
  }

  /** Bytes of experts that {@link GraphWork} counts, but that were not chosen. */
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

  /** Draws a value from start to end, in the first row that is free; `amount` per ns is giga per second. */
  private place(rate: Rate, startNs: number, endNs: number, amount: number): void {
    if (endNs <= startNs) return
    const rows = this.rows.of(rate)
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

/** Numbers of different experts that one router chose, for graph runs that are not complete yet. */
class Choices {
  /** In order of time, from `first` to before `end`. Typed arrays, because there are many choices. */
  private times = new Float64Array(64)
  private counts = new Uint16Array(64)
  private first = 0
  private end = 0
  /** By id: is it part of the last choice? A long choice comes in several events. */
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
      if (isChosen[id] !== 0) continue // chosen already, or not an expert's id
      isChosen[id] = 1
      count++
    }
    this.counts[this.end - 1] = count
  }

  /** Removes all choices up to the end. Returns the number of experts of the last one since the start; 0 if there is none. */
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
