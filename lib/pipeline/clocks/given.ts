import { UsageError } from '../../errors.ts'
import type { Clock } from '../../model/events.ts'

/** What a user says of an input's clock: its name, what to add to its times, or when the input begins. */
export type GivenClock =
  | { readonly clock: Clock }
  | { readonly offsetNs: bigint; readonly text: string }
  | { readonly startNs: bigint; readonly text: string }

/** As Linux, ftrace's `trace_clock` and perf's `-k` call them. */
const CLOCKS: ReadonlyMap<string, Clock> = new Map(
  Object.entries({
    mono: 'MONOTONIC',
    monotonic: 'MONOTONIC',
    mono_raw: 'MONOTONIC_RAW',
    monotonic_raw: 'MONOTONIC_RAW',
    boot: 'BOOTTIME',
    boottime: 'BOOTTIME',
    real: 'REALTIME',
    realtime: 'REALTIME',
  }),
)

const UNITS: ReadonlyMap<string, number> = new Map(Object.entries({ ns: 0, us: 3, µs: 3, ms: 6, s: 9 }))
const EXPECTED =
  'expected the name of a clock (mono, mono_raw, boot, real), what to add to its times (+1.2ms, -3s), or when it begins on ' +
  "the first input's clock (@1444.435370125s)"

/** `mono`, `+1.2ms`, `@1444.435370125s`. Throws UsageError for anything else. */
export function parseClock(input: string, text: string): GivenClock {
  const clock = CLOCKS.get(text.toLowerCase().replace(/^clock_/, ''))
  if (clock) return { clock }
  const [, sign, whole = '', fraction = '', unit = ''] = /^([+@-])(\d+)(?:\.(\d+))?(ns|us|µs|ms|s)$/.exec(text) ?? []
  const digits = UNITS.get(unit)
  if (sign === undefined || digits === undefined || fraction.length > digits) {
    const isOfKernel = /^(local|global|perf|uptime|x86-tsc|counter|tai)$/.test(text)
    const hint = isOfKernel ? `\nhint: ${text} has no fixed relation to other clocks: give the offset` : ''
    throw new UsageError(`clock of ${input}: ${EXPECTED}, found "${text}"${hint}`)
  }
  const ns = BigInt(whole + fraction.padEnd(digits, '0'))
  return sign === '@' ? { startNs: ns, text } : { offsetNs: sign === '-' ? -ns : ns, text }
}
