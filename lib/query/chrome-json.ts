import type { Cell } from './cells.ts'
import type { OpenTrace } from './open-trace.ts'

/** An argument's value as JSON, or what it contains. */
type Tree = string | Tree[] | Map<string, Tree>

/** Arguments as JSON, by the ids of their sets: those of the rows of a table with ids in `[from, to)`. */
function argsOf(trace: OpenTrace, table: string, from: number, to: number): Map<number, string> {
  const sql = `SELECT arg_set_id, key, value_type, int_value, string_value, real_value FROM args WHERE arg_set_id IN
    (SELECT arg_set_id FROM ${table} WHERE id >= ${from} AND id < ${to}) ORDER BY id`
  const sets = new Map<number, Map<string, Tree>>()
  for (const [set, key, type, int, text, real] of trace.query(sql).rows) {
    let tree = sets.get(set as number)
    if (!tree) {
      tree = new Map()
      sets.set(set as number, tree)
    }
    const path = String(key).replace(/^(debug|args)\./, '')
    const value = leafOf(type!, int!, text!, real!)
    const steps = path.split(/\.|(?=\[\d+\])/)
    if (!isPath(tree, steps) || !put(tree, steps, value)) tree.set(path, value)
  }
  return new Map([...sets].map(([set, tree]) => [set, jsonOfTree(tree)]))
}

function leafOf(type: Cell, int: Cell, text: Cell, real: Cell): string {
  if (type === 'bool') return int === 0 ? 'false' : 'true'
  if (type === 'pointer') return `"0x${BigInt.asUintN(64, BigInt(int as number)).toString(16)}"`
  if (type === 'string' || type === 'json') return text === '[]' || text === '{}' ? text : JSON.stringify(text)
  if (type === 'real') {
    const digits = String(real)
    if (!Number.isFinite(real)) return `"${digits}"`
    return /^-?\d+$/.test(digits) ? `${digits}.0` : digits // not to be read as an integer
  }
  return `${int ?? 'null'}`
}

/** Empty lists ahead of an element that trace_processor has no arguments of, at most: a larger index is a part of a name. */
const GAP_MAX = 256

/** Is each index of a path near the end of its list? */
function isPath(tree: Tree, path: readonly string[]): boolean {
  let at: Tree | undefined = tree
  return path.every((step) => {
    const place = Number(/^\[(\d+)\]$/.exec(step)?.[1] ?? 0)
    if (typeof at === 'object' && !Array.isArray(at)) {
      at = at.get(step)
      return true
    }
    const list: readonly Tree[] = typeof at === 'object' ? at : []
    at = list[place]
    return place - list.length <= GAP_MAX
  })
}

/** Puts a value at a path. False if another value is in the way. */
function put(tree: Map<string, Tree>, path: readonly string[], value: string): boolean {
  let at: Tree = tree
  for (const [i, step] of path.entries()) {
    const index = /^\[(\d+)\]$/.exec(step)?.[1]
    const isLast = i === path.length - 1
    const next = isLast ? value : /^\[\d+\]$/.test(path[i + 1]!) ? [] : new Map<string, Tree>()
    if (Array.isArray(at)) {
      if (index === undefined) return false
      const place = Number(index)
      // trace_processor does not count null in a list, but empty lists.
      while (at.length < place) at.push([])
      const known: Tree | undefined = at[place]
      if (known === undefined || (isLast && Array.isArray(known) && known.length === 0)) at[place] = next
      else if (isLast || typeof known === 'string') return false
      at = at[place]!
    } else if (typeof at === 'string') return false
    else {
      const known: Tree | undefined = at.get(step)
      if (known === undefined) at.set(step, next)
      else if (isLast || typeof known === 'string') return false
      at = at.get(step)!
    }
  }
  return true
}

function jsonOfTree(tree: Tree): string {
  if (typeof tree === 'string') return tree
  if (Array.isArray(tree)) return `[${tree.map(jsonOfTree).join(',')}]`
  return `{${[...tree].map(([key, value]) => `${JSON.stringify(key)}:${jsonOfTree(value)}`).join(',')}}`
}

/** Rows that are asked for at once. */
const WINDOW = 20_000
/** Characters of a piece, about. */
const PIECE_CHARS = 1 << 18
/** First number of rows that are no threads, and of processes that are none: Linux has no larger ones. */
const UNREAL = 2 ** 22
/** trace_processor reads microseconds with three decimals exactly up to here, in nanoseconds; later times are from the start of the trace. */
const EXACT_NS = 2n ** 43n * 1000n

/** Where the events of a track are. */
interface Row {
  readonly pid: number
  readonly tid: number
  /** Of the slices that have not ended: their ends, the innermost last; undefined: never. */
  readonly ends: (bigint | undefined)[]
}

const TRACKS = `SELECT t.id, t.name, t.parent_id AS parent, extract_arg(t.dimension_arg_set_id, 'utid') AS utid,
  extract_arg(t.dimension_arg_set_id, 'upid') AS upid, extract_arg(t.source_arg_set_id, 'sibling_order_rank') AS rank, c.unit
  FROM track t LEFT JOIN counter_track c USING (id) ORDER BY t.type <> 'thread_execution', t.id`

