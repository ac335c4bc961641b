import { Ascii } from '../../bytes/ascii.ts'
import { UsageError } from '../../errors.ts'
import { type ArgFields, jsonOf, nestedOf } from '../../model/args.ts'
import { DefaultMap } from '../../model/default-map.ts'
import type { Clock } from '../../model/events.ts'
import type { Names } from '../../model/names.ts'
import type { OwnProcess } from '../../model/own-events.ts'
import type { ArgSet, Label } from '../../sink/label.ts'
import type { Track } from '../../sink/track.ts'
import type { Writer } from '../../sink/writer.ts'
import { Piece } from '../byte-writer.ts'
import { encode, json, type Row, rowOf } from './json-rows.ts'
import { JsonWriter } from './json-writer.ts'

/**
 * Time of the first input's origin in the file: one day. trace_processor drops events before 0, and events may be before the
 * origin: allocations before a recording began, unsorted rows of a log, a second input that started earlier. Times are exact
 * to the nanosecond below 2^43 µs, which leaves a hundred days.
 */
const LEAD_NS = 86_400e9

/** Ranks that sort indexes distinguish among siblings, per depth of the tree; deeper groups have the index of their parent. */
const RANKS = [128, 1024, 8192]

const HEAD = encode('{"displayTimeUnit":"ns","traceEvents":[')
const ARGS = encode(',"args":{')
const CLOSE_TWO = encode('}}')
const FLOW = encode(',"bp":"e","cat":"flow","name":"flow","id":')
/** Ids are unique by category and name: these are of {@link ChromeJsonWriter.arrow}. */
const LATE_FLOW = encode(',"bp":"e","cat":"wait","name":"wait","id":')

/** First number of rows and groups that are no threads and processes of the system, in a trace with such: Linux has no larger ones. */
const UNREAL = 2 ** 22

/** A group, which is drawn as a process: the format has no other hierarchy than threads in processes. */
interface Group {
  readonly uuid: number
  readonly pid: number
  /** The process that the group is. */
  ofProcess: OwnProcess | undefined
  name: string
  readonly parent: Group | undefined
  /** 0 = at the top. */
  readonly depth: number
  readonly sortIndex: number
  /** Of its rows by name; its own has no name. The format has no place for them. */
  readonly descriptions: Map<string, string>
  /** Is it defined in the file? It is with its first row: a group of groups would be an empty process. */
  isDefined: boolean
}

/**
 * Writes Chrome's JSON (Trace Event Format), which chrome://tracing, ui.perfetto.dev, Speedscope and others read. Groups
 * become processes, rows become threads.
 *
 * Slices are pairs of B and E. If a file contains an X, trace_processor sorts events of the same time by their durations, which
 * breaks nested slices and slices without length; otherwise it keeps the order of the file.
 */
export class ChromeJsonWriter implements Writer {
  draws = 0
  private readonly out = new JsonWriter()
  private readonly scratch = new JsonWriter()
  private readonly setScratch = new JsonWriter()
  private readonly groups = new Map<number, Group>()
  private readonly rows: (Row | undefined)[] = []
  /** Numbers of groups, and of rows by their ids. */
  private readonly pids = new Set<number>()
  private readonly tids = new Map<number, number>()
  private readonly counterNames = new Set<string>()
  private readonly quoted: (Uint8Array | undefined)[] = []
  private readonly parsed: (Uint8Array | undefined)[] = []
  private readonly categories = new DefaultMap((category: string) =>
    encode(category === '' ? ',"name":' : `,"cat":${json(category)},"name":`),
  )
  private readonly encodedArgs: (Uint8Array | undefined)[] = []
  /** By id of labels: without and with arguments of the slice's own. */
  private readonly alone: (Piece | undefined)[] = []
  private readonly withExtra: (Piece | undefined)[] = []
  private readonly flows = new Set<number>()
  private lateFlows = 0
  private readonly clockFacts: Record<string, unknown> = {}
  private facts: Readonly<Record<string, string | number>> = {}
  private zeroNs: bigint | undefined
  private isFirst = true

  constructor(private readonly names: Names) {
    this.out.raw(HEAD)
  }

  get size(): number {
    return this.out.size
  }

  take(): Uint8Array {
    return this.out.take()
  }

