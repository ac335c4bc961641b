import type { ThreadEvent, TraceEvent } from '../../../model/events.ts'
import type { LeftOut } from '../../../model/left-out.ts'
import type { Names } from '../../../model/names.ts'
import { type EventFormat, type Field, parseEventFormat } from './event-formats.ts'
import type { Marks } from './marks.ts'
import { currentBits, stateDecoderOf } from './states.ts'

/** `common_flags`: in a hardware or software interrupt. */
const IRQ_FLAGS = 0x18
/** `clone_flags`: a thread of the same process. */
const CLONE_THREAD = 0x10000

/** Makes an event of a record's bytes; undefined: there is none. */
type Decode = (view: DataView, at: number, end: number, cpu: number, atNs: number) => TraceEvent | undefined

interface Decoder {
  /** Bytes up to the end of its last field. */
  readonly bytes: number
  readonly decode: Decode
}

/** The decoder of an event, and the events that make it redundant. */
interface Known {
  readonly make: (events: Tracepoints, format: EventFormat) => Decode
  readonly redundantWith?: readonly string[]
  /** It is not of the scheduler. */
  readonly isAside?: boolean
}

/**
 * Decodes records of the kernel's tracepoints, from a page of the ring buffer or a sample of perf. The format texts in the
 * recording contain the places of fields.
 */
export class Tracepoints {
  readonly comms: Comms
  private readonly formats = new Map<string, EventFormat>()
  private decoders: (Decoder | undefined)[] | undefined
  /** Number of records that were not decoded, by type. */
  private readonly skipped: number[] = []
  private typeField: Field = { offset: 0, size: 2, isSigned: false, isText: false }

  /**
   * Events named in `left` are left out: the recording contains the same in another form. `marks` reads the texts of trace_marker.
   */
  constructor(
    readonly names: Names,
    readonly marks: Marks,
    private readonly left: readonly string[] = [],
  ) {
    this.comms = new Comms(names)
  }

  /** Adds an event's format text. */
  define(text: string): void {
    const format = parseEventFormat(text)
    if (!format) return
    this.typeField = format.fields.get('common_type') ?? this.typeField
    this.formats.set(format.name, format)
    this.decoders = undefined
  }

  /** Does the recording describe the event? */
  has(name: string): boolean {
    return this.formats.has(name)
  }

  /** `common_type` of an event's records; -1 for one that is not described. */
  idOf(name: string): number {
    return this.formats.get(name)?.id ?? -1
  }

  /** Names of the scheduler's events that are decoded. */
  get decoded(): string[] {
    return this.known.filter((name) => !KNOWN[name]!.isAside)
  }

  /**
   * The event of the record in bytes `[at, end)`; undefined for one that is not decoded, redundant, or has none; the
   * required number of bytes for one that is too short.
   */
  decode(view: DataView, at: number, end: number, cpu: number, atNs: number): TraceEvent | number | undefined {
    const { offset } = this.typeField
    if (at + offset + 2 > end) return offset + 2
    const type = view.getUint16(at + offset, true)
    const decoder = this.compiled()[type]
    if (!decoder) {
      this.skipped[type] = (this.skipped[type] ?? 0) + 1
      return undefined
    }
    return at + decoder.bytes > end ? decoder.bytes : decoder.decode(view, at, end, cpu, atNs)
  }

  /** Adds the counts of records that were not decoded, except redundant ones. */
  leaveOut(leftOut: LeftOut, hint: string): void {
    const names = new Map([...this.formats.values()].map(({ id, name }) => [id, name]))
    this.skipped.forEach((count, type) => {
      const name = names.get(type) ?? `events of type ${type}`
      if (!Object.hasOwn(KNOWN, name)) leftOut.add(name, count, hint)
    })
  }

  private get known(): string[] {
    return Object.keys(KNOWN).filter((name) => this.isDecoded(name))
  }

  private isDecoded(name: string): boolean {
    const redundantWith = KNOWN[name]!.redundantWith ?? []
    return this.has(name) && !this.left.includes(name) && !redundantWith.some((other) => this.has(other))
  }

  private compiled(): readonly (Decoder | undefined)[] {
    if (this.decoders) return this.decoders
    const decoders: (Decoder | undefined)[] = []
    for (const name of this.known) {
      const format = this.formats.get(name)!
      const ends = [...format.fields.values()].map(({ offset, size }) => offset + size)
      decoders[format.id] = { bytes: Math.max(...ends, 0), decode: KNOWN[name]!.make(this, format) }
    }
    this.decoders = decoders
    return decoders
  }
}

type Int = (view: DataView, at: number) => number

