import { Ascii } from '../../bytes/ascii.ts'
import { ByteTable } from '../../input/byte-table.ts'
import { isNull, textIn, unescaped } from '../../input/json-bytes.ts'
import type { IssueCode } from '../../model/issues.ts'
import type { Names } from '../../model/names.ts'
import { TimeGuard } from '../common/time-guard.ts'
import type { RowKind, Rows } from './rows.ts'
import { type EventScanner, Field } from './scanner.ts'

/** Destination of the slices of a category: rows of some kind, or events of the GPU. */
export type Route = RowKind | 'operators' | 'api' | 'kernel' | 'memcpy' | 'memset' | 'sync'

/** Categories of the profiler of PyTorch (libkineto's ActivityType.cpp); all others are drawn by process and thread. */
const ROUTES: ReadonlyMap<string, Route> = new Map<string, Route>([
  ['cpu_op', 'operators'],
  ['user_annotation', 'operators'],
  ['python_function', 'python'],
  ['cuda_runtime', 'api'],
  ['cuda_driver', 'api'],
  ['xpu_runtime', 'api'],
  ['xpu_driver', 'api'],
  ['kernel', 'kernel'],
  ['gpu_memcpy', 'memcpy'],
  ['gpu_memset', 'memset'],
  ['gpu_user_annotation', 'annotations'],
  ['cuda_sync', 'sync'],
  ['cuda_event', 'sync'],
  ['cpu_instant_event', 'memory'],
  ['overhead', 'profiler'],
  ['Trace', 'profiler'],
])

/** A category of the source. */
export interface EventCategory {
  /** Id of its name; undefined for events without a category. */
  readonly name: number | undefined
  readonly text: string
  readonly route: Route
}

/** Category, name, row and times of an event. */
export interface Place {
  readonly category: EventCategory
  readonly name: number
  /** Numbers of {@link Rows}. */
  readonly pid: number
  readonly tid: number
  readonly startNs: number
  readonly endNs: number
}

/** Reads the fields of events, except their arguments: category, name, process, thread, times. */
export class Fields {
  /** The latest start or end of any event. */
  lastNs = 0
  readonly guard = new TimeGuard()
  /** Name of events without a name. */
  readonly noName: number
  private readonly categories: ByteTable<EventCategory>
  private readonly noCategory: EventCategory = { name: undefined, text: '', route: 'thread' }
  private readonly texts: ByteTable<number>
  private readonly functions: ByteTable<number>
  private readonly micros = new Micros()
  private origin = { whole: 0, nanos: 0 }
  private leastNs = 0

  /** `issue` gets the problems of the current event. */
  constructor(
    names: Names,
    private readonly rows: Rows,
    private readonly issue: (code: IssueCode, detail: string) => void,
  ) {
    this.noName = names.id('(no name)')
    this.texts = new ByteTable((raw) => names.id(unescaped(raw)))
    this.functions = new ByteTable((raw) => names.id(withoutFolders(unescaped(raw))))
    this.categories = new ByteTable((raw) => {
      const text = unescaped(raw)
      return { name: text === '' ? undefined : names.id(text), text, route: ROUTES.get(text) ?? 'thread' }
    })
  }

  /** Sets the origin, in nanoseconds of the file's times and of the trace's, which are from 0 on. */
  begin(ownNs: bigint, originNs: bigint): void {
    this.origin = { whole: Number(ownNs / 1000n), nanos: Number(ownNs % 1000n) }
    this.leastNs = -Number(originNs)
  }

  /** The place of an event without a duration; undefined, with an issue, if there is no valid time. */
  placeAt(event: EventScanner): Place | undefined {
    const atNs = this.timeOf(event)
    return atNs === undefined ? undefined : this.placeOf(event, atNs, atNs)
  }

  placeOf(event: EventScanner, startNs: number, endNs: number): Place {
    const { bytes, starts, ends } = event
    const category = this.categoryOf(event)
    const pid = this.rows.idOf(bytes, starts[Field.pid]!, ends[Field.pid]!)
    const tid = this.rows.idOf(bytes, starts[Field.tid]!, ends[Field.tid]!)
    const name = this.nameOf(event, category.route === 'python' ? this.functions : this.texts)
    return { category, name, pid, tid, startNs, endNs }
  }

  categoryOf({ bytes, starts, ends }: EventScanner): EventCategory {
    const start = starts[Field.cat]!
    if (start < 0 || bytes[start] !== Ascii.Quote) return this.noCategory
    return this.categories.get(bytes, start + 1, ends[Field.cat]! - 1)
  }

  /** The text of a field, or the JSON of another value; empty if there is none. */
  textOf({ bytes, starts, ends }: EventScanner, field: number): string {
    const start = starts[field]!
    return start < 0 ? '' : textIn(bytes, start, ends[field]!)
  }