  /** Throws UsageError for an input that began more than a day before the first one. */
  origin(clock: Clock | 'unknown', originNs: bigint): void {
    if (this.zeroNs === undefined) {
      this.zeroNs = originNs - BigInt(LEAD_NS)
      this.clockFacts['clock'] = clock === 'unknown' ? clock : `CLOCK_${clock}`
      this.clockFacts['origin_ns'] = `${originNs}`
      this.clockFacts['origin_ts'] = LEAD_NS / 1e3
    }
    if (originNs < this.zeroNs) {
      const lateNs = this.zeroNs + BigInt(LEAD_NS) - originNs
      throw new UsageError(
        `json: this input began ${lateNs / 1_000_000_000n} s before the first one, expected at most a day\n` +
          'hint: convert them one by one, or to perfetto',
      )
    }
  }

  clocks(readings: readonly { readonly clock: Clock; readonly ns: bigint }[]): void {
    const snapshot = Object.fromEntries(readings.map(({ clock, ns }) => [`CLOCK_${clock}`, `${ns}`]))
    this.clockFacts['clock_snapshot' in this.clockFacts ? 'clock_snapshot_last' : 'clock_snapshot'] = snapshot
  }

  track(track: Track): void {
    const { uuid, name, kind } = track
    const parent = this.groups.get(track.parent)
    const group = kind === 'group' || !parent ? this.group(track, parent) : parent
    this.groups.set(uuid, group) // rows below a row become its siblings
    group.descriptions.set(kind === 'group' ? '' : name, track.description)
    if (group.uuid === uuid) this.rename(group, track)
    if (kind === 'group') return
    this.defineGroup(group)
    const tid = this.tidOf(track, group)
    if (kind !== 'counter') this.defineThread(track, group, tid)
    this.rows[uuid] = rowOf(group.pid, tid, kind === 'counter' ? this.counterName(group.pid, track) : name, track.unit)
  }

  begin(track: number, atNs: number, label: Label): void {
    this.draws++
    const row = this.rows[track]!
    this.event(row.begin, atNs)
    this.label(row, atNs, label)
  }

  end(track: number, atNs: number): void {
    this.event(this.rows[track]!.end, atNs)
    this.out.sign(Ascii.CloseCurly)
  }

  slice(track: number, startNs: number, endNs: number, label: Label, extra = label.extra): void {
    this.draws++
    const row = this.rows[track]!
    this.event(row.begin, startNs)
    this.label(row, startNs, label, extra)
    this.end(track, endNs)
  }

  instant(track: number, atNs: number, label: Label): void {
    this.draws++
    const row = this.rows[track]!
    this.event(row.instant, atNs)
    this.label(row, atNs, label)
  }

  counter(track: number, atNs: number, value: number): void {
    this.draws++
    const row = this.rows[track]!
    this.event(row.counter, atNs)
    this.out.piece(row.counterName)
    this.out.number(value)
    this.out.raw(CLOSE_TWO)
  }

  arrow(from: number, to: number, atNs: number): void {
    const id = ++this.lateFlows
    this.arrowEnd(this.rows[from]!.flowStart, atNs, id, LATE_FLOW)
    this.arrowEnd(this.rows[to]!.flowStep, atNs, id, LATE_FLOW)
  }

  attributes(attributes: Readonly<Record<string, string | number>>): void {
    this.facts = attributes
  }

  finish(): void {
    const rows = new DefaultMap<string, Map<string, string>>(() => new Map())
    for (const group of new Set(this.groups.values())) {
      for (const [row, description] of group.descriptions) rows.of(title(group)).set(row, description)
    }
    const tracks = Object.fromEntries([...rows].map(([group, rows]) => [group, Object.fromEntries(rows)]))
    const metadata = { ...this.facts, ...this.clockFacts, tracks }
    this.out.raw(encode(`\n],"metadata":${json(metadata)}}\n`))
  }

