import { duration, percent, size } from '../lib/cli.ts'

export { count, duration, percent, plural, size, threeDigits } from '../lib/cli.ts'

/** Units that keys of the Analysis end in. */
const UNITS: Readonly<Record<string, (value: number) => string>> = { ns: duration, bytes: size, share: percent }

/** A figure in the unit that its key ends in; undefined where that has none. */
export function inUnit(key: string, value: number): string | undefined {
  const unit = /_(ns|bytes|share)$/.exec(key)?.[1]
  return unit === undefined ? undefined : UNITS[unit]!(value)
}

/** `wait` of `wait_ns`. */
export function labelOf(key: string): string {
  return key.replace(/_(ns|bytes|share)$/, '').replaceAll('_', ' ')
}
