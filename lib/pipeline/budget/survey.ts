import type { OperatorEvent, TokenEvent, TraceEvent } from '../../model/events.ts'
import type { Names } from '../../model/names.ts'
import type { EventPass } from '../../model/pass.ts'
import type { ConvertOptions } from '../options.ts'
import { CallColumns } from './call-columns.ts'
import { SummedNames } from './operator-sums.ts'
import { type Costs, type Drawers, Trial } from './trial.ts'

/** Bytes of an event that belongs to no call, such as a range: measured, the most. */
const OTHER_BYTES = { perfetto: 60, json: 300 } as const

/** What the first reading of a log finds out. */
export interface Survey {
  readonly columns: CallColumns
  readonly operators: number
  /** Operators of no call. */
  readonly operatorsOutsideCalls: number
  readonly calls: number
  readonly workers: number
  /** Different names of operators' slices. */
  readonly names: number
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
    const { columns, operators, calls, workers, shared } = this
    const costs = this.trial.costs()
    const otherBytes = this.others * this.otherBytes + this.outsideCalls * costs.operator
    const drawnCalls = calls * costs.call
    const allBytes = costs.fixed + otherBytes + Math.max((operators - this.outsideCalls) * costs.operator, drawnCalls)
    const about = { operators, operatorsOutsideCalls: this.outsideCalls, calls, workers, names: shared.list.length }
    return { columns, ...about, costs, allBytes, otherBytes }
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
