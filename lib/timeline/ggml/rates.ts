import { Choices } from '../../analyze/graph/choices.ts'
import type { Plan } from '../../analyze/graph/plan.ts'
import type { GraphRun } from '../../analyze/graph/runs.ts'
import type { GraphWork, Works } from '../../analyze/graph/work.ts'
import { hasRate, workStartOf } from '../../model/calls.ts'
import { DefaultMap } from '../../model/default-map.ts'
import type { ExpertsEvent, TokenEvent } from '../../model/events.ts'
import type { Rate } from '../../sink/track.ts'
import type { TrackContext } from '../context.ts'

/** Counters of the Rates group: tokens, bytes and floating-point operations per second. */
export class Rates {
  private readonly rows = new DefaultMap<Rate, { readonly track: number; endNs: number }[]>(() => [])
  private readonly choices = new DefaultMap<number, Choices>(() => new Choices())

  constructor(
    private readonly context: TrackContext,
    private readonly works: Works,
  ) {}

  call(event: TokenEvent): void {
    if (hasRate(event)) this.place('tok/s', workStartOf(event), event.endNs, event.tokens * 1e9)
  }

  choose({ tensor, atNs, ids }: ExpertsEvent): void {
    this.choices.of(tensor).add(atNs, ids)
  }

  run(run: GraphRun, plan: Plan): void {
    const work = this.works.graph(plan)
    const [startNs, endNs] = [run.startNs[0]!, run.endNs[run.count - 1]!]
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
