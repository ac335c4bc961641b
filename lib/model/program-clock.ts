import { duration } from './units.ts'

/** The clock of a program, where a library replaces clock_gettime and its time is not the system's (libfaketime). Times of the log are the system's. */
export interface ProgramClock {
  /** The library. */
  readonly library: string
  /** The first of the program's clocks that differs: `MONOTONIC`, `REALTIME`; null where the log lacks its end. */
  readonly clock: string | null
  /** How fast it ran: 2 is twice as fast as real time; null where the log lacks its end. */
  readonly speed: number | null
  /** How far it was ahead of the system's at the end, below 0 behind it; null where the log lacks its end. */
  readonly ahead_ns: number | null
}

/** From the facts of a log; null: it is the system's. */
export function programClockIn(attributes: Readonly<Record<string, string | number>>): ProgramClock | null {
  const { 'clock.program': library, 'clock.program_of': clock } = attributes
  if (library === undefined) return null
  const number = (key: string) => {
    const value = Number(attributes[key] ?? NaN)
    return Number.isFinite(value) ? value : null
  }
  const ahead_ns = number('clock.program_ahead_ns')
  const perMillion = number('clock.program_speed_ppm')
  const speed = perMillion === null ? (ahead_ns === null ? null : 1) : perMillion / 1e6
  return { library: String(library), clock: clock === undefined ? null : String(clock), speed, ahead_ns }
}

/** `CLOCK_MONOTONIC of the program ran 2 times as fast as real time, and was 1.2 s ahead at the end (libfaketime.so.1)` */
export function describeProgramClock({ library, clock, speed, ahead_ns }: ProgramClock): string {
  if (clock === null || speed === null || ahead_ns === null)
    return `the clock of the program was not the system's (${library}); the log lacks its end, where its speed is`
  const ran = speed === 1 ? undefined : `ran ${Number(speed.toPrecision(5))} times as fast as real time`
  const was = `was ${duration(Math.abs(ahead_ns))} ${ahead_ns < 0 ? 'behind' : 'ahead'} at the end`
  return `CLOCK_${clock} of the program ${[ran, was].filter((part) => part !== undefined).join(', and ')} (${library})`
}
