import type { ClocksEvent, FactsEvent, InputEvent, ReadingEvent, TensorEvent } from '../model/events.ts'
import { FLOW_MAX, INT32_MAX, isTime, STAMP_END, TIME_NS_MAX } from '../model/limits.ts'

/** A field of an event that is out of its range. */
export interface Wrong {
  readonly code: 'impossible-time' | 'value-out-of-range'
  readonly field: string
  readonly expected: string
  readonly found: unknown
  /** Valid values, with which the event is kept. */
  readonly instead?: object
}

const NEAR = 'in whole nanoseconds within 100 days of the origin'
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

/** The timeline reports other wrong times of own events: they are mistakes of the program. */
export function tooFar(field: string, ns: number): Wrong | undefined {
  return Math.abs(ns) > TIME_NS_MAX ? impossible(field, NEAR, ns) : undefined
}

/** An origin that no clock can have; the clock is then unknown. */
export function wrongOrigin({ clock, originNs }: InputEvent): Wrong | undefined {
  if (originNs >= 0n && originNs < STAMP_END) return undefined
  const instead = { originNs: 0n, clock: clock === 'none' ? clock : 'unknown' }
  return { ...impossible('originNs', `from 0 to below ${STAMP_END}`, originNs), instead }
}

/** A number that is none is no fact. */
export function wrongFact({ attributes }: InputEvent | FactsEvent): Wrong | undefined {
  for (const [key, found] of Object.entries(attributes)) {
    if (typeof found !== 'number' || Number.isFinite(found)) continue
    const { [key]: _, ...others } = attributes
    return {
      code: 'value-out-of-range',
      field: key,
      expected: 'a finite number',
      found,
      instead: { attributes: others },
    }
  }
  return undefined
}

/** Elements or bytes that no memory can have: work and sums of them would not be numbers. */
export function wrongSize({ ne, sizeBytes }: TensorEvent): Wrong | undefined {
  if (ne && !isShape(ne)) {
    const expected = 'of whole numbers, with at most 2^53 elements'
    return { code: 'value-out-of-range', field: 'a shape', expected, found: ne.join('×'), instead: { ne: undefined } }
  }
  return orUnknown('sizeBytes', sizeBytes)
}

function isShape(ne: readonly number[]): boolean {
  let elements = 1
  for (const size of ne) {
    if (!(size >= 0 && Number.isInteger(size))) return false
    elements *= Math.max(size, 1)
  }
  return elements <= Number.MAX_SAFE_INTEGER
}

/** A reading that no clock can have. */
export function wrongReadings({ readings }: ClocksEvent): Wrong | undefined {
  const wrong = readings.find(({ ns }) => ns < 0n || ns >= STAMP_END)
  return wrong && impossible(`CLOCK_${wrong.clock}`, `from 0 to below ${STAMP_END}`, wrong.ns)
}

function impossible(field: string, expected: string, found: unknown): Wrong {
  return { code: 'impossible-time', field, expected, found }
}

/** A number without which the event has no meaning. */
export function wrongNumber(field: string, value: number, max: number): Wrong | undefined {
  return value >= 0 && value <= max && Number.isInteger(value) ? undefined : outOfRange(field, value, 0, max)
}

/** A number that is -1 if unknown. */
export function orUnknown(field: string, value: number, max = Number.MAX_SAFE_INTEGER): Wrong | undefined {
  if (value >= -1 && value <= max && Number.isInteger(value)) return undefined
  return { ...outOfRange(field, value, -1, max), instead: { [field]: -1 } }
}

/** Priorities of deadline tasks are below 0. */
export function wrongPriority(field: string, value: number): Wrong | undefined {
  if ((value | 0) === value) return undefined
  return { ...outOfRange(field, value, -INT32_MAX - 1, INT32_MAX), instead: { [field]: -1 } }
}

/** Counters of viewers hold finite numbers. */
export function wrongValue({ value }: ReadingEvent): Wrong | undefined {
  if (Number.isFinite(value)) return undefined
  return { code: 'value-out-of-range', field: 'value', expected: 'a finite number', found: value }
}

/** Arrows that viewers cannot draw. */
export function wrongFlows(flows: readonly number[]): Wrong | undefined {
  const wrong = flows.find((flow) => !(flow >= 0 && flow <= FLOW_MAX && Number.isInteger(flow)))
  return wrong === undefined ? undefined : { ...outOfRange('flows', wrong, 0, FLOW_MAX), instead: { flows: undefined } }
}

function outOfRange(field: string, found: number, min: number, max: number): Wrong {
  return { code: 'value-out-of-range', field, expected: `from ${min} to ${max}`, found }
}
