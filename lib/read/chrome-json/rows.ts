import { ByteTable } from '../../input/byte-table.ts'
import { textIn } from '../../input/json-bytes.ts'
import { DefaultMap } from '../../model/default-map.ts'
import { INT32_MAX } from '../../model/limits.ts'
import type { Names } from '../../model/names.ts'
import type { OwnNameEvent, OwnProcess, OwnThread, OwnTrackEvent } from '../../model/own-events.ts'

/** Maximum number of distinct processes and threads. */
const IDS = 2 ** 21
/** Linux has no larger process ids. */
const PIDS = 2 ** 22

/** Groups of rows for categories of PyTorch's profiler. */
const GROUPS = {
  annotations: {
    name: 'Annotations on the GPU',
    description: 'Annotations projected onto the GPU: from the first to the last work of each, by stream.',
    leads: true,
  },
  profiler: { name: 'Profiler', description: 'Work of the profiler itself.', leads: false },
} as const

/** Further rows of a thread, below it: the profiler writes them after all that is in its own row, so that they cannot nest. */
const OF_THREAD = {
  python: { name: 'Python', description: 'Python functions of the thread.' },
  memory: { name: 'Allocations', description: 'Memory that was allocated and freed on the thread.' },
} as const

/**
 * Rows of one kind that are at the top where the viewer closes groups. Rows of threads of SQL are none of them: the viewer draws these
 * in the group of their process, whatever their descriptors contain. Source: Perfetto v55.3, protos/perfetto/trace/track_event/track_descriptor.proto, parent_uuid.
 */
const AT_TOP_MAX = 4

/** Where a row is: `thread` in the group of its process. */
export type RowKind = 'thread' | keyof typeof OF_THREAD | keyof typeof GROUPS

const KINDS: readonly RowKind[] = ['thread', 'python', 'memory', 'annotations', 'profiler']

/** A row. Its definition is passed on with its first event, as names may come late. */
interface Row {
  readonly kind: RowKind
  readonly pid: number
  /** See {@link Rows.threadKey}. */
  readonly thread: number | undefined
  readonly definition: () => Omit<OwnTrackEvent, 'kind' | 'id' | 'group'>
  isDefined: boolean
  /** It may be at the top: it is one of the first of its kind. */
  isFirst: boolean
}

/** The rows of threads, streams and counters, and the names of processes and threads. */
export class Rows {
  private readonly ids: ByteTable<number>
  private readonly texts: string[] = ['']
  private readonly rows: Row[] = []
  private readonly byThread = new Map<number, number>()
  private readonly byName = new Map<string, number>()
  private readonly groups = new Map<string, number>()
  private readonly processNames = new Map<number, string>()
  private readonly processLabels = new Map<number, readonly string[]>()
  private readonly threadNames = new Map<number, string>()
  /** Places among the others that the file states, by id of the process or key of the thread. */
  private readonly processOrder = new Map<number, number>()
  private readonly threadOrder = new Map<number, number>()
  /** Rows at the top, by kind. */
  private readonly atTop = new DefaultMap<RowKind, number>(() => 0)
  private lastKey = -1
  private last = 0
  /** The file is one of PyTorch's profiler. */
  isKineto = false

  constructor(private readonly names: Names) {
    this.ids = new ByteTable(() => this.texts.length)
  }

  /** Number of a process or thread, by its number or text in the file; 0 if the event has none. */
  idOf(bytes: Uint8Array, start: number, end: number): number {
    if (start < 0) return 0
    const id = this.ids.get(bytes, start, end)
    if (id === this.texts.length) this.texts.push(textIn(bytes, start, end))
    return id
  }

  /** A key of a thread. */
  threadKey(pid: number, tid: number): number {
    return pid * IDS + tid
  }

  /** The thread of a row. Arrows belong to the GPU work itself, not to annotations projected onto the GPU. */
  placeOf(track: number): { thread: number | undefined; hasArrows: boolean } {
    const { kind, thread } = this.rows[track]!
    return { thread, hasArrows: kind !== 'annotations' }
  }

  /** Id of the row of one kind of a thread. */
  thread(kind: RowKind, pid: number, tid: number): number {
    const key = (KINDS.indexOf(kind) * IDS + (pid % IDS)) * IDS + (tid % IDS)
    if (key === this.lastKey) return this.last
    this.lastKey = key
    const known = this.byThread.get(key)
    this.last = known ?? this.add(kind, pid, this.threadKey(pid, tid), () => this.threadRow(kind, pid, tid))
    if (known === undefined) this.byThread.set(key, this.last)
    return this.last
  }

  /** Id of a row of a process without a thread. Rows of one name differ by `lane`. */
  other(pid: number, name: string, holds: 'counter' | 'slices', lane = 0): number {
    const key = `${pid} ${holds} ${lane} ${name}`
    const known = this.byName.get(key)
    if (known !== undefined) return known
    const title = lane === 0 ? name : `${name} (${lane + 1})`
    const description = holds === 'counter' ? `${name}, as recorded.` : `${name}: slices that belong to no thread.`
    const id = this.add('thread', pid, undefined, () => ({
      name: title,
      description,
      holds,
      nests: holds === 'slices',
    }))
    this.byName.set(key, id)
    return id
  }

