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

/** The clock of a Perfetto trace, and its snapshots. */
export class TraceClock {
  /** Perfetto's id of the clock. */
  id: number = BuiltinClock.BUILTIN_CLOCK_MONOTONIC
  private originNs = 0n
  private hasOrigin = false
  /** From the trace's clock to BOOTTIME, the clock of scheduler events. */
  private toBoottimeNs: bigint | undefined

  constructor(private readonly out: ProtoWriter) {}

  /** Sets the trace's clock, once. An unknown clock is written as BOOTTIME, which Perfetto assumes by default. */
  begin(declared: Clock | 'unknown', originNs: bigint): void {
    if (this.hasOrigin) return
    const clock = declared === 'unknown' ? 'BOOTTIME' : declared
    this.originNs = originNs
    this.id = CLOCK_IDS[clock]
    this.add([{ clock, ns: originNs }])
  }

  /** Writes a snapshot. Only the first relation to BOOTTIME is written: with one, conversion there and back is exact. */
  add(readings: readonly Reading[]): void {
    const isWritten = this.toBoottimeNs !== undefined && this.id !== CLOCK_IDS.BOOTTIME
    const written = isWritten ? readings.filter(({ clock }) => clock !== 'BOOTTIME') : readings
    this.toBoottimeNs ??= this.boottimeIn(readings)
    this.snapshot(() => {
      for (const { clock, ns } of written) this.reading(CLOCK_IDS[clock], ns, false)
      if (!this.hasOrigin) this.out.varint(ClockSnapshot.primary_trace_clock, this.id)
      this.hasOrigin = true
    })
  }

  /** Writes a reading, within a snapshot. */
  reading(id: number, ns: bigint, isIncremental: boolean): void {
    const { out } = this
    const clock = out.begin(ClockSnapshot.clocks)
    out.varint(ClockMessage.clock_id, id)
    out.bigVarint(ClockMessage.timestamp, ns)
    if (isIncremental) out.varint(ClockMessage.is_incremental, 1)
    out.end(clock)
  }

  absolute(atNs: number): bigint {
    return this.originNs + BigInt(atNs)
  }

  /** The absolute time in BOOTTIME. If its relation to the trace's clock is unknown, declares them to be equal. */
  boottime(atNs: number): bigint {
    if (this.toBoottimeNs === undefined) {
      this.toBoottimeNs = 0n
      this.snapshot(() => {
        this.reading(this.id, this.originNs, false)
        this.reading(CLOCK_IDS.BOOTTIME, this.originNs, false)
      })
    }
    return this.absolute(atNs) + this.toBoottimeNs
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
}
