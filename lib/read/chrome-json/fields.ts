import { Ascii } from '../../bytes/ascii.ts'
import { ByteTable } from '../../input/byte-table.ts'
import { textIn, unescaped } from '../../input/json-bytes.ts'
import type { IssueCode } from '../../model/issues.ts'
import type { Names } from '../../model/names.ts'
import { TimeGuard } from '../common/time-guard.ts'
import type { GroupKind, Rows } from './rows.ts'
import { type EventScanner, Field } from './scanner.ts'

/** What becomes of slices of a category: rows of some kind, or what the GPU's rows draw. */
export type Route = GroupKind | 'api' | 'kernel' | 'memcpy' | 'memset' | 'sync'

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
  /** Its name's id; undefined where an event has no category. */
  readonly name: number | undefined
  readonly text: string
  readonly route: Route
}

/** Where and when an event is. */
export interface Place {
  readonly category: EventCategory
  readonly name: number
  /** As {@link Rows} numbers them. */
  readonly pid: number
  readonly tid: number
  readonly startNs: number
  readonly endNs: number
}

/** Reads the fields of events, but their arguments: category, name, process and thread, times. */
export class Fields {
  /** The latest start or end of any event. */
  lastNs = 0
  readonly guard = new TimeGuard()
  /** The name of events that have none. */
  readonly noName: number
  private readonly categories: ByteTable<EventCategory>
  private readonly noCategory: EventCategory = { name: undefined, text: '', route: 'process' }
  private readonly texts: ByteTable<number>
  private readonly functions: ByteTable<number>
  private readonly micros = new Micros()
  private origin = { whole: 0, nanos: 0 }

  /** `issue` gets what is wrong with the event that is read. */
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
      return { name: text === '' ? undefined : names.id(text), text, route: ROUTES.get(text) ?? 'process' }
    })
  }

  /** Fixes the origin, in nanoseconds of the source's own times. */
  begin(originNs: bigint): void {
    this.origin = { whole: Number(originNs / 1000n), nanos: Number(originNs % 1000n) }
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

  /** The text of a field, or what the value is written as; empty where there is none. */
  textOf({ bytes, starts, ends }: EventScanner, field: number): string {
    const start = starts[field]!
    return start < 0 ? '' : textIn(bytes, start, ends[field]!)
  }

  /** Nanoseconds since the origin; undefined, and an issue, where there is no time. */
  timeOf(event: EventScanner): number | undefined {
    const { micros, guard, origin } = this
    const start = event.starts[Field.ts]!
    if (start < 0 || !micros.read(event.bytes, start, event.ends[Field.ts]!)) {
      const found = start < 0 ? 'none' : this.textOf(event, Field.ts).slice(0, 40)
      this.issue('event-without-time', `expected microseconds in "ts", found ${found}`)
      return undefined
    }
    const ns = micros.since(origin.whole, origin.nanos)
    const doubt = micros.whole < 0 ? `expected a time from 0 on, found ${micros.whole} µs` : guard.doubt(ns)
    if (doubt === undefined) {
      if (ns > this.lastNs) this.lastNs = ns
      return ns
    }
    this.issue('impossible-time', doubt)
    return undefined
  }

  /** Nanoseconds; 0, and an issue, where there is no duration. */
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
    const id = start < 0 ? 0 : table.get(bytes, isQuoted ? start + 1 : start, ends[Field.name]! - (isQuoted ? 1 : 0))
    return id || this.noName
  }
}

/** A Python function without the folders of its file: those of an absolute path are the machine's, not the program's. */
function withoutFolders(name: string): string {
  const packages = /^(?:[A-Za-z]:)?[/\\][^(]*[/\\](?:site|dist)-packages[/\\]/
  return name.replace(packages, '').replace(/^(?:[A-Za-z]:)?[/\\](?:[^(]*[/\\])?/, '')
}

/** Beyond, a power of ten is no time. */
const EXPONENT_MAX = 40
const DECIMAL = /^(-?)(\d{1,400})(?:\.(\d{0,400}))?(?:[eE]([+-]?\d{1,4}))?$/

/**
 * A decimal number of microseconds as it is written, to the nanosecond: a double holds a time of today to a quarter of a
 * microsecond only. Finer digits are rounded.
 */
export class Micros {
  /** Whole microseconds, and the nanoseconds beyond; both below 0 for a time before 0. */
  whole = 0
  nanos = 0

  /** Reads the number `[start, end)`, which may be in quotes; false if it is none, or too large to be a time. */
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

  /** Nanoseconds since another time; NaN where a number does not hold them exactly. */
  since(whole: number, nanos: number): number {
    const ns = (this.whole - whole) * 1000 + (this.nanos - nanos)
    return Number.isSafeInteger(ns) ? ns : NaN
  }

  /** With exponents, and with more digits than a double holds. */
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
