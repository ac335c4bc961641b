import { growColumns } from '../../../bytes/resized.ts'
import type { ExpertsEvent, OperatorEvent, TokenEvent } from '../../../model/events.ts'
import { type Numbers, OPERATOR_COLUMNS, OperatorColumns } from './operator-columns.ts'

/** Operators of all calls that are held: those of many workers come a block of thousands at a time. */
const HELD_MAX = 1 << 17
/** The same while the states of threads at their time are not read yet: a recorder writes them in blocks, too. 60 MB. */
const WAITING_MAX = 1 << 20
/** Operators that are read before the next check of that. */
const LOOK_EVERY = 1 << 13
/** Calls whose events are remembered after their operators were released, for late ones. */
const CALLS_MAX = 1024

/** Ids of experts that take as much memory as an operator. */
const IDS_OF_OPERATOR = 16

/** The operators of one call, as columns, those of each worker in order of time. */
export class CallOperators extends OperatorColumns {
  count = 0
  /** Number of the call; -1: in none. */
  call = -1
  /** The call; undefined where none was recorded. */
  event: TokenEvent | undefined
  /** Were other operators of the call released before? */
  isFurther = false
  /** Counts of operators that have any. */
  readonly counts: Numbers[] = []
  /** Experts that operators contain, with their indexes; and choices that were recorded as separate events. */
  readonly experts: (readonly [at: number, ids: readonly number[]])[] = []
  readonly choices: ExpertsEvent[] = []
  /** Memory that the choices take, in operators. */
  choiceSize = 0

  add(event: OperatorEvent): void {
    if (this.count === this.tensor.length) growColumns(this, OPERATOR_COLUMNS, 2 * this.count)
    const at = this.count++
    this.put(at, event)
    if (event.counts) this.counts[at] = event.counts
    if (event.experts) this.experts.push([at, event.experts])
  }

  /** Adds a choice of experts. Returns its size, in operators. */
  choose(event: ExpertsEvent): number {
    this.choices.push(event)
    const size = 1 + Math.ceil(event.ids.length / IDS_OF_OPERATOR)
    this.choiceSize += size
    return size
  }

  clear(): void {
    this.count = 0
    this.event = undefined
    this.counts.length = 0
    this.experts.length = 0
    this.choices.length = 0
    this.choiceSize = 0
  }
}

/**
 * Collects the operators of each call until those of all workers were read: the phase of a call is known at its end, and blocks of
 * one worker contain the operators of several calls. Calls are released in the order in which they began.
 */
export class OperatorsByCall {
  /** Open calls, the oldest first. */
  private readonly open = new Map<number, CallOperators>()
  private readonly events = new Map<number, TokenEvent>()
  /** Calls of which operators were released. */
  private readonly released = new WeakSet<TokenEvent>()
  private readonly spare: CallOperators[] = []
  private latest: CallOperators | undefined
  private latestCall = NaN
  private held = 0
  private heldMax: number

  /** `isKnownAt`: are the states of threads until then read? `holdMax`: operators that are held. `onCall` gets the operators of a call; those of a very long one, or late ones, in several parts. They are valid until it returns. */
  constructor(
    private readonly onCall: (operators: CallOperators) => void,
    private readonly isKnownAt: (atNs: number) => boolean,
    private readonly holdMax = HELD_MAX,
  ) {
    this.heldMax = holdMax
  }

  /** Start of the first operator that is held, nearly; undefined without any. */
  get earliestNs(): number | undefined {
    let earliestNs: number | undefined
    for (const { startNs, count } of this.open.values()) {
      if (count === 0) continue
      if (earliestNs === undefined || startNs[0]! < earliestNs) earliestNs = startNs[0]!
    }
    return earliestNs
  }

  operator(event: OperatorEvent): void {
    let latest = this.latest
    if (event.call !== this.latestCall || latest === undefined) {
      latest = this.of(event.call)
      this.latest = latest
      this.latestCall = event.call
    }
    latest.add(event)
    if (++this.held > this.heldMax) this.makeRoom()
  }

  /** A choice of experts; a call may have only these. */
  experts(event: ExpertsEvent): void {
    this.held += this.of(event.call).choose(event)
    if (this.held > this.heldMax) this.makeRoom()
  }

  call(event: TokenEvent): void {
    if (event.call < 0) return
    this.events.set(event.call, event)
    if (this.events.size > CALLS_MAX + this.open.size) this.events.delete(this.events.keys().next().value!)
  }

  finish(): void {
    while (this.open.size > 0) this.release()
  }

  private of(call: number): CallOperators {
    let operators = this.open.get(call)
    if (!operators) {
      operators = this.spare.pop() ?? new CallOperators()
      this.open.set(call, operators)
    }
    return operators
  }

  private makeRoom(): void {
    const [call, { count, waitEndNs }] = this.open.entries().next().value!
    const hasEnded = call < 0 || this.events.has(call)
    const isKnown = count === 0 || this.isKnownAt(waitEndNs[count - 1]!)
    if (this.held < WAITING_MAX && !(hasEnded && isKnown)) {
      this.heldMax = this.held + LOOK_EVERY
      return
    }
    this.heldMax = this.holdMax
    this.release()
  }

  private release(): void {
    const [call, operators] = this.open.entries().next().value!
    this.open.delete(call)
    if (operators === this.latest) this.latest = undefined
    operators.call = call
    operators.event = this.events.get(call)
    operators.isFurther = operators.event !== undefined && this.released.has(operators.event)
    if (operators.event) this.released.add(operators.event)
    this.held -= operators.count + operators.choiceSize
    this.onCall(operators)
    operators.clear()
    this.spare.push(operators)
  }
}
