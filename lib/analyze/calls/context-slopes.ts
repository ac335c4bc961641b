import type { TokenEvent } from '../../model/events.ts'
import type { CallOperators } from '../graph/operators/call-operators.ts'
import { ContextLength } from './context-length.ts'
import type { ContextSlope, OperatorSlope, SlopePart } from './figures.ts'
import { Fits } from './fits.ts'
import { FIRST_ROLE, OTHER_ROLES, ROLES_MAX, type RoleOf, type RoleTable } from './roles.ts'
import type { TimedDecode } from './times.ts'

/** Contexts with a slope. */
const CONTEXTS_MAX = 64
/** Points that wait for their operators. */
const POINTS_MAX = 1 << 17
/** Calls with operators that wait for their time: it is known once the next call shows which drafts were accepted. */
const TIMES_MAX = 1024

/** A growth of as many standard errors, of as many points, is clear. */
export const CLEAR = { errors: 4, points: 16 }

/** Quantities of {@link ContextSums.calls}. */
const [TPOT, BETWEEN, CALL] = [0, 1, 2]
/** Quantities of {@link ContextSums.operators}, where those of {@link RoleTable} follow. */
const [WHOLE, REST] = [0, 1]

/** Sums of a llama_context. */
class ContextSums {
  readonly length = new ContextLength()
  readonly calls = new Fits()
  readonly operators = new Fits()
  leftOut = 0
  sequencesMax = 0
  latestDecodes = false
}

/** A point whose operators were not read yet. */
interface Point {
  readonly of: ContextSums
  readonly x: number
  readonly callNs: number
}

/** {@link ContextSlope} of each llama_context. */
export class ContextSlopes {
  private readonly contexts = new Map<number, ContextSums>()
  /** By call. */
  private readonly points = new Map<number, Point>()
  private readonly times = new Map<number, Float64Array>()
  private readonly spare: Float64Array[] = []

  /** `hasOperators`: will operators of this call come? */
  constructor(
    private readonly roles: RoleTable,
    private readonly hasOperators: (call: number) => boolean,
  ) {}

  /** Takes a call that succeeded, in order, and returns its context length where it is known. */
  call(event: TokenEvent, timed: TimedDecode | undefined): number | undefined {
    const context = event.batch?.context ?? 0
    let sums = this.contexts.get(context)
    if (!sums) {
      if (this.contexts.size === CONTEXTS_MAX) return undefined
      sums = new ContextSums()
      this.contexts.set(context, sums)
    }
    const x = sums.length.take(event)
    const isFirst = !sums.latestDecodes
    sums.latestDecodes = event.phase === 'decode'
    if (x === undefined || !timed || event.phase !== 'decode' || Math.max(event.tokens, timed.tokens) > timed.sequences)
      return x
    if (isFirst || timed.timeNs <= 0) {
      sums.leftOut++
      return x
    }
    const callNs = event.endNs - event.startNs
    sums.calls.add(x, [timed.timeNs, timed.timeNs - callNs, callNs], 3)
    sums.sequencesMax = Math.max(sums.sequencesMax, timed.sequences)
    if (event.call < 0 || !this.hasOperators(event.call)) return x
    this.points.set(event.call, { of: sums, x, callNs })
    if (this.points.size > POINTS_MAX) this.dropPoints()
    return x
  }

  /** Drops the older half: the first key of a map is slow to find after each deletion. */
  private dropPoints(): void {
    let left = POINTS_MAX / 2
    for (const call of this.points.keys()) {
      if (left-- === 0) return
      this.points.delete(call)
    }
  }

  /** Adds operators of a call. */
  operators(event: TokenEvent, operators: CallOperators): void {
    if (event.phase !== 'decode' || event.call < 0) return
    const { roles } = this
    const { count, worker, tensor, last, startNs, waitEndNs } = operators
    let times = this.times.get(event.call)
    for (let i = 0; i < count; i++) {
      if (worker[i] !== 0) continue
      times ??= this.timesOf(event.call)
      times[roles.of(tensor[i]!, last[i]!)]! += waitEndNs[i]! - startNs[i]!
    }
  }

  private timesOf(call: number): Float64Array {
    const times = this.spare.pop() ?? new Float64Array(FIRST_ROLE + ROLES_MAX)
    this.times.set(call, times.fill(0))
    if (this.times.size > TIMES_MAX) this.settle(this.times.keys().next().value!)
    return times
  }

  /** Adds the operators of a call to the sums of its context. */
  private settle(call: number): void {
    const times = this.times.get(call)!
    const point = this.points.get(call)
    this.times.delete(call)
    this.points.delete(call)
    this.spare.push(times)
    if (!point) return
    const count = FIRST_ROLE + this.roles.list.length
    let inOperators = 0
    for (let i = OTHER_ROLES; i < count; i++) inOperators += times[i]!
    times[WHOLE] = point.callNs
    times[REST] = point.callNs - inOperators
    point.of.operators.add(point.x, times, count)
  }

  /** The slope of each context that has enough points. */
  finish(): ContextSlope[] {
    for (const call of [...this.times.keys()]) this.settle(call)
    return [...this.contexts].flatMap(([context, sums]) =>
      sums.calls.isDetermined ? [this.slopeOf(context, sums)] : [],
    )
  }

  private slopeOf(context: number, sums: ContextSums): ContextSlope {
    const { calls, operators, leftOut, length, sequencesMax } = sums
    const tpot = calls.fit(TPOT)
    return {
      context,
      points: calls.points,
      left_out: leftOut,
      from_tokens: calls.fromX,
      to_tokens: calls.toX,
      is_clear:
        calls.points >= CLEAR.points && Math.abs(tpot.ms_per_1000_tokens) > CLEAR.errors * tpot.standard_error_ms,
      positions: length.isCounted ? 'counted' : 'recorded',
      sequences_max: sequencesMax,
      tpot,
      between_calls: calls.fit(BETWEEN),
      call: calls.fit(CALL),
      operators: operators.isDetermined ? this.operatorSlope(operators) : null,
    }
  }

  private operatorSlope(fits: Fits): OperatorSlope {
    const none = { role: '', op: '', block: null }
    const role = (i: number, roleOf: RoleOf): SlopePart => ({ what: 'role', ...roleOf, ...fits.fit(FIRST_ROLE + i) })
    const parts: SlopePart[] = [
      { what: 'rest', ...none, ...fits.fit(REST) },
      { what: 'other roles', ...none, ...fits.fit(OTHER_ROLES) },
      ...this.roles.list.flatMap((roleOf, i) => (FIRST_ROLE + i < fits.quantities ? [role(i, roleOf)] : [])),
    ]
    return {
      points: fits.points,
      call: fits.fit(WHOLE),
      parts: parts
        .filter(({ what, mean_ns }) => what === 'rest' || mean_ns !== 0)
        .sort((a, b) => b.ms_per_1000_tokens - a.ms_per_1000_tokens),
    }
  }
}