/** What only keeps rows at the top of Perfetto's UI. */
const NOT_DRAWN = `SELECT id FROM track WHERE name = 'at the top' AND parent_id IS NOT NULL`

interface TrackRow {
  readonly id: number
  readonly name: string | null
  readonly parent: number | null
  readonly utid: number | null
  readonly upid: number | null
  readonly rank: number | null
  readonly unit: string | null
}

interface ThreadRow {
  readonly utid: number
  readonly tid: number
  readonly upid: number | null
  readonly pid: number | null
  readonly name: string | null
}

/**
 * The slices, instants, counters and arrows of a trace as Chrome's JSON, with its processes and threads, in pieces. Rows that are no threads get numbers of their
 * own. What the format has no place for (events of the scheduler, states of threads, samples) is left out.
 */
export function* toChromeJson(trace: OpenTrace): Generator<Uint8Array, void> {
  const encoder = new TextEncoder()
  let text = ''
  for (const event of new ChromeEvents(trace).all()) {
    text += event
    if (text.length < PIECE_CHARS) continue
    yield encoder.encode(text)
    text = ''
  }
  yield encoder.encode(text)
}

class ChromeEvents {
  private readonly tracks: ReadonlyMap<number, TrackRow>
  private readonly threads: ReadonlyMap<number, ThreadRow>
  private readonly pids: ReadonlyMap<number, number>
  private readonly rows = new Map<number, Row>()
  /** The own track of each thread. */
  private readonly own = new Map<number, number>()
  /** Groups that were named. */
  private readonly groups = new Set<number>()
  private readonly shiftNs: bigint
  private isFirst = true

  constructor(private readonly trace: OpenTrace) {
    this.tracks = new Map([...trace.rows<TrackRow & object>(TRACKS)].map((track) => [track.id, track]))
    for (const { id, utid } of this.tracks.values()) if (utid !== null && !this.own.has(utid)) this.own.set(utid, id)
    const threads = `SELECT utid, tid, upid, pid, thread.name FROM thread LEFT JOIN process USING (upid)`
    this.threads = new Map([...trace.rows<ThreadRow & object>(threads)].map((thread) => [thread.utid, thread]))
    this.pids = new Map(
      [...trace.rows<{ upid: number; pid: number }>('SELECT upid, pid FROM process')].map(({ upid, pid }) => [
        upid,
        pid,
      ]),
    )
    const [[start]] = trace.query('SELECT trace_start()').rows as [[Cell]]
    const startNs = BigInt((start ?? 0) as number)
    this.shiftNs = startNs > EXACT_NS ? startNs : 0n
  }

  *all(): Generator<string> {
    yield '{"displayTimeUnit":"ns","traceEvents":['
    yield* this.named()
    yield* this.slices()
    yield* this.counters()
    const metadata = this.shiftNs > 0n ? { 'time-origin-ns': `${this.shiftNs}` } : {}
    yield `\n],"metadata":${JSON.stringify(metadata)}}\n`
  }

  /** The names of processes and threads, also of those without events. */
  private *named(): Generator<string> {
    const hints = `SELECT pid, process.name, extract_arg(arg_set_id, 'process_sort_index_hint') AS place FROM process WHERE pid > 0`
    for (const { pid, name, place } of this.trace.rows<{ pid: number; name: string | null; place: number | null }>(
      hints,
    )) {
      if (name !== null) yield this.about('process_name', { name }, pid)
      if (place !== null) yield this.about('process_sort_index', { sort_index: place }, pid)
    }
    for (const { tid, pid, name } of this.threads.values()) {
      if (tid > 0 && name !== null) yield this.about('thread_name', { name }, pid ?? tid, tid)
    }
  }

  /** A slice begins after those before it on its track have ended. */
  private *slices(): Generator<string> {
    const { trace } = this
    const arrows = arrowsOf(trace)
    for (const [from, to] of windows(trace, 'slice')) {
      const args = argsOf(trace, 'slice', from, to)
      const sql = `SELECT id, ts, dur, depth, track_id, name, category, arg_set_id FROM slice WHERE id >= ${from} AND id < ${to}`
      for (const [id, ts, dur, depth, track, name, category, set] of trace.query(sql).rows) {
        const row = this.rows.get(track as number) ?? (yield* this.newRow(track as number))
        yield* this.close(row, depth as number)
        const start = BigInt(ts as number)
        const [cat, shown] = [category === null ? '' : `"cat":${JSON.stringify(category)},`, args.get(set as number)]
        const rest = `${cat}"name":${JSON.stringify(name ?? '')}${shown === undefined ? '' : `,"args":${shown}`}`
        const ends = arrows.get(id as number)
        const isInstant = dur === 0 && !ends
        yield this.event(isInstant ? 'i' : 'B', row, start, isInstant ? `"s":"t",${rest}` : rest)
        for (const arrow of ends ?? []) yield this.event(arrow.ph, row, start, arrow.text)
        if (!isInstant) row.ends.push((dur as number) < 0 ? undefined : start + BigInt(dur as number))
      }
    }
    for (const row of this.rows.values()) yield* this.close(row, 0)
  }

