import { UsageError } from '../../errors.ts'
import type { Clock } from '../../model/events.ts'
import type { PerfettoWriter } from '../perfetto/perfetto.ts'

/** A time on the trace's clock: a number in its unit, or nanoseconds as a bigint. */
export type Time = number | bigint

/** Units of times that are numbers. */
export type TimeUnit = 's' | 'ms' | 'us' | 'ns'

const NANOSECONDS: Readonly<Record<TimeUnit, number>> = { s: 1e9, ms: 1e6, us: 1e3, ns: 1 }

/** Times of a trace, as nanoseconds from its first one; where no clock is named, from 0. */
export class TraceTimes {
  private readonly scale: number
  private origin = 0
  private originNs = 0n
  private isBegun = false

  constructor(
    private readonly writer: PerfettoWriter,
    private readonly clock: Clock | undefined,
    unit: TimeUnit,
  ) {
    const scale = Object.hasOwn(NANOSECONDS, unit) ? NANOSECONDS[unit] : undefined
    if (scale === undefined)
      throw new UsageError(`unit: expected ${Object.keys(NANOSECONDS).join(', ')}, found ${unit}`)
    this.scale = scale
  }

  /** Whole nanoseconds since the origin. */
  ns(at: Time): number {
    if (typeof at !== 'bigint' && !Number.isFinite(at)) throw new UsageError(`expected a time, found ${at}`)
    if (!this.isBegun) this.begin(at)
    const ns = typeof at === 'bigint' ? Number(at - this.originNs) : Math.round((at - this.origin) * this.scale)
    if (ns < 0 && this.clock === undefined) throw new UsageError(`time ${at}: expected 0 or later${HINT}`)
    if (!Number.isSafeInteger(ns)) {
      const near = this.clock === undefined ? '104 days from 0' : '104 days from the first time'
      throw new UsageError(`time ${at}: expected at most ${near}${this.clock === undefined ? HINT : UNIT_HINT}`)
    }
    return ns
  }

  /** The same instant on several clocks. */
  relate(readings: readonly { readonly clock: Clock; readonly ns: bigint }[]): void {
    const own = readings.find(({ clock }) => clock === this.clock)
    if (!own) throw new UsageError(`clocks: expected a reading of the trace's clock (${this.clock ?? 'not named'})`)
    if (!this.isBegun) this.begin(own.ns)
    this.writer.clocks(readings)
  }

  /** The time as nanoseconds on the clock. */
  private absolute(at: Time): bigint {
    if (typeof at === 'bigint') return at
    const whole = Math.trunc(at)
    return BigInt(whole) * BigInt(this.scale) + BigInt(Math.round((at - whole) * this.scale))
  }

  private begin(at: Time): void {
    this.isBegun = true
    if (this.clock === undefined) this.writer.countFrom(0)
    else {
      this.originNs = this.absolute(at)
      this.origin = typeof at === 'bigint' ? Number(at) / this.scale : at
    }
    this.writer.origin(this.clock ?? 'unknown', this.originNs)
  }
}

const HINT =
  "\nhint: without a clock, times count from 0; name one for others, such as { clock: 'REALTIME', unit: 'ms' } for Date.now()"
const UNIT_HINT = '\nhint: times are in the unit of the trace (ns by default), bigints always in nanoseconds'
