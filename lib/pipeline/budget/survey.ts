import type { OperatorEvent, TokenEvent, TraceEvent } from '../../model/events.ts'
import type { Names } from '../../model/names.ts'
import type { EventPass } from '../../model/pass.ts'
import type { Writer } from '../../sink/writer.ts'
import type { LoadedAreas } from '../../timeline/areas.ts'
import { Drawing } from '../../timeline/drawing.ts'
import { isDrawnLate } from '../../timeline/options.ts'
import type { Timeline } from '../../timeline/timeline.ts'
import type { WriterClass } from '../../write/index.ts'
import type { ConvertOptions } from '../options.ts'
import { CallColumns } from './call-columns.ts'
import { SummedNames } from './operator-sums.ts'
import { type Choice, Thinner } from './thinner.ts'
import { isOfCall, type WorkEvent, workName } from './work-sums.ts'

/** Operators that are drawn to measure their bytes. */
const OPERATORS = 40_000

/** What events cost in the trace, in bytes. */
interface Costs {
  /** Definitions, and what is drawn once. */
  readonly fixed: number
  /** One operator, or piece of work of a GPU, of a call in full, with its part of all other events of the call. */
  readonly operator: number
  /** One call as sums, without the sums. */
  readonly call: number
  /** One sum. */
  readonly sum: number
}

/** What draws the trace. */
interface Drawers {
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
    this.timeline = new Drawing(this.writer, names, { ...options, tokens: undefined }, false, false, areas).begin({
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
class Trial {
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
    this.isLate = isDrawnLate(options)
    this.sumBytes = SUM_BYTES[options.to ?? 'perfetto'][options.detail === 'names' ? 1 : 0]
  }

  /** Draws a batch, unless enough is measured. */
  take(batch: readonly TraceEvent[]): void {
    if (this.isFinished) return
    this.full.take(batch)
    this.thin.take(this.thinner.take(batch))
    for (const event of batch) if (event.kind === 'token') this.calls++
    this.measure()
    if (this.thinner.operators + this.thinner.works >= OPERATORS) this.finish()
  }

  /** The costs; without operators, those of nothing. */
  costs(): Costs {
    this.finish()
    const last = this.measured.at(-1)!
    // The beginning also contains the definitions. With some options, operators are drawn long after they came.
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
    const { sums } = thinner
    const operators = thinner.operators + thinner.works
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

/** Bytes of an event that belongs to no call, such as a range: measured, the most. */
const OTHER_BYTES = { perfetto: 60, json: 300 } as const

/** What the first reading of a log finds out. */
export interface Survey {
  readonly columns: CallColumns
  readonly operators: number
  /** Operators of no call. */
  readonly operatorsOutsideCalls: number
  /** Work of GPUs and calls of their libraries, in calls. */
  readonly works: number
  readonly calls: number
  readonly workers: number
  /** Different names of operators' slices. */
  readonly names: number
  /** Different names of work and of calls of libraries. */
  readonly workNames: number
  readonly costs: Costs
  /** Estimated bytes of the whole trace of the log. */
  readonly allBytes: number
  /** Estimated bytes of what is neither an operator nor belongs to a call. */
  readonly otherBytes: number
}

/** The first reading of a log: counts, and draws nothing but a beginning, to measure what events cost. */
export class SurveyPass implements EventPass<Survey> {
  private readonly columns = new CallColumns()
  private readonly shared: SummedNames
  private readonly trial: Trial
  private readonly otherBytes: number
  private readonly tokens: ConvertOptions['tokens']
  private operators = 0
  private outsideCalls = 0
  private works = 0
  private readonly workNames = new Set<number>()
  private calls = 0
  private workers = 0
  private others = 0
  /** NaN: its unit must be looked up again. */
  private latestCall = NaN
  private latestUnit = 0

  constructor(names: Names, options: ConvertOptions, drawers: Drawers) {
    this.shared = new SummedNames(names, options.opName ?? 'role')
    this.trial = new Trial(names, options, drawers)
    this.otherBytes = OTHER_BYTES[options.to ?? 'perfetto']
    this.tokens = options.tokens
  }

  take(batch: readonly TraceEvent[]): void {
    for (const event of batch) this.count(event)
    this.trial.take(batch)
  }

  finish(): Survey {
    const { columns, operators, works, calls, workers, shared } = this
    const costs = this.trial.costs()
    const otherBytes = this.others * this.otherBytes + this.outsideCalls * costs.operator
    const drawnCalls = calls * costs.call
    const allBytes =
      costs.fixed + otherBytes + Math.max((operators + works - this.outsideCalls) * costs.operator, drawnCalls)
    const about = { operators, operatorsOutsideCalls: this.outsideCalls, works, calls, workers }
    const names = { names: shared.list.length, workNames: this.workNames.size }
    return { columns, ...about, ...names, costs, allBytes, otherBytes }
  }

  private count(event: TraceEvent): void {
    switch (event.kind) {
      case 'operator':
        return this.operator(event)
      case 'tensor':
        this.shared.tensors[event.id] = event
        return
      case 'token':
        return this.call(event)
      case 'gpu':
      case 'api':
        return this.work(event)
      case 'graph':
      case 'part':
      case 'copy': // parts of calls
      case 'benchmark':
      case 'reading': // few
        return
      case 'nvtx':
      case 'range':
      case 'switch':
      case 'waking':
      case 'own-instant':
      case 'own-sample':
      case 'issue':
        this.others++
        return
      default:
        if ('startNs' in event) this.others++
    }
  }

  private call(event: TokenEvent): void {
    this.calls++
    if (event.call < 0 || !this.isDrawn(event.call)) return
    this.columns.call(event)
    this.latestCall = NaN // units may have been merged
  }

  private work(event: WorkEvent): void {
    if (!isOfCall(event)) this.others++
    else if (this.isDrawn(event.call)) {
      this.works++
      this.workNames.add(workName(event, this.shared))
      this.columns.operators[this.columns.at(event.call)]!++
    }
  }

  private operator(event: OperatorEvent): void {
    const { call, worker } = event
    if (call !== this.latestCall) {
      this.latestCall = call
      this.latestUnit = call < 0 ? -1 : this.isDrawn(call) ? this.columns.at(call) : -2
    }
    if (this.latestUnit === -2) return
    this.operators++
    if (worker >= this.workers) this.workers = worker + 1
    this.shared.index(event)
    if (this.latestUnit < 0) this.outsideCalls++
    else this.columns.operators[this.latestUnit]!++
  }

  private isDrawn(call: number): boolean {
    return !this.tokens || (call >= this.tokens[0] && call <= this.tokens[1])
  }
}
