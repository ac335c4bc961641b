import { textIn } from '../../input/json-bytes.ts'
import type { LeftOut } from '../../model/left-out.ts'
import type { ArrowEnd, Runs } from './arrows.ts'
import type { EventCategory } from './categories.ts'
import { idKey, plainKey } from './flow-ids.ts'
import type { GpuActivity } from './gpu.ts'
import type { Rows } from './rows.ts'
import { type EventScanner, Field } from './scanner.ts'

/** Arrows from launches to work: those of GPUs are drawn by correlation ids, whether both ends are there or not. */
const LAUNCHES = 'ac2g'
const BACKWARD = 'fwdbwd'
/** Categories whose ends belong to the slice around them, though they do not say so (catapult's importer does the same). */
const AROUND = /input|ipc\.flow/
/** The kind of arrows that slices have among their fields: their ids have neither category nor name. */
const FIELDS_KIND = 0
const NO_NAME = 0
const [LETTER_E, LETTER_T, ONE] = [0x65, 0x74, 0x31]

/** Where and when an arrow's end is. */
export interface FlowPlace {
  readonly category: EventCategory
  readonly name: number
  readonly pid: number
  readonly tid: number
  readonly startNs: number
}

/** Reads the ends of arrows. */
export class FlowReader {
  /** By category and name. */
  private readonly kinds = new Map<number, number>()
  /** Ends without a slice, by thread. */
  private readonly loose = new Map<number, { launches: number; others: number }>()
  private atWork = 0

  constructor(
    private readonly rows: Rows,
    private readonly gpu: GpuActivity,
    private readonly runs: Runs,
  ) {}

  /** Is an event the end of an arrow from a launch to work of a GPU, right behind either? */
  isOfGpu(event: EventScanner, { text }: EventCategory, atNs: number): boolean {
    if (text !== LAUNCHES) return false
    const { bytes, starts, ends } = event
    const pid = this.rows.idOf(bytes, starts[Field.pid]!, ends[Field.pid]!)
    const tid = this.rows.idOf(bytes, starts[Field.tid]!, ends[Field.tid]!)
    return this.gpu.isLatest(this.rows.threadKey(pid, tid), atNs)
  }

  /** An event that is the end of an arrow; undefined where it has no id. */
  endOf(event: EventScanner, phase: 's' | 't' | 'f', place: FlowPlace, byte: number): ArrowEnd | undefined {
    const { category, name, pid, tid, startNs: atNs } = place
    const isLaunch = category.text === LAUNCHES
    const kind = this.kindOf(category.name ?? 0, name)
    const key = idKey(event, kind, pid)
    if (key === undefined) return undefined
    const isAround = phase !== 'f' || event.firstByte(Field.bp) === LETTER_E || AROUND.test(category.text)
    const track = category.text === BACKWARD ? this.rows.thread('operators', pid, tid) : undefined
    const launch =
      isLaunch && event.has(Field.id) ? Number(textIn(event.bytes, event.starts[Field.id]!, event.ends[Field.id]!)) : -1
    const run = phase === 's' ? this.runs.start(key, atNs, byte) : undefined
    const what = phase === 's' ? 'start' : phase === 't' ? 'step' : 'end'
    const correlation = Number.isSafeInteger(launch) ? launch : -1
    return this.made({ atNs, byte, key, what, run, isAround, track, launch: correlation })
  }

  /** The asynchronous operation of an event; one for all of a category that have no id. */
  operationOf(event: EventScanner, { category, pid }: Pick<FlowPlace, 'category' | 'pid'>): number {
    const kind = this.kindOf(category.name ?? 0)
    return idKey(event, kind, pid) ?? -1 - kind
  }

  /** The end of an arrow that a slice has among its fields: `bind_id`, with `flow_out`, `flow_in`, or both. */
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

  /** A small number for arrows of a category and a name; without a name, for asynchronous operations of the category. */
  private kindOf(category: number, name = NO_NAME): number {
    const both = category * 2 ** 26 + name
    const known = this.kinds.get(both)
    if (known !== undefined) return known
    const kind = this.kinds.size + FIELDS_KIND + 1
    this.kinds.set(both, kind)
    return kind
  }

  /** Counts ends of arrows that work of a GPU has among its fields. */
  atGpuWork(ends: readonly ArrowEnd[] | undefined): void {
    if (!ends) return
    for (const end of ends) this.runs.drop(end)
    this.atWork += ends.length
  }

  /** Counts an end that no slice is found for. */
  without(thread: number, arrow: ArrowEnd): void {
    this.runs.drop(arrow)
    const counts = this.loose.get(thread) ?? { launches: 0, others: 0 }
    this.loose.set(thread, counts)
    if (arrow.launch >= 0) counts.launches++
    else counts.others++
  }

  /** Counts what is not drawn. */
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