  /** Names a process; renames its group if it is defined already. */
  *nameProcess(pid: number, name: string): Generator<OwnNameEvent> {
    this.processNames.set(pid, name)
    yield* this.renameProcess(pid)
  }

  *sortProcess(pid: number, index: number): Generator<OwnNameEvent> {
    this.processOrder.set(pid, index)
    yield* this.renameProcess(pid)
  }

  *labelProcess(pid: number, labels: string): Generator<OwnNameEvent> {
    this.processLabels.set(pid, labels.split(',').filter(Boolean))
    yield* this.renameProcess(pid)
  }

  private *renameProcess(pid: number): Generator<OwnNameEvent> {
    const group = this.groups.get(`process ${pid}`)
    if (group === undefined) return
    const { name, ofProcess } = this.groupOf(this.rows[group]!)
    yield { kind: 'own-name', track: group, name, ofProcess }
  }

  /** Names a thread; renames its rows if they are defined already. */
  *nameThread(pid: number, tid: number, name: string): Generator<OwnNameEvent> {
    this.threadNames.set(this.threadKey(pid, tid), name)
    yield* this.renameThread(pid, tid)
  }

  *sortThread(pid: number, tid: number, index: number): Generator<OwnNameEvent> {
    this.threadOrder.set(this.threadKey(pid, tid), index)
    yield* this.renameThread(pid, tid)
  }

  private *renameThread(pid: number, tid: number): Generator<OwnNameEvent> {
    for (let kind = 0; kind < KINDS.length; kind++) {
      const track = this.byThread.get((kind * IDS + (pid % IDS)) * IDS + (tid % IDS))
      const row = track === undefined ? undefined : this.rows[track]!
      if (!row?.isDefined) continue
      const { name, ofThread, atTop } = definitionOf(row)
      yield { kind: 'own-name', track: track!, name, ofThread, atTop }
    }
  }

  /** Name of a thread in the file, such as `python3`; 0 = none. */
  threadName(pid: number, tid: number): number {
    const name = this.threadNames.get(this.threadKey(pid, tid)) ?? ''
    // The profiler of PyTorch writes `thread 1262 (pt_autograd_0)`.
    return this.names.id(/^thread -?\d+ \((.*)\)$/.exec(name)?.[1] ?? name)
  }

  /** The number of a process or thread in the file; -1 if it is a text. */
  number(id: number, text = this.texts[id]): number {
    const number = Number(text || NaN)
    return Number.isSafeInteger(number) ? number : -1
  }

  /** The number of a process, which may have its rank before it, such as `[TP00] 1234`; -1 if it has none. */
  processNumber(pid: number): number {
    const number = this.number(pid)
    return number >= 0 ? number : this.number(pid, rankOf(this.texts[pid] ?? '')?.number)
  }

  /** What may be the rank of a process, in a file that several ranks were merged into: its own first, then its neighbours. */
  ranksOf(pid: number): (string | number)[] {
    const rank = rankOf(this.texts[pid] ?? '')?.rank
    if (rank !== undefined) return [rank]
    const number = Math.floor(this.number(pid) / PIDS)
    return number >= 1 ? [number, number - 1, number + 1] : []
  }

  /** Are they processes of one rank, in a file that several ranks were merged into? */
  isOfOneRank(a: number, b: number): boolean {
    const [first, second] = [this.texts[a] ?? '', this.texts[b] ?? '']
    const [rank, other] = [rankOf(first)?.rank, rankOf(second)?.rank]
    if (rank !== undefined || other !== undefined) return rank === other
    const [number, value] = [this.number(a), this.number(b)]
    return number >= PIDS && value >= PIDS && Math.abs(number - value) < PIDS
  }

  /**
   * The number of a thread; -1 if it is a text. PyTorch's profiler writes a thread of which it knows only the `pthread_t` as the
   * lower 32 bits of that, with their sign: as a number, they are without it, so that each thread stays one.
   */
  threadNumber(tid: number): number {
    const number = this.number(tid)
    return number < -1 && number === (number | 0) ? number >>> 0 : number
  }

  /** Definitions of a row and what it is in, in order, unless they are defined already. */
  *definitions(id: number): Generator<OwnTrackEvent> {
    const row = this.rows[id]!
    if (row.isDefined) return
    row.isDefined = true
    row.isFirst = this.isFirst(row)
    if (row.kind === 'python' || row.kind === 'memory') {
      const thread = this.thread('thread', row.pid, row.thread! - this.threadKey(row.pid, 0))
      yield* this.definitions(thread)
      yield { kind: 'own-track', id, group: thread, ...definitionOf(row) }
      return
    }
    const kind = this.groupKind(row)
    const key = kind === 'thread' ? `process ${row.pid}` : kind
    let group = this.groups.get(key)
    if (group === undefined) {
      group = this.rows.length
      this.rows.push({ ...row, isDefined: true })
      this.groups.set(key, group)
      yield { kind: 'own-track', id: group, holds: 'group', ...this.groupOf(row) }
    }
    yield { kind: 'own-track', id, group, ...definitionOf(row) }
  }

