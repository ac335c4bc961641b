import { BuiltinClock, Clock as ClockMessage, ClockSnapshot, Trace, TracePacket } from '../../generated/perfetto.ts'
import type { Clock } from '../../model/events.ts'
import type { ProtoWriter } from './proto-writer.ts'

interface Reading {
  readonly clock: Clock
  readonly ns: bigint
}

const CLOCK_IDS: Readonly<Record<Clock, number>> = {
  MONOTONIC: BuiltinClock.BUILTIN_CLOCK_MONOTONIC,
  MONOTONIC_RAW: BuiltinClock.BUILTIN_CLOCK_MONOTONIC_RAW,
  BOOTTIME: BuiltinClock.BUILTIN_CLOCK_BOOTTIME,
  REALTIME: BuiltinClock.BUILTIN_CLOCK_REALTIME,
  PERF: BuiltinClock.BUILTIN_CLOCK_PERF,
}

/** Global custom clock of packets in a trace with snapshots: time since the origin. Small numbers make small files. */
export const ORIGIN_CLOCK = 128

/**
 * The clock of a Perfetto trace. Snapshots declare it, and SQL shows its absolute times. In a trace of one input, times count
 * from near zero ({@link countFrom}), on the clock that Perfetto assumes, without snapshots: the Perfetto UI draws snapshots as a
 * second group, and opens a group by itself only if it is the only one.
 */
export class TraceClock {
  /** Perfetto's id of the trace's clock, if snapshots declare it. */
  id: number = BuiltinClock.BUILTIN_CLOCK_MONOTONIC
  /** Do times count from near zero, without snapshots? */
  isNearZero = false
  /** Timestamp of the origin in packets. */
  originTs = 0
  private declared: Clock | 'unknown' = 'unknown'
  private originNs = 0n
  private hasOrigin = false
  /** From the trace's clock to BOOTTIME, the clock of scheduler events. */
  private toBoottimeNs: bigint | undefined
  /** The origin on all recorded clocks, where no snapshots are written. */
  private readonly origins = new Map<Clock, bigint>()
  /** Number of events before 0. */
  private early = 0

  constructor(private readonly out: ProtoWriter) {}

  /**
   * Comes first: writes no snapshots; times count from `leadNs` before the origin, or from the clock's zero if that is later.
   * trace_processor drops events before 0.
   */
  countFrom(leadNs: number): void {
    this.isNearZero = true
    this.originTs = leadNs
  }

  /** Sets the trace's clock, once. An unknown clock is written as BOOTTIME, which Perfetto assumes by default. */
  begin(declared: Clock | 'unknown', originNs: bigint): void {
    if (this.hasOrigin) return
    this.hasOrigin = true
    this.declared = declared
    this.originNs = originNs
    if (this.isNearZero) {
      if (originNs >= 0n && originNs < this.originTs) this.originTs = Number(originNs)
      return
    }
    const clock = declared === 'unknown' ? 'BOOTTIME' : declared
    this.id = CLOCK_IDS[clock]
    if (clock === 'BOOTTIME') this.toBoottimeNs = 0n
    this.snapshot(() => {
      this.reading(this.id, originNs)
      this.reading(ORIGIN_CLOCK, 0n)
      this.out.varint(ClockSnapshot.primary_trace_clock, this.id)
    })
  }

  /** The same instant on several clocks. */
  add(readings: readonly Reading[]): void {
    if (!this.isNearZero) return this.addSnapshot(readings)
    const own = readings.find(({ clock }) => clock === this.declared)
    if (!own) return
    for (const { clock, ns } of readings) {
      if (!this.origins.has(clock)) this.origins.set(clock, ns - own.ns + this.originNs)
    }
  }

  /** Timestamp in packets, for times since the origin or near zero. An event before 0 is drawn at 0. */
  timestamp(atNs: number): number {
    const ts = atNs + this.originTs
    if (ts >= 0) return ts
    this.early++
    return 0
  }

  absolute(atNs: number): bigint {
    return this.originNs + BigInt(atNs)
  }

  /** The time in BOOTTIME, as ftrace packets contain it. If its relation to the trace's clock is unknown, declares them to be equal. */
  boottime(atNs: number): bigint {
    if (this.isNearZero) return BigInt(this.timestamp(atNs))
    if (this.toBoottimeNs === undefined) {
      this.toBoottimeNs = 0n
      this.snapshot(() => {
        this.reading(this.id, this.originNs)
        this.reading(CLOCK_IDS.BOOTTIME, this.originNs)
      })
    }
    return this.absolute(atNs) + this.toBoottimeNs
  }

  /** Relates timestamps to the input's clocks, where no snapshots do. */
  attributes(): Record<string, string | number | bigint> {
    if (!this.isNearZero || !this.hasOrigin) return {}
    const others = [...this.origins].map(([clock, ns]) => [`origin_${clock.toLowerCase()}_ns`, ns])
    return {
      clock: this.declared,
      origin_ts: this.originTs,
      origin_ns: this.originNs,
      ...Object.fromEntries(others),
      ...(this.early > 0 && { drawn_at_0: this.early }),
    }
  }

  /** Writes a snapshot. Only the first relation to BOOTTIME is written: with one, conversion there and back is exact. */
  private addSnapshot(readings: readonly Reading[]): void {
    const isWritten = this.toBoottimeNs !== undefined && this.id !== CLOCK_IDS.BOOTTIME
    const written = isWritten ? readings.filter(({ clock }) => clock !== 'BOOTTIME') : readings
    this.toBoottimeNs ??= this.boottimeIn(readings)
    this.snapshot(() => {
      for (const { clock, ns } of written) this.reading(CLOCK_IDS[clock], ns)
    })
  }

  private boottimeIn(readings: readonly Reading[]): bigint | undefined {
    const own = readings.find(({ clock }) => CLOCK_IDS[clock] === this.id)
    const boottime = readings.find(({ clock }) => clock === 'BOOTTIME')
    return own && boottime && boottime.ns - own.ns
  }

  private snapshot(write: () => void): void {
    const { out } = this
    const packet = out.begin(Trace.packet)
    const snapshot = out.begin(TracePacket.clock_snapshot)
    write()
    out.end(snapshot)
    out.end(packet)
  }

  /** Writes a reading, within a snapshot. */
  private reading(id: number, ns: bigint): void {
    const { out } = this
    const clock = out.begin(ClockSnapshot.clocks)
    out.varint(ClockMessage.clock_id, id)
    out.bigVarint(ClockMessage.timestamp, ns)
    out.end(clock)
  }
}
