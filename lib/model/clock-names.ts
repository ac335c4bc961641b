import type { Clock } from './events.ts'

const CLOCKS: ReadonlyMap<string, Clock> = new Map(
  Object.entries({
    mono: 'MONOTONIC',
    monotonic: 'MONOTONIC',
    mono_raw: 'MONOTONIC_RAW',
    monotonic_raw: 'MONOTONIC_RAW',
    raw: 'MONOTONIC_RAW',
    boot: 'BOOTTIME',
    boottime: 'BOOTTIME',
    real: 'REALTIME',
    realtime: 'REALTIME',
  }),
)

/** The clock of a name of Linux, of ftrace's `trace_clock`, of perf's `-k` or of our bpftrace scripts. */
export function clockNamed(name: string): Clock | undefined {
  return CLOCKS.get(name)
}
