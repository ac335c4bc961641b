import { HeldOperators } from '../../analyze/graph/operators/held-operators.ts'
import { isFailed } from '../../model/calls.ts'
import type { Phase, TokenEvent, TraceEvent } from '../../model/events.ts'
import type { Names } from '../../model/names.ts'
import type { KeptAs } from '../../model/sums.ts'
import { isDrawnLate } from '../../timeline/options.ts'
import type { ConvertOptions } from '../options.ts'
import { type Choice, Thinner } from './thinner.ts'
import { type AboutBudget, Thinning } from './thinning.ts'

/** A call is slow that takes this many times as long as the mean of the calls of its phase before it. */
const SLOW_TIMES = 1.5
/** Weight of the latest call in that mean. */
const LATEST_WEIGHT = 1 / 32
/** Once not all calls are in full, every so many-th is, and so many calls are summed up together; both double again and again. */
const [FIRST_STRIDE, FIRST_LENGTH] = [8, 1]
/** Each part of the log may use this share of the bytes that are left; then the stride doubles. */
const STAGE_SHARE = 1 / 4
/** Prefills are all in full up to this stride. */
const PREFILL_STRIDE = 64
/** Share of the bytes from which on no call is in full. */
const LAST_SHARE = 0.02
/** Calls whose decisions are remembered: operators come so much later than their call at most. */
const DECIDED_MAX = 1 << 14
/** Operators that are held until the call that they belong to was read, and other events. */
const HELD_MAX = 1 << 17
const OTHERS_MAX = 1 << 15
const UNKNOWN_STRETCH = Number.MAX_SAFE_INTEGER

/** Bytes of an operator, measured: with some options, they are drawn long after they came. */
const OPERATOR_BYTES = { full: { perfetto: 300, json: 1100 }, other: { perfetto: 160, json: 600 } } as const

/** The budget of a log that can be read only once. */
export interface StreamBudget
  extends Pick<ConvertOptions, 'tokens' | 'flows' | 'barriers' | 'opName' | 'detail' | 'to'> {
  /** All calls are in full until the trace of the log has this many bytes. */
  readonly fromBytes: number
  /** The most bytes. */
  readonly toBytes: number
  /** Bytes of the log's trace so far. */
  readonly written: () => number
  readonly about: AboutBudget
  readonly isPlanned: boolean
}

interface Decision {
  readonly as: KeptAs | undefined
  readonly stretch: number
}

/** Chooses calls in the order in which they come: by what was before. */
class StreamChoice implements Choice {
  readonly windows = undefined
  /** The first call that may be summed up; Infinity: none so far. */
  from = Infinity
  private readonly decisions = new Map<number, Decision>()
  private readonly means = new Map<Phase, number>()
  private stride = FIRST_STRIDE
  private length = FIRST_LENGTH
  private stageEndBytes = 0
  private stretch = 0
  private inStretch = 0
  private latest: Phase | undefined

  constructor(private readonly budget: StreamBudget) {}

  /** Calls from this one on may be summed up. */
  begin(call: number): void {
    this.from = call
    this.nextStage()
  }

  keptAs(call: number): KeptAs | undefined {
    const { tokens, flows } = this.budget
    if (call < this.from || call === flows?.token) return 'first'
    if (tokens && (call < tokens[0] || call > tokens[1])) return 'first' // not drawn anyway
    return this.decisions.get(call)?.as
  }

  stretchOf(call: number): number {
    return this.decisions.get(call)?.stretch ?? UNKNOWN_STRETCH
  }

  isDecided(call: number): boolean {
    return call < this.from || this.decisions.has(call)
  }

  /** Decides about a call; without its event only by its number. */
  decide(call: number, event: TokenEvent | undefined): void {
    const isSlow = event !== undefined && this.isSlow(event)
    if (this.isDecided(call)) return
    const { toBytes, written } = this.budget
    if (written() > this.stageEndBytes) this.nextStage()
    const isAffordable = toBytes - written() > LAST_SHARE * toBytes
    const as = isAffordable ? this.reason(call, event, isSlow) : undefined
    const { phase } = event ?? { phase: this.latest }
    if (as || phase !== this.latest || this.inStretch >= this.length) {
      this.stretch++
      this.inStretch = 0
    }
    this.inStretch = as ? this.length : this.inStretch + 1
    this.latest = phase
    this.decisions.set(call, { as, stretch: this.stretch })
    if (this.decisions.size > DECIDED_MAX) this.decisions.delete(this.decisions.keys().next().value!)
  }