  /** Adds a group; one that is known remains. */
  private group({ uuid, name, rank, ofProcess }: Track, parent: Group | undefined): Group {
    const known = this.groups.get(uuid)
    if (known) return known
    const depth = parent ? parent.depth + 1 : 0
    const width = RANKS.slice(depth + 1).reduce((product, ranks) => product * ranks, 1)
    const place = depth < RANKS.length ? Math.min(rank + (parent ? 1 : 0), RANKS[depth]! - 1) : 0
    const sortIndex = (parent?.sortIndex ?? 0) + place * width
    const pid = this.pidOf(uuid, ofProcess)
    return { uuid, pid, ofProcess, name, parent, depth, sortIndex, descriptions: new Map(), isDefined: false }
  }

  /** The number of a process; of other groups, one that no process has. */
  private pidOf(uuid: number, ofProcess: OwnProcess | undefined): number {
    const wanted = ofProcess?.pid ?? uuid
    const pid = this.pids.has(wanted) ? UNREAL + uuid : wanted
    this.pids.add(pid)
    return pid
  }

  /** The number of a thread; of other rows of a process, one that no thread has. */
  private tidOf({ uuid, ofThread }: Track, { ofProcess }: Group): number {
    const known = this.tids.get(uuid)
    if (known !== undefined) return known
    const tid = ofThread?.tid ?? (ofProcess ? UNREAL + uuid : uuid)
    this.tids.set(uuid, tid)
    return tid
  }

  private defineThread({ name, rank, ofThread }: Track, { pid }: Group, tid: number): void {
    if (ofThread?.name !== '') this.define(pid, 'thread_name', { name: ofThread ? ofThread.name : name }, tid)
    const index = ofThread ? ofThread.sortIndex : rank
    if (index !== undefined) this.define(pid, 'thread_sort_index', { sort_index: index }, tid)
  }

  /** Names of groups contain those of the groups above. */
  private rename(group: Group, { name, ofProcess }: Track): void {
    if (group.name === name && group.ofProcess === ofProcess) return
    group.name = name
    group.ofProcess = ofProcess
    for (const each of new Set(this.groups.values())) {
      if (each.isDefined && pathOf(each).includes(group)) this.nameGroup(each)
    }
  }

  private defineGroup(group: Group): void {
    if (group.isDefined) return
    group.isDefined = true
    this.nameGroup(group)
    if (!group.ofProcess) this.define(group.pid, 'process_sort_index', { sort_index: group.sortIndex })
  }

  /** Writes the name of a group; of a process, all that is known about it. */
  private nameGroup(group: Group): void {
    const { pid, ofProcess } = group
    if (!ofProcess) return this.define(pid, 'process_name', { name: title(group) })
    const { name, sortIndex, labels = [] } = ofProcess
    if (name !== '') this.define(pid, 'process_name', { name })
    if (labels.length > 0) this.define(pid, 'process_labels', { labels: labels.join(',') })
    if (sortIndex !== undefined) this.define(pid, 'process_sort_index', { sort_index: sortIndex })
  }

  private define(pid: number, name: string, args: object, tid?: number): void {
    this.separate()
    this.out.raw(encode(json({ ph: 'M', pid, tid, name, args })))
  }

  /** A unique name: viewers merge counters of one process with the same name. */
  private counterName(pid: number, { name, unit }: Track): string {
    const keyOf = (unique: string) => `${pid} ${unit} ${unique}`
    let unique = name
    for (let nth = 2; this.counterNames.has(keyOf(unique)); nth++) unique = `${name} (${nth})`
    this.counterNames.add(keyOf(unique))
    return unique
  }

  /** `start` begins with the separator, which the first event has not. */
  private event(start: Piece, atNs: number): void {
    if (this.isFirst) this.out.raw(start.bytes.subarray(1, start.length))
    else this.out.piece(start)
    this.isFirst = false
    this.out.micros(atNs + LEAD_NS)
  }

  private separate(): void {
    if (!this.isFirst) this.out.sign(Ascii.Comma)
    this.isFirst = false
    this.out.sign(Ascii.LineFeed)
  }

