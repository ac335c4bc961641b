import type { Position } from '../../../errors.ts'
import { DefaultMap, getOrMake } from '../../../model/default-map.ts'
import type { CounterEvent, RangeEvent, TraceEvent } from '../../../model/events.ts'
import { issueOf } from '../../../model/issues.ts'
import { CPU_MAX } from '../../../model/limits.ts'
import type { Names } from '../../../model/names.ts'
import type { OwnInstantEvent } from '../../../model/own-events.ts'
import { plural } from '../../../model/units.ts'
import { contentsOf } from '../../common/holdings.ts'
import { Spans } from '../../common/spans.ts'

/** An event of a mark that has its place in the order of time. */
export type MarkEvent = RangeEvent | CounterEvent | OwnInstantEvent

/** Where and when a mark was written. */
export interface MarkPlace {
  readonly tid: number
  readonly atNs: number
  readonly at: Position
}

/** Slices that are open at once; with more, the oldest is given up. */
const OPEN_MAX = 1 << 16
/** Longest text of a mark that becomes a name, in characters. */
const TEXT_MAX = 200
/** How the kernel prints where the text was written. */
const WRITER = /^(?:tracing_mark_write|0x[\da-f]{1,16}|0): /
const NUMBER = /^-?\d{1,19}(?:\.\d{1,19})?$/
/** A line of atrace: `B|4242|decode`, `E`, `C|4242|tokens|7`, `S|4242|request|12`. */
const ATRACE = /^([BECSFIN])(?:\|(\d{1,10})(?:\|(.*))?)?$/s

interface OpenSlice {
  readonly name: number
  readonly atNs: number
  readonly pid: number
}

/**
 * Makes events of the texts that programs write into `trace_marker`, in the form of atrace and systrace (Android's
 * libcutils, `trace-dev.inc`): `B` and `E` begin and end a range of the thread, `C` is a value, `S` and `F` begin and end an
 * asynchronous slice with a cookie, `I` and `N` are instants. Any other text is an instant.
 */
export class Marks {
  /** Values of CPUs, which are on counters, too. */
  readonly cpus: CpuCounters
  private readonly open = new Map<string, OpenSlice>()
  private readonly tracks = new Map<string, number>()
  private lost = 0
  private count = 0
  private lastNs = 0

  private held: HeldMarks | undefined

  /** `emit` gets events in any order of time. `isOrdered`: marks are read in order of time; otherwise {@link rest} is needed. */
  constructor(
    private readonly names: Names,
    private readonly emit: (event: TraceEvent) => void,
    isOrdered: boolean,
  ) {
    this.cpus = new CpuCounters(names)
    if (!isOrdered) this.held = new HeldMarks()
  }

  /** Reads the text of a mark. Returns the event that belongs into the order of time, if it is one. */
  read(printed: string, place: MarkPlace): MarkEvent | undefined {
    const text = printed.replace(WRITER, '').replace(/(?<![\s\0])[\s\0]+$/, '')
    const [, what, id, rest = ''] = ATRACE.exec(text) ?? []
    const pid = Number(id ?? -1)
    const { tid, atNs } = place
    if (this.held && what !== undefined && 'BESF'.includes(what)) {
      this.held.add(text, tid, atNs)
      return undefined
    }
    this.lastNs = Math.max(this.lastNs, atNs)
    this.count++
    switch (what) {
      case 'B':
        return { kind: 'range', edge: 'begin', tid, name: this.nameOf(rest), atNs }
      case 'E':
        return { kind: 'range', edge: 'end', tid, name: 0, atNs }
      case 'C':
        return this.counter(rest, pid, atNs)
      case 'S':
      case 'F':
        this.slice(what, rest, pid, place)
        return undefined
      case undefined:
        return this.instant('trace_marker', 'Texts that programs wrote into trace_marker.', text, atNs)
      default:
        return this.instant(`instants of process ${pid}`, `Instants that process ${pid} announced.`, rest, atNs)
    }
  }

  /** After all marks of a recording without an order: its begins and ends, in order of time, those of one time as recorded. */
  *rest(): Generator<TraceEvent[]> {
    const { held } = this
    if (!held) return
    this.held = undefined
    yield* held.spans.order().inBatches((id, batch) => {
      const place = { tid: held.spans.b(id) | 0, atNs: held.spans.start(id), at: { byte: 0 } }
      const event = this.read(held.texts[held.spans.a(id)]!, place)
      if (event) batch.push(event)
    })
  }