  private reason(call: number, event: TokenEvent | undefined, isSlow: boolean): KeptAs | undefined {
    if (isSlow) return 'slow'
    const { stride, from } = this
    const isPrefill = event?.phase === 'prefill' || event?.phase === 'mixed' || event?.phase === 'encode'
    if (isPrefill && (call - from) % Math.ceil(stride / PREFILL_STRIDE) === 0) return 'prefill'
    return (call - from) % stride === 0 ? 'spread' : undefined
  }

  private isSlow(event: TokenEvent): boolean {
    const { phase, startNs, endNs, tokens } = event
    if (isFailed(event) || phase === 'warm-up') return false
    const ns = (endNs - startNs) / (phase === 'decode' ? 1 : Math.max(tokens, 1))
    const mean = this.means.get(phase)
    this.means.set(phase, mean === undefined ? ns : mean + LATEST_WEIGHT * (ns - mean))
    return mean !== undefined && ns > SLOW_TIMES * mean
  }

  private nextStage(): void {
    const { toBytes, written } = this.budget
    if (this.stageEndBytes > 0) {
      this.stride *= 2
      this.length *= 2
    }
    this.stageEndBytes = written() + Math.max(toBytes - written(), 0) * STAGE_SHARE
  }
}

/**
 * Thins a log while it is read the only time. From where its trace has a part of the budget, events wait until the call that they
 * belong to was read, in their order; of very many, some are decided about without it.
 */
export class StreamThinning extends Thinning {
  private readonly budget: StreamBudget
  private readonly choice: StreamChoice
  private readonly held = new HeldOperators()
  /** Other events that wait: before the operator of a number. */
  private others: { readonly before: number; readonly event: TraceEvent }[] = []
  private latestCall = -1

  constructor(names: Names, { written, ...given }: StreamBudget) {
    const bytes = OPERATOR_BYTES[given.detail === 'full' ? 'full' : 'other'][given.to ?? 'perfetto']
    const operatorBytes = isDrawnLate(given) ? bytes : 0
    const operators = (): number => thinner.operatorsInFull
    const budget = { ...given, written: () => Math.max(written(), operators() * operatorBytes) }
    const choice = new StreamChoice(budget)
    const thinner: Thinner = new Thinner(names, choice, budget.opName)
    super(thinner, budget.about, budget.isPlanned)
    this.budget = budget
    this.choice = choice
  }

  override take(batch: readonly TraceEvent[]): TraceEvent[] {
    const { choice } = this
    if (choice.from === Infinity) {
      for (const event of batch) this.see(event)
      if (this.budget.written() >= this.budget.fromBytes) choice.begin(this.latestCall + 1)
      return super.take(batch)
    }
    for (const event of batch) if (event.kind === 'token') choice.decide(event.call, event)
    for (const event of batch) {
      if (event.kind === 'operator') this.held.add(event, -1, 0)
      else this.others.push({ before: this.held.end, event })
    }
    return super.take(this.release(false))
  }

  override finish(): TraceEvent[] {
    return [...super.take(this.release(true)), ...super.finish()]
  }

  /** Calls that have begun to be drawn stay in full. */
  private see(event: TraceEvent): void {
    if ('call' in event && event.call !== undefined && event.call > this.latestCall) this.latestCall = event.call
    if (event.kind === 'token') this.choice.decide(event.call, event)
  }

  /** The first events whose calls are decided about. */
  private release(isEnd: boolean): TraceEvent[] {
    const { held, others, choice } = this
    const released: TraceEvent[] = []
    let next = 0
    for (;;) {
      const other = others[next]
      const isOther = other !== undefined && other.before <= held.first
      if (!isOther && held.isEmpty) break
      const call = isOther ? callOf(other.event) : held.call[held.at(held.first)]!
      if (!choice.isDecided(call)) {
        const isForced = isEnd || held.size > HELD_MAX || others.length - next > OTHERS_MAX
        if (!isForced) break
        choice.decide(call, undefined)
      }
      released.push(isOther ? other.event : held.take())
      if (isOther) next++
    }
    this.others = others.slice(next)
    return released
  }
}

/** The call of an event; -1: events of no call never wait. */
function callOf(event: TraceEvent): number {
  return 'call' in event && event.call !== undefined ? event.call : -1
}