  /** Writes the rest of an event, and its arrows, which are separate events. */
  private label(row: Row, atNs: number, label: Label, extra = label.extra): void {
    const { out } = this
    const { id, args, flows, flowEnds, arrowsOut, arrowsIn } = label
    if (id === undefined) {
      this.head(label)
      if (args || extra) out.raw(ARGS)
      if (args) out.raw(this.encoded(args))
    } else out.piece(this.kept(id, label, extra !== undefined))
    if (extra) this.args(out, extra, args === undefined || args.args.length === 0)
    if (args || extra) out.raw(CLOSE_TWO)
    else out.sign(Ascii.CloseCurly)
    if (arrowsOut) for (const arrow of arrowsOut) this.arrowEnd(row.flowStart, atNs, arrow)
    if (arrowsIn) for (const arrow of arrowsIn) this.arrowEnd(row.flowStep, atNs, arrow)
    if (flows) this.flow(row, atNs, flows)
    if (!flowEnds) return
    this.flow(row, atNs, flowEnds)
    for (const flow of flowEnds) this.flows.delete(flow)
  }

  private head({ category, name }: Label): void {
    const { out } = this
    out.raw(this.categories.of(category))
    if (typeof name === 'number') out.raw(this.quote(name))
    else out.text(name)
  }

  /** What labels with this id have in common, encoded once: up to the last of their arguments. */
  private kept(id: number, label: Label, hasExtra: boolean): Piece {
    const kept = hasExtra ? this.withExtra : this.alone
    let piece = kept[id]
    if (!piece) {
      const { category, name, args } = label
      const parts = [this.categories.of(category), typeof name === 'number' ? this.quote(name) : encode(json(name))]
      if (args || hasExtra) parts.push(ARGS)
      if (args) parts.push(this.encoded(args))
      for (const part of parts) this.setScratch.raw(part)
      piece = new Piece(this.setScratch.take())
      kept[id] = piece
    }
    return piece
  }

  /** Writes arrows at the slice or instant right before: the first event with an id starts an arrow. */
  private flow(row: Row, atNs: number, flows: readonly number[]): void {
    for (const flow of flows) {
      this.arrowEnd(this.flows.has(flow) ? row.flowStep : row.flowStart, atNs, flow)
      this.flows.add(flow)
    }
  }

  private arrowEnd(start: Piece, atNs: number, id: number, flow = FLOW): void {
    this.event(start, atNs)
    this.out.raw(flow)
    this.out.number(id)
    this.out.sign(Ascii.CloseCurly)
  }

  private quote(name: number): Uint8Array {
    let encoded = this.quoted[name]
    if (!encoded) {
      this.scratch.text(this.names.text(name))
      encoded = this.scratch.take()
      this.quoted[name] = encoded
    }
    return encoded
  }

  /** A value that is known as JSON. */
  private ofJson(name: number): Uint8Array {
    let encoded = this.parsed[name]
    if (!encoded) {
      encoded = encode(jsonOf(nestedOf(this.names.text(name))))
      this.parsed[name] = encoded
    }
    return encoded
  }

  private encoded(set: ArgSet): Uint8Array {
    let encoded = this.encodedArgs[set.id]
    if (!encoded) {
      this.args(this.setScratch, set.args, true)
      encoded = this.setScratch.take()
      this.encodedArgs[set.id] = encoded
    }
    return encoded
  }

  private args(out: JsonWriter, args: readonly ArgFields[], isFirst: boolean): void {
    for (let i = 0; i < args.length; i++) {
      const arg = args[i]!
      const { int, name, text, double } = arg
      if (i > 0 || !isFirst) out.sign(Ascii.Comma)
      out.raw(this.quote(arg.key))
      out.sign(Ascii.Colon)
      if (int !== undefined) out.number(int)
      else if (name !== undefined) out.raw(this.quote(name))
      else if (text !== undefined) out.text(text)
      else if (double !== undefined) out.double(double)
      else if (arg.pointer !== undefined) out.text(`0x${arg.pointer.toString(16)}`)
      else if (arg.big !== undefined) out.integer(arg.big)
      else out.raw(typeof arg.json === 'number' ? this.ofJson(arg.json) : encode(jsonOf(arg.json)))
    }
  }
}

/** `Memory (LLM run)`. */
/** From the group up to the top. */
function pathOf(group: Group): Group[] {
  return group.parent ? [group, ...pathOf(group.parent)] : [group]
}

/** Begins with the group's own name, as viewers truncate at the right. */
function title(group: Group): string {
  const [name, ...above] = pathOf(group).map(({ name }) => name)
  return above.length > 0 ? `${name} (${above.join(', ')})` : `${name}`
}