/** Reads a number; -1 where the kernel does not record it. */
function int(format: Pick<EventFormat, 'fields'>, name: string): Int {
  const field = format.fields.get(name)
  if (!field) return () => -1
  const { offset, size, isSigned } = field
  switch (size) {
    case 1:
      return isSigned ? (view, at) => view.getInt8(at + offset) : (view, at) => view.getUint8(at + offset)
    case 2:
      return isSigned ? (view, at) => view.getInt16(at + offset, true) : (view, at) => view.getUint16(at + offset, true)
    case 8:
      return (view, at) => view.getInt32(at + offset + 4, true) * 2 ** 32 + view.getUint32(at + offset, true)
    default:
      return isSigned ? (view, at) => view.getInt32(at + offset, true) : (view, at) => view.getUint32(at + offset, true)
  }
}

type Text = (view: DataView, at: number, end: number, tid: number) => number

/** Interns a thread's name. */
function comm({ comms }: Tracepoints, format: EventFormat, name: string): Text {
  const field = format.fields.get(name)
  if (!field) return () => 0
  const { offset, size, isText } = field
  if (!isText) return (view, at, _end, tid) => comms.id(view, at + offset, at + offset + size, tid)
  return (view, at, end, tid) => {
    const start = at + view.getUint16(at + offset, true)
    return comms.id(view, Math.min(start, end), Math.min(start + view.getUint16(at + offset + 2, true), end), tid)
  }
}

function switches(events: Tracepoints, format: EventFormat): Decode {
  const [prevTid, nextTid] = [int(format, 'prev_pid'), int(format, 'next_pid')]
  const [prevPrio, nextPrio] = [int(format, 'prev_prio'), int(format, 'next_prio')]
  const prevState = int(format, 'prev_state')
  const prevComm = comm(events, format, 'prev_comm')
  const nextComm = comm(events, format, 'next_comm')
  const decodeState = stateDecoderOf(format.print) ?? currentBits
  return (view, at, end, cpu, atNs) => {
    const prev = prevTid(view, at)
    const next = nextTid(view, at)
    return {
      kind: 'switch',
      cpu,
      atNs,
      prevTid: prev,
      prevComm: prevComm(view, at, end, prev),
      prevPrio: prevPrio(view, at),
      prevState: decodeState(prevState(view, at)),
      nextTid: next,
      nextComm: nextComm(view, at, end, next),
      nextPrio: nextPrio(view, at),
    }
  }
}

function wakings(events: Tracepoints, format: EventFormat): Decode {
  const flags = int(format, 'common_flags')
  const waker = int(format, 'common_pid')
  const [pid, prio, target] = [int(format, 'pid'), int(format, 'prio'), int(format, 'target_cpu')]
  const name = comm(events, format, 'comm')
  return (view, at, end, cpu, atNs) => {
    const tid = pid(view, at)
    return {
      kind: 'waking',
      cpu,
      atNs,
      wakerTid: waker(view, at),
      tid,
      comm: name(view, at, end, tid),
      prio: prio(view, at),
      targetCpu: target(view, at),
      isIrq: (flags(view, at) & IRQ_FLAGS) !== 0,
    }
  }
}

const thread = (what: ThreadEvent['what'], atNs: number, tid: number, comm: number): ThreadEvent => {
  return { kind: 'thread', what, atNs, tid, tgid: -1, comm, parentTid: -1 }
}

function forks(events: Tracepoints, format: EventFormat): Decode {
  const child = int(format, 'child_pid')
  const parent = int(format, 'parent_pid')
  const name = comm(events, format, 'child_comm')
  return (view, at, end, _cpu, atNs) => {
    const tid = child(view, at)
    return { ...thread('fork', atNs, tid, name(view, at, end, tid)), parentTid: parent(view, at) }
  }
}

function newTasks(events: Tracepoints, format: EventFormat): Decode {
  const pid = int(format, 'pid')
  const parent = int(format, 'common_pid')
  const flags = int(format, 'clone_flags')
  const name = comm(events, format, 'comm')
  return (view, at, end, _cpu, atNs) => {
    const tid = pid(view, at)
    const isThread = (flags(view, at) & CLONE_THREAD) !== 0
    const fork = thread('fork', atNs, tid, name(view, at, end, tid))
    return { ...fork, tgid: isThread ? -1 : tid, parentTid: parent(view, at) }
  }
}

const named =
  (what: 'rename' | 'exit', field: string) =>
  (events: Tracepoints, format: EventFormat): Decode => {
    // Without a pid, the event is about the thread of the record.
    const pid = int(format, format.fields.has('pid') ? 'pid' : 'common_pid')
    const name = comm(events, format, field)
    return (view, at, end, _cpu, atNs) => {
      const tid = pid(view, at)
      return thread(what, atNs, tid, name(view, at, end, tid))
    }
  }

