import { UsageError } from '../../errors.ts'
import { clockNamed } from '../../model/clock-names.ts'
import type { Clock } from '../../model/events.ts'
import { isZone } from './zones.ts'

/** An input's clock as the user gives it: its name, the time zone of its times, an offset of them, or the begin of the input. */
export type GivenClock =
  | { readonly clock: Clock }
  | { readonly zone: string }
  | { readonly offsetNs: bigint; readonly text: string }
  | { readonly startNs: bigint; readonly text: string }

const UNITS: ReadonlyMap<string, number> = new Map(Object.entries({ ns: 0, us: 3, µs: 3, ms: 6, s: 9 }))
const EXPECTED =
  'expected the name of a clock (mono, mono_raw, boot, real), the time zone of local times (UTC+2, Europe/Berlin), an offset of its ' +
  'times (+1.2ms, -3s), or its begin on the clock of the log (@1444.435370125s)'

/** `mono`, `+1.2ms`, `@1444.435370125s`. Throws UsageError for anything else. */
export function parseClock(input: string, text: string): GivenClock {
  const clock = clockNamed(text.toLowerCase().replace(/^clock_/, ''))
  if (clock) return { clock }
  if (isZone(text)) return { zone: text }
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

/** The input that the user means by its name or file name. */
export function inputNamed(key: string, inputs: readonly string[]): string | undefined {
  return inputs.find((input) => input === key) ?? inputs.find((input) => input.replace(/^.*[\\/]/, '') === key)
}

/** Does the user move the times of an input? Then no other one can be put on its clock. */
export const movesTimes = (given: GivenClock): boolean => 'offsetNs' in given || 'startNs' in given
