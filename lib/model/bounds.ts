import { isTime, TIME_NS_MAX } from './limits.ts'

/** A field of an event that is out of its range. */
export interface Wrong {
  readonly code: 'impossible-time' | 'value-out-of-range'
  readonly field: string
  readonly expected: string
  readonly found: unknown
  /** Valid values, with which the event is kept. */
  readonly instead?: object
}

/** The first wrong field of an event, for each of its kinds. */
export type Bounds<E extends { readonly kind: string }> = {
  readonly [K in E['kind']]: (event: Extract<E, { readonly kind: K }>) => Wrong | undefined
}

/** Where times must be. */
export const NEAR = 'in whole nanoseconds within 100 days of the origin'
const LONG = 'of 0 to 100 days'

/** A time that no event can have. */
export function wrongTime(atNs: number): Wrong | undefined {
  return isTime(atNs) ? undefined : impossible('atNs', NEAR, atNs)
}

/** A begin, an end or a duration that no event can have. */
export function wrongSpan(startNs: number, endNs: number): Wrong | undefined {
  if (!isTime(startNs)) return impossible('startNs', NEAR, startNs)
  if (!isTime(endNs)) return impossible('endNs', NEAR, endNs)
  const durationNs = endNs - startNs
  return durationNs >= 0 && durationNs <= TIME_NS_MAX ? undefined : impossible('a duration', LONG, durationNs)
}

/** Larger amounts are damage: sums and squares of them would not be numbers. */
const AMOUNT_MAX = 1e24

/** A number anywhere in an event that no amount can be. For kinds of which there are few events. */
export function wrongAmount(event: object): Wrong | undefined {
  return areAmounts(event) ? undefined : wrongWithin(event, '')
}

function areAmounts(part: object): boolean {
  for (const key in part) {
    const value: unknown = part[key as keyof typeof part]
    if (typeof value === 'number') {
      if (!(Math.abs(value) <= AMOUNT_MAX)) return false
    } else if (isPart(value) && !areAmounts(value)) return false
  }
  return true
}

const isPart = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !ArrayBuffer.isView(value)

function wrongWithin(part: object, path: string): Wrong | undefined {
  for (const key in part) {
    const value: unknown = part[key as keyof typeof part]
    const wrong = isPart(value)
      ? wrongWithin(value, `${path}${key}.`)
      : typeof value === 'number' && wrongValue(path + key, value)
    if (wrong) return wrong
  }
  return undefined
}

/** An amount of bytes, or the value of a counter. */
export function wrongValue(field: string, value: number): Wrong | undefined {
  if (Math.abs(value) <= AMOUNT_MAX) return undefined
  return { code: 'value-out-of-range', field, expected: `a number of at most ${AMOUNT_MAX}`, found: value }
}

/** A time that cannot be. */
export function impossible(field: string, expected: string, found: unknown): Wrong {
  return { code: 'impossible-time', field, expected, found }
}

/** A number without which the event has no meaning. */
export function wrongNumber(field: string, value: number, max: number): Wrong | undefined {
  return value >= 0 && value <= max && Number.isInteger(value) ? undefined : outOfRange(field, value, 0, max)
}

/** A number that is -1 if unknown. */
export function orUnknown(field: string, value: number, max = Number.MAX_SAFE_INTEGER): Wrong | undefined {
  if (value >= -1 && value <= max && Number.isInteger(value)) return undefined
  return outOfRange(field, value, -1, max, { [field]: -1 })
}

/** A number that is not in its range. `instead`: valid values, with which the event is kept. */
export function outOfRange(field: string, found: number, min: number, max: number, instead?: object): Wrong {
  return { code: 'value-out-of-range', field, expected: `from ${min} to ${max}`, found, ...(instead && { instead }) }
}