/** The kernel names a thread after the file that it executes (fs/exec.c). */
function execs({ comms }: Tracepoints, format: EventFormat): Decode {
  const pid = int(format, 'pid')
  const field = format.fields.get('filename')
  if (!field?.isText) return () => undefined
  const { offset } = field
  return (view, at, end, _cpu, atNs) => {
    const start = Math.min(at + view.getUint16(at + offset, true), end)
    const stop = Math.min(start + view.getUint16(at + offset + 2, true), end)
    return thread('rename', atNs, pid(view, at), comms.ofFile(view, start, stop))
  }
}

/** Texts of trace_marker and trace_printk: `buf` is the rest of the record; those of BPF programs are where a field says. */
function prints({ marks }: Tracepoints, { fields }: EventFormat): Decode {
  const tid = int({ fields }, 'common_pid')
  const field = fields.get('buf') ?? fields.get('bpf_string')
  if (field === undefined) return () => undefined
  const { offset, isText } = field
  return (view, at, end, _cpu, atNs) => {
    const place = { tid: tid(view, at), atNs, at: { byte: 0 } }
    const start = at + (isText ? view.getUint16(at + offset, true) : offset)
    return marks.read(textOf(view, Math.min(start, end), end), place)
  }
}

const cpuStates =
  (what: 'cpu_frequency' | 'cpu_idle') =>
  ({ marks }: Tracepoints, format: EventFormat): Decode => {
    const [state, cpuId] = [int(format, 'state'), int(format, 'cpu_id')]
    return (view, at, _end, _cpu, atNs) => marks.cpus.event(what, cpuId(view, at), state(view, at), atNs)
  }

const KNOWN: Readonly<Record<string, Known>> = {
  sched_switch: { make: switches },
  sched_waking: { make: wakings },
  // Often recorded on the woken thread's CPU, not the waker's: for recordings without sched_waking.
  sched_wakeup: { make: wakings, redundantWith: ['sched_waking'] },
  sched_wakeup_new: { make: wakings },
  sched_process_fork: { make: forks },
  task_newtask: { make: newTasks, redundantWith: ['sched_process_fork'] },
  task_rename: { make: named('rename', 'newcomm') },
  sched_process_exec: { make: execs, redundantWith: ['task_rename'] },
  sched_process_exit: { make: named('exit', 'comm') },
  print: { make: prints, isAside: true },
  bpf_trace_printk: { make: prints, isAside: true },
  cpu_frequency: { make: cpuStates('cpu_frequency'), isAside: true },
  cpu_idle: { make: cpuStates('cpu_idle'), isAside: true },
}

/** Bytes of a name in the kernel, without the zero at its end. */
const COMM_BYTES = 15

/** Interned names of threads; a name that has not changed since the thread's last record costs four comparisons. */
class Comms {
  private readonly last = new Map<
    number,
    { readonly words: readonly [number, number, number, number]; readonly id: number }
  >()

  constructor(private readonly names: Names) {}

  /** The name in bytes `[start, end)`, up to the first zero. */
  id(view: DataView, start: number, end: number, tid: number): number {
    if (end - start !== COMM_BYTES + 1) return this.names.id(textOf(view, start, end))
    const a = view.getUint32(start, true)
    const b = view.getUint32(start + 4, true)
    const c = view.getUint32(start + 8, true)
    const d = view.getUint32(start + 12, true)
    const known = this.last.get(tid)
    if (known) {
      const { words } = known
      if (words[0] === a && words[1] === b && words[2] === c && words[3] === d) return known.id
    }
    const id = this.names.id(textOf(view, start, end))
    this.last.set(tid, { words: [a, b, c, d], id })
    return id
  }

  /** A text in bytes `[start, end)`, up to the first zero. */
  text(view: DataView, start: number, end: number): number {
    return this.names.id(textOf(view, start, end))
  }

  /** The name of a thread that executes a file, whose path is in the bytes. */
  ofFile(view: DataView, start: number, end: number): number {
    const stop = endOf(view, start, end)
    let base = stop
    while (base > start && view.getUint8(base - 1) !== 0x2f) base--
    return this.names.id(textOf(view, base, Math.min(stop, base + COMM_BYTES)))
  }
}

function endOf(view: DataView, start: number, end: number): number {
  let stop = start
  while (stop < end && view.getUint8(stop) !== 0) stop++
  return stop
}

function textOf(view: DataView, start: number, end: number): string {
  return decoder.decode(new Uint8Array(view.buffer, view.byteOffset + start, endOf(view, start, end) - start))
}

const decoder = new TextDecoder()