  /** Nanoseconds since the origin; undefined, with an issue, if there is no valid time. */
  timeOf(event: EventScanner): number | undefined {
    const { micros, guard, origin } = this
    const start = event.starts[Field.ts]!
    if (start < 0 || !micros.read(event.bytes, start, event.ends[Field.ts]!)) {
      const found = start < 0 ? 'none' : this.textOf(event, Field.ts).slice(0, 40)
      this.issue('event-without-time', `expected microseconds in "ts", found ${found}`)
      return undefined
    }
    const ns = micros.since(origin.whole, origin.nanos)
    const doubt =
      ns < this.leastNs ? `expected a time from 0 on, found ${micros.whole} µs of the file` : guard.doubt(ns)
    if (doubt === undefined) {
      if (ns > this.lastNs) this.lastNs = ns
      return ns
    }
    this.issue('impossible-time', doubt)
    return undefined
  }

  /** Nanoseconds; 0, with an issue, if there is no valid duration. */
  durationOf(event: EventScanner, startNs: number): number {
    const { micros } = this
    const start = event.starts[Field.dur]!
    const isNumber = start >= 0 && micros.read(event.bytes, start, event.ends[Field.dur]!)
    const ns = isNumber ? micros.since(0, 0) : NaN
    if (ns >= 0 && Number.isSafeInteger(startNs + ns)) return ns
    const found = start < 0 ? 'none' : this.textOf(event, Field.dur).slice(0, 40)
    this.issue('event-without-end', `expected a duration from 0 on in "dur", found ${found}`)
    return 0
  }

  private nameOf({ bytes, starts, ends }: EventScanner, table: ByteTable<number>): number {
    const start = starts[Field.name]!
    const isQuoted = bytes[start] === Ascii.Quote
    const id =
      start < 0 || isNull(bytes, start)
        ? 0
        : table.get(bytes, isQuoted ? start + 1 : start, ends[Field.name]! - (isQuoted ? 1 : 0))
    return id || this.noName
  }
}

/** A Python function without the folders of an absolute path, which differ between machines. */
function withoutFolders(name: string): string {
  const packages = /^(?:[A-Za-z]:)?[/\\][^(]*[/\\](?:site|dist)-packages[/\\]/
  return name.replace(packages, '').replace(/^(?:[A-Za-z]:)?[/\\](?:[^(]*[/\\])?/, '')
}

/** Larger exponents are no times. */
const EXPONENT_MAX = 40
const DECIMAL = /^(-?)(\d{1,400})(?:\.(\d{0,400}))?(?:[eE]([+-]?\d{1,4}))?$/

/**
 * A decimal number of microseconds, exact to the nanosecond: as a double, a time of today is exact to a quarter of a microsecond
 * only. Finer digits are rounded.
 */
export class Micros {
  /** Whole microseconds and the remaining nanoseconds; both below 0 for a time below 0. */
  whole = 0
  nanos = 0

  /** Reads the number `[start, end)`, which may be in quotes; false if it is no number, or too large. */
  read(bytes: Uint8Array, start: number, end: number): boolean {
    if (bytes[start] === Ascii.Quote) {
      start++
      end--
    }
    const isNegative = bytes[start] === Ascii.Minus
    let at = isNegative ? start + 1 : start
    const first = at
    let whole = 0
    for (; at < end; at++) {
      const digit = bytes[at]! - 0x30
      if (digit < 0 || digit > 9) break
      whole = whole * 10 + digit
    }
    if (at === first || whole > Number.MAX_SAFE_INTEGER) return this.readSlowly(bytes, start, end)
    let nanos = 0
    if (at < end && bytes[at] === Ascii.Point) {
      at++
      for (let unit = 100; at < end; at++, unit /= 10) {
        const digit = bytes[at]! - 0x30
        if (digit < 0 || digit > 9) break
        if (unit >= 1) nanos += digit * unit
        else if (unit > 0.05 && digit >= 5) nanos++
      }
    }
    if (at !== end) return this.readSlowly(bytes, start, end)
    this.whole = isNegative ? -whole : whole
    this.nanos = isNegative ? -nanos : nanos
    return true
  }

  /** Nanoseconds since another time; NaN if they are above 2^53. */
  since(whole: number, nanos: number): number {
    const ns = (this.whole - whole) * 1000 + (this.nanos - nanos)
    return Number.isSafeInteger(ns) ? ns : NaN
  }

  /** Reads exponents, and more digits than are exact as a double. */
  private readSlowly(bytes: Uint8Array, start: number, end: number): boolean {
    if (end - start > 1000) return false
    const [, sign, whole, fraction = '', exponent = '0'] = DECIMAL.exec(ascii(bytes, start, end)) ?? []
    if (whole === undefined || Math.abs(Number(exponent)) > EXPONENT_MAX) return false
    const shift = Number(exponent) + 3 - fraction.length
    const digits = BigInt(whole + fraction)
    const scale = 10n ** BigInt(Math.abs(shift))
    const ns = (sign === '-' ? -1n : 1n) * (shift >= 0 ? digits * scale : (digits + scale / 2n) / scale)
    this.whole = Number(ns / 1000n)
    this.nanos = Number(ns % 1000n)
    return Number.isSafeInteger(this.whole)
  }
}

function ascii(bytes: Uint8Array, start: number, end: number): string {
  return String.fromCharCode(...bytes.subarray(start, end))
}
