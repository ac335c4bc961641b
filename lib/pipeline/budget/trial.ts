import type { TraceEvent } from '../../model/events.ts'
import type { Names } from '../../model/names.ts'
import type { Writer } from '../../sink/writer.ts'
import type { LoadedAreas } from '../../timeline/areas.ts'
import { Drawing } from '../../timeline/drawing.ts'
import type { Timeline } from '../../timeline/timeline.ts'
import type { WriterClass } from '../../write/index.ts'
import type { ConvertOptions } from '../options.ts'
import { type Choice, Thinner } from './thinner.ts'

/** Operators that are drawn to measure their bytes. */
const OPERATORS = 40_000

/** What events cost in the trace, in bytes. */
export interface Costs {
  /** Definitions, and what is drawn once. */
  readonly fixed: number
  /** One operator of a call in full, with its part of all other events of the call. */
  readonly operator: number
  /** One call as sums, without the sums. */
  readonly call: number
  /** One sum. */
  readonly sum: number
}

/** What draws the trace. */
export interface Drawers {
  readonly Trace: WriterClass
  readonly areas: LoadedAreas
}

/** A sum, measured with the longest names and all arguments; without arguments. */
const SUM_BYTES = { perfetto: [80, 45], json: [460, 260] } as const

interface Measured {
  readonly operators: number
  readonly calls: number
  readonly sums: number
  readonly fullBytes: number
  readonly thinBytes: number
}

/** All calls as sums, each alone. */
const NONE_IN_FULL: Choice = { keptAs: () => undefined, stretchOf: (call) => call, windows: undefined }

/** Draws a trace whose bytes are only counted. */
class CountedTrace {
  bytes = 0
  private readonly timeline: Timeline
  private readonly writer: Writer

  constructor(names: Names, options: ConvertOptions, { Trace, areas }: Drawers) {
    this.writer = new Trace(names)
    this.timeline = new Drawing(this.writer, names, { ...options, tokens: undefined }, false, areas).begin({
      isOfScheduler: false,
    })
  }

  take(batch: readonly TraceEvent[]): void {
    this.timeline.take(batch)
    this.count()
  }

  finish(): void {
    this.timeline.finish()
    this.count()
  }

  private count(): void {
    this.bytes += this.writer.take().length
  }
}

/** Draws the beginning of a log in full and as sums, and measures what each costs: that depends on the log and the options. */
export class Trial {
  private readonly full: CountedTrace
  private readonly thin: CountedTrace
  private readonly thinner: Thinner
  private readonly measured: Measured[] = [{ operators: 0, calls: 0, sums: 0, fullBytes: 0, thinBytes: 0 }]
  private readonly sumBytes: number
  private readonly isLate: boolean
  private calls = 0
  private isFinished = false

  constructor(names: Names, options: ConvertOptions, drawers: Drawers) {
    this.full = new CountedTrace(names, options, drawers)
    this.thin = new CountedTrace(names, options, drawers)
    this.thinner = new Thinner(names, NONE_IN_FULL, options.opName)
    this.isLate = options.detail === 'full'
    this.sumBytes = SUM_BYTES[options.to ?? 'perfetto'][options.detail === 'names' ? 1 : 0]
  }

  /** Draws a batch, unless enough is measured. */
  take(batch: readonly TraceEvent[]): void {
    if (this.isFinished) return
    this.full.take(batch)
    this.thin.take(this.thinner.take(batch))
    for (const event of batch) if (event.kind === 'token') this.calls++
    this.measure()
    if (this.thinner.operators >= OPERATORS) this.finish()
  }

  /** The costs; without operators, those of nothing. */
  costs(): Costs {
    this.finish()
    const last = this.measured.at(-1)!
    // The beginning also contains the definitions. With all details, operators are drawn long after they came.
    const half = this.measured.find(({ operators }) => operators >= last.operators / 2)!
    const from = half.operators < last.operators && !this.isLate ? half : this.measured[0]!
    const { operators, calls, sums, fullBytes, thinBytes } = last
    const operator = (fullBytes - from.fullBytes) / Math.max(operators - from.operators, 1)
    const sumsBytes = (sums - from.sums) * this.sumBytes
    const call = Math.max(thinBytes - from.thinBytes - sumsBytes, 0) / Math.max(calls - from.calls, 1)
    return { fixed: Math.max(from.fullBytes - from.operators * operator, 0), operator, call, sum: this.sumBytes }
  }

  private measure(): void {
    const { thinner, calls, full, thin } = this
    const { operators, sums } = thinner
    this.measured.push({ operators, calls, sums, fullBytes: full.bytes, thinBytes: thin.bytes })
  }

  private finish(): void {
    if (this.isFinished) return
    this.isFinished = true
    this.full.finish()
    this.thin.take(this.thinner.finish())
    this.thin.finish()
    this.measure()
  }
}