  private isFirst({ kind, definition }: Row): boolean {
    if (definition().atTop === undefined) return false
    const before = this.atTop.of(kind)
    this.atTop.set(kind, before + 1)
    return before < AT_TOP_MAX
  }

  private add(kind: RowKind, pid: number, thread: number | undefined, definition: Row['definition']): number {
    this.rows.push({ kind, pid, thread, definition, isDefined: false, isFirst: false })
    return this.rows.length - 1
  }

  /** The profiler of PyTorch announces its start and end in processes without numbers, which contain one event each. */
  private groupKind({ kind, pid }: Row): RowKind {
    return this.isKineto && kind === 'thread' && this.processNumber(pid) < 0 ? 'profiler' : kind
  }

  /** A process whose number is one. PyTorch's profiler writes 0 where it does not know it; to SQL, 0 is the kernel's idle task. */
  private processOf(pid: number): OwnProcess | undefined {
    const number = this.number(pid)
    if (number < (this.isKineto ? 1 : 0) || number > INT32_MAX) return undefined
    return {
      pid: number,
      name: this.processNames.get(pid) ?? '',
      sortIndex: this.processOrder.get(pid),
      labels: this.processLabels.get(pid),
    }
  }

  private threadOf(pid: number, tid: number): OwnThread | undefined {
    const [owner, number] = [this.processOf(pid), this.threadNumber(tid)]
    if (!owner || number < 0 || number > INT32_MAX) return undefined
    const sortIndex = this.threadOrder.get(this.threadKey(pid, tid))
    return { pid: owner.pid, tid: number, name: this.names.text(this.threadName(pid, tid)), sortIndex }
  }

  private groupOf(row: Row): {
    name: string
    description: string
    leads?: boolean
    ofProcess?: OwnProcess | undefined
  } {
    const { pid } = row
    const kind = this.groupKind(row)
    if (kind === 'annotations' || kind === 'profiler') return GROUPS[kind]
    const [name, text] = [this.processNames.get(pid) ?? '', this.texts[pid] ?? '']
    return {
      name: this.processTitle(pid),
      description: `Threads and counters of ${name || 'the process'} ${text}.`.replace(' .', '.'),
      ofProcess: this.processOf(pid),
    }
  }

  private processTitle(pid: number): string {
    const [name, text] = [this.processNames.get(pid) ?? '', this.texts[pid] ?? '']
    return this.number(pid) >= 0 || text === '' ? `${name || 'process'} ${text}`.trim() : bothOf(name, text)
  }

  private threadRow(kind: RowKind, pid: number, tid: number): ReturnType<Row['definition']> {
    const text = this.texts[tid] ?? ''
    if (kind === 'annotations') {
      const stream = `GPU ${this.texts[pid]}: stream ${text}`
      const description = `Annotations whose work ran on ${stream}.`
      return { name: stream, description, nests: true, atTop: `${stream}: annotations` }
    }
    const numbers = { pid: this.processNumber(pid), tid: this.threadNumber(tid) }
    const name = this.names.text(this.threadName(pid, tid))
    const title =
      this.number(tid) === -1 && text !== '-1' ? bothOf(name, text) || 'events' : `${name || 'thread'} ${text}`
    if (kind === 'python' || kind === 'memory') {
      const row = OF_THREAD[kind]
      return { ...row, nests: true, ...numbers, atTop: `${title}: ${row.name}` }
    }
    const leads = tid === pid && numbers.tid >= 0 // the main thread
    const description = `What ${name || 'thread'} ${text} did.`
    const ofThread = kind === 'thread' ? this.threadOf(pid, tid) : undefined
    const isOfProgram = kind === 'thread' && this.isKineto && this.processNumber(pid) >= 0
    const atTop = isOfProgram ? `${title}: operators` : undefined
    return { name: title, description, nests: true, leads, ...numbers, ofThread, atTop }
  }
}

const definitionOf = ({ definition, isFirst }: Row): ReturnType<Row['definition']> =>
  isFirst ? definition() : { ...definition(), atTop: undefined }

/** `[TP00] 1234`, `rank 3: 1234` */
function rankOf(text: string): { rank: string; number: string } | undefined {
  const [, rank, number] = /^(.*\D)(\d+)$/s.exec(text) ?? []
  return rank === undefined || /^[-+.\d\s]*$/.test(rank) ? undefined : { rank, number: number! }
}

/** The name of a process or thread, and its text in events, which is no number. */
function bothOf(name: string, text: string): string {
  return name === text ? text : `${name} ${text}`.trim()
}
