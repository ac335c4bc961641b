import { Ascii } from '../../bytes/ascii.ts'
import { parsedJson, textIn } from '../../input/json-bytes.ts'
import { DefaultMap } from '../../model/default-map.ts'
import type { LeftOut } from '../../model/left-out.ts'
import type { ArrowEnd, Runs } from './arrows.ts'
import type { EventCategory, Place } from './fields.ts'
import type { GpuActivity } from './gpu.ts'
import type { Rows } from './rows.ts'
import { type EventScanner, Field } from './scanner.ts'

/** Category of arrows from launches to GPU work, which are drawn by correlation ids, even if one end is missing. */
const LAUNCHES = 'ac2g'
const BACKWARD = 'fwdbwd'
/** Categories whose ends belong to the enclosing slice even without `bp` (as in catapult's importer). */
const AROUND = /input|ipc\.flow/
/** Kind of arrows that are fields of slices: their ids have neither category nor name. */
const FIELDS_KIND = 0
const NO_NAME = 0
const [LETTER_E, LETTER_T, ONE] = [0x65, 0x74, 0x31]

/** Reads the ends of arrows. */
export class FlowReader {
  /** By category and name. */
  private readonly kinds: DefaultMap<number, number> = new DefaultMap(() => this.kinds.size + FIELDS_KIND + 1)
  /** Ends without a slice, by thread. */
  private readonly loose = new DefaultMap((_thread: number) => ({ launches: 0, others: 0 }))
  private atWork = 0

  constructor(
    private readonly rows: Rows,
    private readonly gpu: GpuActivity,
    private readonly runs: Runs,
  ) {}

  /** Is an event the end of an arrow from a launch to GPU work, directly after the launch or the work? */
  isOfGpu(event: EventScanner, { text }: EventCategory, atNs: number): boolean {
    if (text !== LAUNCHES) return false
    const { bytes, starts, ends } = event
    const pid = this.rows.idOf(bytes, starts[Field.pid]!, ends[Field.pid]!)
    const tid = this.rows.idOf(bytes, starts[Field.tid]!, ends[Field.tid]!)
    return this.gpu.isLatest(this.rows.threadKey(pid, tid), atNs)
  }

  /** The end of an arrow that an event is; undefined if it has no id. */
  endOf(event: EventScanner, phase: 's' | 't' | 'f', place: Place, byte: number): ArrowEnd | undefined {
    const { category, name, pid, tid, startNs: atNs } = place
    const isLaunch = category.text === LAUNCHES
    const kind = this.kindOf(category.name ?? 0, name)
    const key = idKey(event, kind, pid)
    if (key === undefined) return undefined
    const isAround = phase !== 'f' || event.firstByte(Field.bp) === LETTER_E || AROUND.test(category.text)
    const track = category.text === BACKWARD ? this.rows.thread('thread', pid, tid) : undefined
    const launch =
      isLaunch && event.has(Field.id) ? Number(textIn(event.bytes, event.starts[Field.id]!, event.ends[Field.id]!)) : -1
    const run = phase === 's' ? this.runs.start(key, atNs, byte) : undefined
    const what = phase === 's' ? 'start' : phase === 't' ? 'step' : 'end'
    const correlation = Number.isSafeInteger(launch) ? launch : -1
    return this.made({ atNs, byte, key, what, run, isAround, track, launch: correlation })
  }

  /** Key of the asynchronous operation of an event; the same for all events of a category without an id. */
  operationOf(event: EventScanner, { category, pid }: Pick<Place, 'category' | 'pid'>): number {
    const kind = this.kindOf(category.name ?? 0)
    return idKey(event, kind, pid) ?? -1 - kind
  }

  /** The end of an arrow in the fields of a slice: `bind_id`, with `flow_out`, `flow_in`, or both. */
  ofSlice(event: EventScanner, atNs: number, byte: number): readonly ArrowEnd[] | undefined {
    if (!event.has(Field.bindId)) return undefined
    const [isIn, isOut] = [isTrue(event, Field.flowIn), isTrue(event, Field.flowOut)]
    const key = plainKey(event, Field.bindId, FIELDS_KIND)
    if (key === undefined || !(isIn || isOut)) return undefined
    const run = isIn ? undefined : this.runs.start(key, atNs, byte)
    const what = run ? 'start' : isOut ? 'step' : 'end'
    const common = { isAround: true, track: undefined, launch: -1 }
    return [this.made({ atNs, byte, key, what, run, ...common })]
  }