  private *close(row: Row, depth: number): Generator<string> {
    while (row.ends.length > depth) {
      const end = row.ends.pop()
      if (end !== undefined) yield this.event('E', row, end, '')
    }
  }

  private *counters(): Generator<string> {
    for (const [from, to] of windows(this.trace, 'counter')) {
      const sql = `SELECT ts, track_id, value FROM counter WHERE id >= ${from} AND id < ${to}
        AND track_id NOT IN (${NOT_DRAWN})`
      for (const [ts, id, value] of this.trace.query(sql).rows) {
        const track = this.tracks.get(id as number)!
        const pid = this.processOf(track)
        if (pid >= UNREAL) yield* this.group(track, pid)
        const text = `"name":${JSON.stringify(track.name)},"args":{${JSON.stringify(track.unit ?? 'value')}:${numberOf(value!)}}`
        yield this.event('C', { pid, tid: undefined }, BigInt(ts as number), text)
      }
    }
  }

  /** The thread of a track, but not of its further tracks, as slices of several may overlap: these are named by their tracks. */
  private *newRow(id: number): Generator<string, Row> {
    const track = this.tracks.get(id)!
    const thread = track.utid === null ? undefined : this.threads.get(track.utid)
    const isOwn = thread !== undefined && this.own.get(thread.utid) === id
    const pid = this.processOf(track)
    const row = { pid, tid: isOwn ? thread.tid : UNREAL + id, ends: [] }
    this.rows.set(id, row)
    if (pid >= UNREAL) yield* this.group(track, pid)
    if (!isOwn) {
      yield this.about('thread_name', { name: track.name ?? `track ${id}` }, pid, row.tid)
      if (track.rank !== null) yield this.about('thread_sort_index', { sort_index: track.rank }, pid, row.tid)
    }
    return row
  }

  /** The process of a track; of one that has none, a number for the track above it. */
  private processOf({ utid, upid, parent }: TrackRow): number {
    const thread = utid === null ? undefined : this.threads.get(utid)
    if (thread) return thread.pid ?? thread.tid
    const pid = upid === null ? undefined : this.pids.get(upid)
    return pid ?? UNREAL + (parent === null ? 0 : parent + 1)
  }

  /** Names a group of rows by the tracks above them. */
  private *group({ parent }: TrackRow, pid: number): Generator<string> {
    if (this.groups.has(pid)) return
    this.groups.add(pid)
    const names: string[] = []
    for (let above = parent; above !== null; ) {
      const track: TrackRow = this.tracks.get(above)!
      names.push(track.name ?? `track ${track.id}`)
      above = track.parent
    }
    const [name = 'Tracks', ...rest] = names
    yield this.about('process_name', { name: rest.length > 0 ? `${name} (${rest.join(', ')})` : name }, pid)
  }

  private about(name: string, args: object, pid: number, tid?: number): string {
    return `${this.comma()}{"ph":"M","pid":${pid},${tid === undefined ? '' : `"tid":${tid},`}"name":"${name}","args":${JSON.stringify(args)}}`
  }

  private event(ph: string, { pid, tid }: { pid: number; tid: number | undefined }, ns: bigint, rest: string): string {
    const at = ns - this.shiftNs
    const time = `${at / 1000n}.${`${at % 1000n}`.padStart(3, '0')}`
    const thread = tid === undefined ? '' : `"tid":${tid},`
    return `${this.comma()}{"ph":"${ph}","pid":${pid},${thread}"ts":${time}${rest === '' ? '' : `,${rest}`}}`
  }

  private comma(): string {
    const comma = this.isFirst ? '\n' : ',\n'
    this.isFirst = false
    return comma
  }
}

/** Ids of a table's rows, a window after the other. */
function* windows(trace: OpenTrace, table: string): Generator<[number, number]> {
  const [[last]] = trace.query(`SELECT max(id) FROM ${table}`).rows as [[number | null]]
  for (let from = 0; last !== null && from <= last; from += WINDOW) yield [from, from + WINDOW]
}

/** By slice: the arrows that begin and end there. */
function arrowsOf(trace: OpenTrace): Map<number, { readonly ph: string; readonly text: string }[]> {
  const arrows = new Map<number, { ph: string; text: string }[]>()
  const add = (slice: Cell, ph: string, text: string) => {
    const known = arrows.get(slice as number)
    if (known) known.push({ ph, text })
    else arrows.set(slice as number, [{ ph, text }])
  }
  for (const [id, from, to] of trace.query('SELECT id, slice_out, slice_in FROM flow').rows) {
    const text = `"cat":"flow","name":"flow","id":${id}`
    add(from!, 's', text)
    add(to!, 'f', `"bp":"e",${text}`)
  }
  return arrows
}

function numberOf(value: Cell): string {
  return Number.isFinite(value) ? `${value}` : `"${value}"`
}
