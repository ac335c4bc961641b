import type { BufferEvent, ClocksEvent, FactsEvent, InputEvent, TensorEvent, TraceEvent } from '../model/events.ts'
import { FLOW_MAX, ID_MAX, INT32_MAX, isTime, STAMP_END, TIME_NS_MAX } from '../model/limits.ts'

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

/** Larger amounts are damage: sums and squares of them would not be numbers. */
const AMOUNT_MAX = 1e24

/** A number anywhere in an event that no amount can be. For kinds of which there are few events. */
export function wrongAmount(event: TraceEvent): Wrong | undefined {
  return wrongWithin(event, '')
}

function wrongWithin(of: object, path: string): Wrong | undefined {
  for (const key in of) {
    const value: unknown = of[key as keyof typeof of]
    const isPart = typeof value === 'object' && value !== null && !ArrayBuffer.isView(value)
    const wrong = isPart
      ? wrongWithin(value, `${path}${key}.`)
      : typeof value === 'number' && wrongValue(path + key, value)
    if (wrong) return wrong
  }
  return undefined
}

/** A value that no counter of a viewer can have; it is drawn, and not summed up. */
export function notFinite(found: number): Wrong | undefined {
  if (Number.isFinite(found)) return undefined
  return { code: 'value-out-of-range', field: 'value', expected: 'a finite number', found }
}

/** An amount of bytes, or the value of a counter. */
export function wrongValue(field: string, value: number): Wrong | undefined {
  if (Math.abs(value) <= AMOUNT_MAX) return undefined
  return { code: 'value-out-of-range', field, expected: `a number of at most ${AMOUNT_MAX}`, found: value }
}

/** Bytes of work, where they are known. */
export function wrongBytes({ facts }: { readonly facts: object }): Wrong | undefined {
  const bytes = 'bytes' in facts ? facts.bytes : undefined
  return typeof bytes === 'number' ? wrongValue('bytes', bytes) : undefined
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
export function wrongSize({ ne, sizeBytes, buffer, offset }: TensorEvent): Wrong | undefined {
  if (ne && !isShape(ne)) {
    const expected = 'of whole numbers, with at most 2^53 elements'
    return { code: 'value-out-of-range', field: 'a shape', expected, found: ne.join('×'), instead: { ne: undefined } }
  }
  const wrong = orUnknown('sizeBytes', sizeBytes) ?? orUnknown('buffer', buffer, ID_MAX)
  if (wrong || offset === undefined || Number.isSafeInteger(offset)) return wrong
  return {
    ...outOfRange('offset', offset, -Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER),
    instead: { offset: undefined },
  }
}

/** A size that no buffer has; the buffer stays, as tensors are in it. */
export function wrongBufferSize({ sizeBytes = 0 }: BufferEvent): Wrong | undefined {
  const wrong = orUnknown('sizeBytes', sizeBytes)
  return wrong && { ...wrong, instead: { sizeBytes: undefined } }
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

/** Arrows that viewers cannot draw. */
export function wrongFlows(flows: readonly number[]): Wrong | undefined {
  const wrong = flows.find((flow) => !(flow >= 0 && flow <= FLOW_MAX && Number.isInteger(flow)))
  return wrong === undefined ? undefined : { ...outOfRange('flows', wrong, 0, FLOW_MAX), instead: { flows: undefined } }
}

function outOfRange(field: string, found: number, min: number, max: number): Wrong {
  return { code: 'value-out-of-range', field, expected: `from ${min} to ${max}`, found }
}