  /** Number for arrows of a category and a name; without a name, for asynchronous operations of the category. */
  private kindOf(category: number, name = NO_NAME): number {
    return this.kinds.of(category * 2 ** 26 + name)
  }

  /** Counts ends of arrows in the fields of GPU work. */
  atGpuWork(ends: readonly ArrowEnd[] | undefined): void {
    if (!ends) return
    for (const end of ends) this.runs.drop(end)
    this.atWork += ends.length
  }

  /** Counts an end without a slice. */
  countLoose(thread: number, arrow: ArrowEnd): void {
    this.runs.drop(arrow)
    const counts = this.loose.of(thread)
    if (arrow.launch >= 0) counts.launches++
    else counts.others++
  }

  /** Adds the counts of ends that are not drawn. */
  leaveOut(leftOut: LeftOut): void {
    let [outside, atWork] = [0, this.atWork]
    for (const [thread, { launches, others }] of this.loose) {
      if (this.gpu.isStream(thread)) atWork += others
      else outside += launches + others
    }
    leftOut.add('ends of arrows outside of slices', outside)
    leftOut.add('ends of arrows at GPU work', atWork)
    leftOut.add('further ends of arrows', this.runs.lost)
  }

  private made(end: Omit<ArrowEnd, 'ids' | 'isPlaced'>): ArrowEnd {
    const arrow: ArrowEnd = { ...end, ids: undefined, isPlaced: false }
    if (!arrow.run) this.runs.expect(arrow)
    return arrow
  }
}

function isTrue(event: EventScanner, field: number): boolean {
  const first = event.firstByte(field)
  return first === LETTER_T || first === ONE
}

/** Kinds with exact keys; others are hashed. */
const KINDS = 2 ** 11
const NUMBERS = 2 ** 32

/**
 * A unique key for the id of an asynchronous operation or an arrow. Ids are unique with their kind and `scope` in a file;
 * `id2.local` only in a process. A number below 2^43: exact for small integers, a hash for others, such as addresses.
 * Undefined if there is no id.
 */
function idKey(event: EventScanner, kind: number, pid: number): number | undefined {
  if (event.has(Field.id) && !event.has(Field.scope)) return plainKey(event, Field.id, kind)
  const id = scopedId(event, pid)
  if (id === undefined) return undefined
  const bytes = new TextEncoder().encode(id)
  return hashed(kind, bytes, 0, bytes.length)
}

/** Key of an id without scope or process. */
function plainKey({ bytes, starts, ends }: EventScanner, field: number, kind: number): number | undefined {
  const isQuoted = bytes[starts[field]!] === Ascii.Quote
  const start = starts[field]! + (isQuoted ? 1 : 0)
  const end = ends[field]! - (isQuoted ? 1 : 0)
  if (start < 0) return undefined
  let number = 0
  for (let at = start; at < end; at++) {
    const digit = bytes[at]! - 0x30
    if (digit < 0 || digit > 9 || number >= NUMBERS / 10 - 1 || kind >= KINDS) return hashed(kind, bytes, start, end)
    number = number * 10 + digit
  }
  return kind * NUMBERS + number
}

function scopedId(event: EventScanner, pid: number): string | undefined {
  const scope = event.has(Field.scope) ? textOf(event, Field.scope) : ''
  if (event.has(Field.id)) return `${scope}\n${textOf(event, Field.id)}`
  if (!event.has(Field.id2)) return undefined
  const { global, local } = membersOf(textOf(event, Field.id2))
  if (global !== undefined) return `${scope}\n${global}`
  return local === undefined ? undefined : `${scope}\n${local}\n${pid}`
}

function textOf({ bytes, starts, ends }: EventScanner, field: number): string {
  return textIn(bytes, starts[field]!, ends[field]!)
}

function membersOf(text: string): { readonly global?: unknown; readonly local?: unknown } {
  try {
    return Object(parsedJson(text))
  } catch {
    return {}
  }
}

/** 43 bits of a hash (FNV-1a, twice). */
function hashed(kind: number, bytes: Uint8Array, start: number, end: number): number {
  let [low, high] = [0x811c9dc5 ^ kind, 0x01000193 + kind]
  for (let at = start; at < end; at++) {
    low = Math.imul(low ^ bytes[at]!, 0x01000193)
    high = Math.imul(high ^ bytes[at]!, 0x85ebca6b)
  }
  return (high >>> 21) * NUMBERS + (low >>> 0)
}
