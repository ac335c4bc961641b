import { resized } from '../bytes/resized.ts'
import { closest, UsageError } from '../errors.ts'
import { EVENT_CHECKS } from '../generated/event-checks.ts'
import type { Mismatch, ObjectCheck } from '../model/checks.ts'
import type { TraceEvent } from '../model/events.ts'
import { ID_MAX } from '../model/limits.ts'

/** Of each kind, what the fields of the first events contain is checked, and that of each 1024th one: it costs more than all else. */
const WHOLE_EVENTS = 16
const EACH_WHOLE = 1023

type Fields = Readonly<Record<string, unknown>>

/** A kind of events. */
interface Kind {
  readonly name: string
  readonly check: ObjectCheck
  count: number
  /** Names of fields that are the program's own. */
  readonly others: Set<string>
}

/**
 * Checks the events that a program creates: their kinds, the types of their fields, and that what they refer to was defined. Throws UsageError,
 * which names the event by its number; the first one is 1.
 */
export class EventCheck {
  private number = 0
  private kind: Kind | undefined
  private readonly kinds = new Map<string, Kind>()
  private tensors = new Uint8Array(1 << 10)
  private readonly calls = new Set<number>()

  /** `input`: its name. */
  constructor(private readonly input: string) {}

  take(batch: readonly TraceEvent[]): void {
    if (!Array.isArray(batch)) throw this.wrong('', 'a batch, which is an array of events', batch, 'yield [event]')
    for (const event of batch as readonly TraceEvent[]) {
      this.number++
      // Events of one kind often come one after the other.
      if (event?.kind !== this.kind?.name || event === null) this.kind = this.kindOf(event)
      const kind = this.kind!
      const count = kind.count++
      if (!kind.check.isGoodOutside(event)) this.fail(event, kind)
      if ((count & EACH_WHOLE) === 0 || count < WHOLE_EVENTS) this.checkWhole(event, kind)
      const mismatch = this.reference(event)
      if (mismatch) throw this.mismatched(event, mismatch)
    }
  }

  private kindOf(event: TraceEvent): Kind {
    const name = event?.kind as string | undefined
    const known = this.kinds.get(name ?? '')
    if (known) return known
    const check = Object.hasOwn(EVENT_CHECKS, name ?? '') ? EVENT_CHECKS[name!] : undefined
    if (!check) {
      const hint = typeof name === 'string' ? meant(name, Object.keys(EVENT_CHECKS)) : undefined
      throw this.wrong('', 'an event with a known kind', name ?? event, hint)
    }
    const kind = { name: name!, check, count: 0, others: new Set<string>() }
    this.kinds.set(name!, kind)
    return kind
  }

  private checkWhole(event: TraceEvent, kind: Kind): void {
    if (!kind.check.isGood(event)) this.fail(event, kind)
    this.checkNames(event, kind)
  }

  private fail(event: TraceEvent, kind: Kind): never {
    const mismatch = kind.check.mismatch(event, '')
    if (mismatch.found === undefined) this.checkNames(event, kind)
    throw this.mismatched(event, mismatch)
  }

  /** Fields that no event has may be the program's own, but not where one that may be missing has nearly their name. */
  private checkNames(event: TraceEvent, { name: kind, check, others }: Kind): void {
    for (const name in event) {
      if (name === 'kind' || Object.hasOwn(check.fields, name) || others.has(name)) continue
      const absent = Object.keys(check.fields).filter((field) => (event as unknown as Fields)[field] === undefined)
      const field = closest(name, absent)
      if (field !== undefined) throw this.wrong(kind, 'known fields', name, `did you mean ${field}?`)
      others.add(name)
    }
  }

  private reference(event: TraceEvent): Mismatch | undefined {
    switch (event.kind) {
      case 'tensor':
        this.define(event.id)
        return undefined
      case 'operator':
        return (
          this.unknown('tensor', event.tensor) ??
          (event.fusedTo === undefined ? undefined : this.unknown('fusedTo', event.fusedTo))
        )
      case 'experts':
        return this.unknown('tensor', event.tensor)
      case 'token':
        if (event.call >= 0 && this.calls.has(event.call))
          return { field: 'call', expected: 'a number that no other call has', found: event.call }
        this.calls.add(event.call)
        return undefined
      default:
        return undefined
    }
  }

  private define(id: number): void {
    if (!isId(id)) return
    if (id >= this.tensors.length) this.tensors = resized(this.tensors, 2 * id)
    this.tensors[id] = 1
  }

  private unknown(field: string, id: number): Mismatch | undefined {
    return this.tensors[id] === 1 || !isId(id)
      ? undefined
      : { field, expected: 'the id of a tensor event before it', found: id }
  }

  private mismatched({ kind }: TraceEvent, { field, expected, found }: Mismatch): UsageError {
    return this.wrong(kind, `${field}: ${expected}`, found, hintOf(expected, found))
  }

  private wrong(kind: string, expected: string, found: unknown, hint: string | undefined): UsageError {
    const place = `${this.input}: event ${this.number}${kind === '' ? '' : ` (${kind})`}`
    return new UsageError(`${place}: expected ${expected}, found ${inWords(found)}\nhint: ${hint ?? EVENTS_DOCS}`)
  }
}

/** Others are issues (`EventBounds`). */
const isId = (id: number) => Number.isInteger(id) && id >= 0 && id <= ID_MAX

const EVENTS_DOCS = 'docs/reference/own-formats.md describes events; TypeScript checks them, too (TraceEvent)'

function hintOf(expected: string, found: unknown): string | undefined {
  if (expected === 'a number' && typeof found === 'string')
    return `texts are interned: names.id(${JSON.stringify(found)}), with the names that events() gets`
  if (expected === 'a number' && typeof found === 'bigint')
    return 'times are numbers of nanoseconds since originNs, which alone is a bigint'
  if (expected === 'a bigint' && typeof found === 'number' && Number.isInteger(found)) return `${found}n is a bigint`
  if (expected.startsWith('the id of a tensor')) return 'yield the event of a tensor before those that refer to it'
  if (expected.startsWith('a number that no other')) return 'count calls from 0; -1: not known'
  return typeof found === 'string'
    ? meant(
        found,
        [...expected.matchAll(/"([^"]+)"/g)].map(([, word]) => word!),
      )
    : undefined
}

function meant(word: string, words: readonly string[]): string | undefined {
  const found = closest(word, words)
  return found === undefined ? undefined : `did you mean ${found}?`
}

/** A value, as far as its begin shows it. */
function inWords(found: unknown): string {
  if (typeof found === 'bigint') return `${found}n`
  if (typeof found === 'number' || found === undefined || found === null) return String(found)
  const text = typeof found === 'function' ? 'a function' : (JSON.stringify(found, jsonOf) ?? typeof found)
  return text.length > 60 ? `${text.slice(0, 60)}…` : text
}

const jsonOf = (_: string, value: unknown) => (typeof value === 'bigint' ? `${value}n` : value)