  /** Adds the number of marks to the facts, and reports the slices that never ended. */
  finish(isOfScheduler: boolean): void {
    const holds = contentsOf([
      [this.count, 'mark'],
      [this.cpus.count, 'CPU value'],
    ])
    if (holds !== '') {
      const contents = isOfScheduler ? {} : { contents: holds }
      this.emit({ kind: 'facts', ...contents, attributes: { marks: holds } })
    }
    const lost = this.lost + this.open.size
    if (lost === 0) return
    const detail = `${plural(lost, 'asynchronous slice')} of trace_marker without an end: left out`
    this.emit(issueOf('range-without-end', detail, { byte: 0 }, this.lastNs))
  }

  private counter(rest: string, pid: number, atNs: number): MarkEvent | undefined {
    const [name = '', value = ''] = rest.split('|')
    if (!NUMBER.test(value)) return undefined
    const track = pid > 0 ? `${this.short(name)} (process ${pid})` : this.short(name)
    return { kind: 'counter', name: this.names.id(track), unit: 'count', atNs, value: Number(value) }
  }

  private slice(what: 'S' | 'F', rest: string, pid: number, { atNs, at }: MarkPlace): void {
    const { open } = this
    const [name = '', cookie = ''] = rest.split('|')
    const key = `${pid}|${name}|${cookie}`
    const begun = open.get(key)
    if (what === 'S') {
      const [oldest] = open.keys()
      const given = begun ? key : open.size >= OPEN_MAX ? oldest : undefined
      if (given !== undefined && open.delete(given)) this.lost++
      open.set(key, { name: this.nameOf(name), atNs, pid })
      return
    }
    open.delete(key)
    if (!begun || begun.atNs > atNs) {
      const detail = `an asynchronous slice of process ${pid} ends that never began`
      return this.emit(issueOf('end-without-start', detail, at, atNs))
    }
    const description = `Slices that process ${pid} began and ended asynchronously (S and F in trace_marker).`
    const track = this.track(`asynchronous slices of process ${pid}`, description)
    this.emit({ kind: 'own-slice', track, name: begun.name, startNs: begun.atNs, endNs: atNs })
  }

  private instant(track: string, description: string, text: string, atNs: number): MarkEvent {
    return { kind: 'own-instant', track: this.track(track, description), name: this.nameOf(text), atNs }
  }

  private track(name: string, description: string): number {
    return getOrMake(this.tracks, name, () => {
      const id = this.tracks.size
      this.emit({ kind: 'own-track', id, name, description })
      return id
    })
  }

  private nameOf(text: string): number {
    return this.names.id(this.short(text) || 'unnamed')
  }

  private short(text: string): string {
    return text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)}…` : text
  }
}

/** Begins and ends of a recording without an order of time, which wait until all are read. 20 bytes each, and each text once. */
class HeldMarks {
  readonly spans = new Spans()
  readonly texts: string[] = []
  private readonly ids = new DefaultMap((text: string) => this.texts.push(text) - 1)

  add(text: string, tid: number, atNs: number): void {
    this.spans.push(atNs, atNs, this.ids.of(text), tid)
  }
}

/** The kernel's number of no idle state: the CPU runs. */
const NO_IDLE_STATE = 0xffffffff

/** Values of `cpu_frequency` (kHz) and `cpu_idle`, as counters of the CPUs. */
class CpuCounters {
  count = 0
  private readonly frequencies: number[] = []
  private readonly idleStates: number[] = []

  constructor(private readonly names: Names) {}

  /** The value at a time; undefined for a CPU that cannot exist. */
  event(what: 'cpu_frequency' | 'cpu_idle', cpu: number, state: number, atNs: number): CounterEvent | undefined {
    if (!(cpu >= 0 && cpu <= CPU_MAX) || !Number.isSafeInteger(state)) return undefined
    this.count++
    const isIdle = what === 'cpu_idle'
    const ids = isIdle ? this.idleStates : this.frequencies
    ids[cpu] ??= this.names.id(`CPU ${cpu}: ${isIdle ? 'idle state (-1 = it runs)' : 'frequency (kHz)'}`)
    const value = isIdle && (state === NO_IDLE_STATE || state < 0) ? -1 : state
    return { kind: 'counter', name: ids[cpu], unit: 'count', atNs, value }
  }
}
