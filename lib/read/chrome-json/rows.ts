import { ByteTable } from '../../input/byte-table.ts'
import { textIn } from '../../input/json-bytes.ts'
import type { Names } from '../../model/names.ts'
import type { OwnNameEvent, OwnTrackEvent } from '../../model/own-events.ts'

/** Processes and threads that have numbers of their own. */
const IDS = 2 ** 21

/** Groups of rows that only traces of PyTorch's profiler have: one for some of its categories. */
const GROUPS = {
  operators: { name: 'PyTorch', description: 'Operators and annotations of the program, by thread.', leads: true },
  python: { name: 'Python', description: 'Python functions, by thread.', leads: true },
  annotations: {
    name: 'Annotations on the GPU',
    description: 'Annotations of the program as the GPU saw them: from the first to the last work of each, by stream.',
    leads: true,
  },
  memory: { name: 'Allocations', description: 'Memory that was allocated and freed, by thread.', leads: false },
  profiler: { name: 'Profiler', description: 'What the profiler did, and when.', leads: false },
} as const

/** A group of rows. `process`: one group for each process. */
export type GroupKind = keyof typeof GROUPS | 'process'

const KINDS: readonly GroupKind[] = ['process', ...(Object.keys(GROUPS) as (keyof typeof GROUPS)[])]

/** A row. Its definition is passed on with the first event on it: names may come late. */
interface Row {
  readonly kind: GroupKind
  readonly pid: number
  /** See {@link Rows.threadKey}. */
  readonly thread: number | undefined
  readonly definition: () => Omit<OwnTrackEvent, 'kind' | 'id' | 'group'>
  isDefined: boolean
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
  private readonly threadNames = new Map<number, string>()
  private lastKey = -1
  private last = 0

  constructor(private readonly names: Names) {
    this.ids = new ByteTable(() => this.texts.length)
  }

  /** The small number of a process or thread, whatever it is called: 0 where the event has none. */
  idOf(bytes: Uint8Array, start: number, end: number): number {
    if (start < 0) return 0
    const id = this.ids.get(bytes, start, end)
    if (id === this.texts.length) this.texts.push(textIn(bytes, start, end))
    return id
  }

  /** A thread as one number. */
  threadKey(pid: number, tid: number): number {
    return pid * IDS + tid
  }

  /** Where a row is. Annotations as the GPU saw them are made from work that is drawn elsewhere: arrows mean that work. */
  placeOf(track: number): { thread: number | undefined; bearsArrows: boolean } {
    const { kind, thread } = this.rows[track]!
    return { thread, bearsArrows: kind !== 'annotations' }
  }

  /** Id of the row of a thread, of one kind. */
  thread(kind: GroupKind, pid: number, tid: number): number {
    const key = (KINDS.indexOf(kind) * IDS + (pid % IDS)) * IDS + (tid % IDS)
    if (key === this.lastKey) return this.last
    this.lastKey = key
    const known = this.byThread.get(key)
    this.last = known ?? this.add(kind, pid, this.threadKey(pid, tid), () => this.threadRow(kind, pid, tid))
    if (known === undefined) this.byThread.set(key, this.last)
    return this.last
  }

  /** Id of a row of a process that is no thread. Rows of one name differ by `lane`. */
  other(pid: number, name: string, holds: 'counter' | 'slices', lane = 0): number {
    const key = `${pid} ${holds} ${lane} ${name}`
    const known = this.byName.get(key)
    if (known !== undefined) return known
    const title = lane === 0 ? name : `${name} (${lane + 1})`
    const description = holds === 'counter' ? `${name}, as recorded.` : `${name}: what is not bound to a thread.`
    const id = this.add('process', pid, undefined, () => ({
      name: title,
      description,
      holds,
      nests: holds === 'slices',
    }))
    this.byName.set(key, id)
    return id
  }

  /** Names a process; renames its rows where they are defined already. */
  *nameProcess(pid: number, name: string): Generator<OwnNameEvent> {
    this.processNames.set(pid, name)
    const group = this.groups.get(`process ${pid}`)
    if (group !== undefined) yield { kind: 'own-name', track: group, name: this.groupOf(this.rows[group]!).name }
  }

  /** Names a thread; renames its rows where they are defined already. */
  *nameThread(pid: number, tid: number, name: string): Generator<OwnNameEvent> {
    this.threadNames.set(this.threadKey(pid, tid), name)
    for (let kind = 0; kind < KINDS.length; kind++) {
      const track = this.byThread.get((kind * IDS + (pid % IDS)) * IDS + (tid % IDS))
      const row = track === undefined ? undefined : this.rows[track]!
      if (row?.isDefined) yield { kind: 'own-name', track: track!, name: row.definition().name }
    }
  }

  /** What the tracer calls a thread, as `python3`; 0 = nothing. */
  threadName(pid: number, tid: number): number {
    const name = this.threadNames.get(this.threadKey(pid, tid)) ?? ''
    // The profiler of PyTorch calls threads `thread 1262 (pt_autograd_0)`.
    return this.names.id(/^thread -?\d+ \((.*)\)$/.exec(name)?.[1] ?? name)
  }

  /** A process or thread as a number; -1 for those that are called by a text. */
  number(id: number): number {
    const number = Number(this.texts[id] || NaN)
    return Number.isSafeInteger(number) ? number : -1
  }

  /** What defines a row and its group, in order; nothing where they are defined already. */
  *definitions(id: number): Generator<OwnTrackEvent> {
    const row = this.rows[id]!
    if (row.isDefined) return
    row.isDefined = true
    const key = row.kind === 'process' ? `process ${row.pid}` : row.kind
    let group = this.groups.get(key)
    if (group === undefined) {
      group = this.rows.length
      this.rows.push({ ...row, isDefined: true })
      this.groups.set(key, group)
      yield { kind: 'own-track', id: group, holds: 'group', ...this.groupOf(row) }
    }
    yield { kind: 'own-track', id, group, ...row.definition() }
  }

  private add(kind: GroupKind, pid: number, thread: number | undefined, definition: Row['definition']): number {
    this.rows.push({ kind, pid, thread, definition, isDefined: false })
    return this.rows.length - 1
  }

  private groupOf({ kind, pid }: Row): { name: string; description: string; leads?: boolean } {
    if (kind !== 'process') return GROUPS[kind]
    const [name, text] = [this.processNames.get(pid) ?? '', this.texts[pid] ?? '']
    const title = this.number(pid) >= 0 || text === '' ? `${name || 'process'} ${text}`.trim() : bothOf(name, text)
    return { name: title, description: `Threads and counters of ${name || 'the process'} ${text}.`.replace(' .', '.') }
  }

  private threadRow(kind: GroupKind, pid: number, tid: number): ReturnType<Row['definition']> {
    const text = this.texts[tid] ?? ''
    if (kind === 'annotations') {
      const stream = `GPU ${this.texts[pid]}: stream ${text}`
      return { name: stream, description: `Annotations whose work ran on ${stream}.`, nests: true }
    }
    const name = this.names.text(this.threadName(pid, tid))
    const title =
      this.number(tid) === -1 && text !== '-1' ? bothOf(name, text) || 'events' : `${name || 'thread'} ${text}`
    return { name: title, description: `What ${name || 'thread'} ${text} did.`.replace(' did', ' did'), nests: true }
  }
}

/** The name of a process or thread and what its events call it, which is no number. */
function bothOf(name: string, text: string): string {
  return name === text ? text : `${name} ${text}`.trim()
}
