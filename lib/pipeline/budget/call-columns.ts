import { growColumns } from '../../bytes/resized.ts'
import { isFailed } from '../../model/calls.ts'
import type { TokenEvent } from '../../model/events.ts'

/** Units at most, 12 MB: more calls share units, two, four, eight of them. */
const UNITS_MAX = 1 << 18
const FIRST_CAPACITY = 1 << 10
/** Calls before the first one that was read are not expected: a block of a log contains so many. */
const EARLIER_CALLS = 4096

/** Bits of {@link CallColumns.kinds}. */
export enum CallKind {
  /** Calls that make one token for each sequence: most of a long run. */
  Decode = 1,
  /** Calls with a prompt, and those of encoders. */
  Prefill = 2,
  /** Others, such as graphs for an unknown purpose. */
  Other = 4,
}

const KINDS: Readonly<Record<TokenEvent['phase'], CallKind>> = {
  decode: CallKind.Decode,
  prefill: CallKind.Prefill,
  mixed: CallKind.Prefill,
  encode: CallKind.Prefill,
  compute: CallKind.Other,
  'warm-up': CallKind.Other,
}

/**
 * What the first reading of a log finds out about its calls, as columns. A unit is a call, or, in a log of very many calls, 2, 4,
 * 8, … successive ones, so that memory does not grow with the log.
 */
export class CallColumns {
  /** Units so far. */
  count = 0
  /** Start of the first call and end of the last, in ns; NaN where the call itself was not read. */
  startNs = new Float64Array(FIRST_CAPACITY).fill(NaN)
  endNs = new Float64Array(FIRST_CAPACITY).fill(NaN)
  /** Time of the slowest call. */
  slowestNs = new Float64Array(FIRST_CAPACITY)
  operators = new Uint32Array(FIRST_CAPACITY)
  kinds = new Uint8Array(FIRST_CAPACITY)
  /** Calls of a unit, as a power of two. */
  private shift = 0
  private base = -1

  /** The unit of a call. */
  at(call: number): number {
    const { base, shift } = this
    const at = base < 0 ? -1 : Math.floor((call - base) / 2 ** shift)
    return at >= 0 && at < this.count ? at : this.reach(call)
  }

  /** Adds a call. */
  call(event: TokenEvent): void {
    const { startNs, endNs, phase } = event
    const at = this.at(event.call)
    if (!(this.startNs[at]! <= startNs)) this.startNs[at] = startNs
    if (!(this.endNs[at]! >= endNs)) this.endNs[at] = endNs
    if (isFailed(event)) return
    this.kinds[at]! |= KINDS[phase]
    if (endNs - startNs > this.slowestNs[at]!) this.slowestNs[at] = endNs - startNs
  }

  /** The first call of a unit. */
  firstOf(unit: number): number {
    return Math.max(this.base, 0) + unit * 2 ** this.shift
  }

  private reach(call: number): number {
    if (this.base < 0) this.base = call < UNITS_MAX ? 0 : call - EARLIER_CALLS
    if (call < this.base) return 0
    while (Math.floor((call - this.base) / 2 ** this.shift) >= UNITS_MAX) this.merge()
    const at = Math.floor((call - this.base) / 2 ** this.shift)
    if (at >= this.startNs.length) this.grow(at + 1)
    if (at >= this.count) this.count = at + 1
    return at
  }

  /** Merges each two neighbours. */
  private merge(): void {
    const { startNs, endNs, slowestNs, operators, kinds } = this
    const count = (this.count + 1) >> 1
    for (let i = 0; i < count; i++) {
      const [a, b] = [2 * i, 2 * i + 1]
      startNs[i] = lesser(startNs[a]!, startNs[b] ?? NaN)
      endNs[i] = -lesser(-endNs[a]!, -(endNs[b] ?? NaN))
      slowestNs[i] = Math.max(slowestNs[a]!, slowestNs[b] ?? 0)
      operators[i] = Math.min(operators[a]! + (operators[b] ?? 0), 2 ** 32 - 1)
      kinds[i] = kinds[a]! | (kinds[b] ?? 0)
    }
    startNs.fill(NaN, count)
    endNs.fill(NaN, count)
    for (const column of [slowestNs, operators, kinds]) column.fill(0, count)
    this.count = count
    this.shift++
  }

  private grow(least: number): void {
    const before = this.startNs.length
    const size = Math.min(Math.max(2 * before, 2 ** Math.ceil(Math.log2(least))), UNITS_MAX)
    growColumns(this, ['startNs', 'endNs', 'slowestNs', 'operators', 'kinds'], size)
    this.startNs.fill(NaN, before)
    this.endNs.fill(NaN, before)
  }
}

/** The lesser number; NaN only if both are. */
function lesser(a: number, b: number): number {
  return b < a || Number.isNaN(a) ? b : a
}
