import { NumberList } from '../../bytes/number-list.ts'
import { firstIndex } from '../../bytes/search.ts'
import { DefaultMap } from '../../model/default-map.ts'
import type { TraceEvent } from '../../model/events.ts'
import type { GpuEvent, GpuPlace } from '../../model/gpu-events.ts'
import type { IssueCode } from '../../model/issues.ts'
import { CORRELATION_MAX } from '../../model/limits.ts'
import type { Names } from '../../model/names.ts'
import { Spans } from '../common/spans.ts'
import { Tally } from '../common/tally.ts'
import type { ArgReader } from './args.ts'
import type { ArrowEnd, ArrowSlice, Runs } from './arrows.ts'
import type { Place } from './fields.ts'
import type { OtherSlice } from './nesting.ts'
import type { Rows } from './rows.ts'

const NONE = 0xffffffff
const NO_PROCESS = -1
/** Processes of a rank that are looked at for the one that launched the work of a GPU. */
const RANK_HOSTS_MAX = 64
/** Calls that are searched for the one around a time: few calls nest. */
const NESTED_CALLS_MAX = 64

/** Calls of CUDA and HIP that launch kernels or graphs; host functions are no GPU work. */
const LAUNCH = /Launch(?!Host)/

/** Calls of a thread; `a` of a span is the name, `b` the correlation id. */
interface ThreadCalls {
  readonly library: 'cuda' | 'hip'
  readonly pid: number
  readonly tid: number
  readonly spans: Spans
  /** Ids of the operators that made the calls. */
  readonly operators: NumberList<Uint32Array>
  /** Ends of arrows, by call. */
  readonly arrows: Map<number, readonly ArrowEnd[]>
  lastNs: number
  /** The starts are in order. */
  isInOrder: boolean
}

/** GPU work is passed on at once, in any order; calls wait until all GPU work is read. */
export class GpuActivity {
  readonly counts: Record<GpuEvent['what'] | 'call', number> = {
    ...{ kernel: 0, memcpy: 0, memset: 0, graph: 0, migration: 0, call: 0 },
  }
  /** By process: number and latest end of GPU work, by correlation id, which is unique in a process only. */
  private readonly launched = new DefaultMap<number, Tally>(() => new Tally())
  private readonly threads = new Map<number, ThreadCalls>()
  private readonly operatorKey: number
  /** {@link Rows.threadKey} of all streams with work. */
  private readonly streams = new Set<number>()
  private latest = { thread: -1, startNs: 0 }
  /** Processes with operators or calls: more than one in a file that several ranks were merged into. */
  private readonly hosts = new Set<number>()
  /** The first ones of each rank, where several ranks were merged into the file. */
  private readonly hostsOfRank = new DefaultMap<string | number, number[]>(() => [])
  private latestHost = NO_PROCESS
  /** The process of the work of each GPU, by the process that the file has for the GPU. */
  private readonly owners = new Map<number, number>()

  constructor(
    private readonly names: Names,
    private readonly rows: Rows,
    private readonly args: ArgReader,
    private readonly runs: Runs,
    /** Gets the problems of the current event. */
    private readonly issue: (code: IssueCode, detail: string) => void,
  ) {
    this.operatorKey = names.id('External id')
  }

  /** Notes a process of the host. */
  host(pid: number): void {
    if (pid === this.latestHost) return
    this.latestHost = pid
    if (this.hosts.has(pid)) return
    this.hosts.add(pid)
    const [rank] = this.rows.ranksOf(pid)
    const known = rank === undefined ? undefined : this.hostsOfRank.of(rank)
    if (known && known.length < RANK_HOSTS_MAX) known.push(pid)
  }

  /** Is the latest call or work on this thread or stream, with this start? */
  isLatest(thread: number, startNs: number): boolean {
    return this.latest.thread === thread && this.latest.startNs === startNs
  }

  /** Is it a stream with work? */
  isStream(thread: number): boolean {
    return this.streams.has(thread)
  }

  /** The call of a thread around a time. */
  callAt(key: number, atNs: number): OtherSlice | undefined {
    const thread = this.threads.get(key)
    if (!thread) return undefined
    const { spans, arrows } = thread
    const order = thread.isInOrder ? undefined : spans.order()
    const idAt = (place: number) => (order ? order.at(place) : place)
    const later = firstIndex(0, spans.length, (place) => spans.start(idAt(place)) > atNs)
    for (let place = later - 1; place >= Math.max(0, later - NESTED_CALLS_MAX); place--) {
      const id = idAt(place)
      const startNs = spans.start(id)
      if (spans.end(id) < atNs) continue
      return { startNs, addArrow: (arrow) => arrows.set(id, [...(arrows.get(id) ?? []), arrow]) }
    }
    return undefined
  }

  work(what: GpuEvent['what'], slice: Place): TraceEvent {
    const { name, startNs, endNs } = slice
    this.note(slice)
    this.streams.add(this.latest.thread)
    const correlation = this.correlation()
    if (correlation >= 0) this.launched.of(this.ownerOf(slice.pid)).add(correlation, endNs, startNs)
    this.counts[what]++
    const facts = this.args.ofGpu()
    return { kind: 'gpu', what, name, startNs, endNs, ...this.place(slice), correlation, signature: 0, facts }
  }

  sync(slice: Place): TraceEvent {
    const { name, startNs, endNs } = slice
    this.note(slice)
    this.streams.add(this.latest.thread)
    const facts = this.args.ofGpu()
    return { kind: 'gpu-sync', name, startNs, endNs, ...this.place(slice), correlation: this.correlation(), facts }
  }

  /** `ends`: of arrows in the fields of the call. */
  call(slice: Place, ends: readonly ArrowEnd[] | undefined): void {
    const { name, pid, tid, startNs, endNs } = slice
    this.note(slice)
    this.host(pid)
    this.counts.call++
    const correlation = this.correlation()
    const operator = this.args.whole('External id', NONE)
    const key = this.latest.thread
    let thread = this.threads.get(key)
    if (!thread) {
      const library = this.names.text(name).startsWith('hip') ? 'hip' : 'cuda'
      const [spans, operators] = [new Spans(), new NumberList(Uint32Array)]
      thread = { library, pid, tid, spans, operators, arrows: new Map(), lastNs: startNs, isInOrder: true }
      this.threads.set(key, thread)
    }
    if (startNs < thread.lastNs) thread.isInOrder = false
    thread.lastNs = startNs
    if (ends) thread.arrows.set(thread.spans.length, ends)
    thread.spans.push(startNs, endNs, name, correlation < 0 ? NONE : correlation)
    thread.operators.push(operator >= 0 && operator < NONE ? operator : NONE)
  }

  /** Calls of each thread in order, with the number of their launches. */
  *calls(): Generator<TraceEvent[]> {
    for (const { library, pid, tid, spans, operators, arrows } of this.threads.values()) {
      const [thread, tidNumber] = [this.rows.threadName(pid, tid), this.rows.threadNumber(tid)]
      const owner = this.callerOf(pid)
      const [ownerNumber, launched] = [this.rows.processNumber(owner), this.launched.of(owner)]
      yield* spans.order().inBatches((id, batch) => {
        const [correlation, operator] = [spans.b(id), operators.at(id)]
        const withArrows = this.arrowsOf(arrows.get(id), correlation)
        batch.push({
          kind: 'api',
          library,
          name: spans.a(id),
          startNs: spans.start(id),
          endNs: spans.end(id),
          pid: ownerNumber,
          tid: tidNumber,
          correlation: correlation === NONE ? -1 : correlation,
          thread,
          launched: correlation === NONE ? 0 : launched.of(correlation),
          result: 0,
          facts: operator === NONE ? undefined : [{ key: this.operatorKey, int: operator }],
          flows: withArrows?.flows,
          flowEnds: withArrows?.flowEnds,
        })
      })
    }
  }

  /**
   * The GPU work of calls of a thread that began in an interval. `unknown`: number of launches whose work is not in the file.
   * Only after all work and all calls were added.
   */
  launchedIn({ pid, tid, startNs, endNs: untilNs }: Omit<Place, 'name'>): {
    readonly pieces: number
    /** Of the first piece. */
    readonly startNs: number
    /** Of the last piece. */
    readonly endNs: number
    readonly unknown: number
  } {
    const found = { pieces: 0, startNs: Infinity, endNs: -Infinity, unknown: 0 }
    const spans = this.threads.get(this.rows.threadKey(pid, tid))?.spans
    if (!spans) return found
    const launched = this.launched.of(this.callerOf(pid))
    const order = spans.order()
    const first = firstIndex(0, order.length, (place) => spans.start(order.at(place)) >= startNs)
    for (let place = first; place < order.length; place++) {
      const id = order.at(place)
      if (spans.start(id) > untilNs) break
      const pieces = spans.b(id) === NONE ? 0 : launched.of(spans.b(id))
      if (pieces > 0) {
        found.startNs = Math.min(found.startNs, launched.first(spans.b(id)))
        found.endNs = Math.max(found.endNs, launched.latest(spans.b(id)))
      } else if (LAUNCH.test(this.names.text(spans.a(id)))) found.unknown++
      found.pieces += pieces
    }
    return found
  }

  /** Arrows of a call, except those to GPU work, which has the call's correlation id. */
  private arrowsOf(ends: readonly ArrowEnd[] | undefined, correlation: number): ArrowSlice | undefined {
    const launched = this.runs.launched.get(correlation)
    if (!ends && !launched) return undefined
    const slice: ArrowSlice = { flows: launched, flowEnds: undefined }
    for (const end of ends ?? []) if (end.launch < 0 || end.run?.hasEnded) this.runs.place(slice, end)
    return slice
  }

  private note({ pid, tid, startNs }: Place): void {
    this.latest.thread = this.rows.threadKey(pid, tid)
    this.latest.startNs = startNs
  }

  private correlation(): number {
    const id = this.args.whole('correlation', this.args.has('correlation') ? NaN : -1)
    if (id >= 0 && id < NONE) return id
    if (id !== -1) {
      const found = this.args.text('correlation').slice(0, 40)
      const detail = `expected a correlation id from 0 to ${CORRELATION_MAX - 1}, found ${found}; not used`
      this.issue('value-out-of-range', detail)
    }
    return -1
  }

  private place({ pid, tid }: Place): GpuPlace {
    const { args, rows } = this
    return {
      device: args.whole('device', rows.number(pid)),
      context: args.whole('context', -1),
      stream: args.whole('stream', rows.number(tid)),
      streamName: 0,
      contextName: 0,
      pid: rows.processNumber(this.ownerOf(pid)),
    }
  }

  /**
   * The process that launched the work of a GPU: the only one of the host; else the one of the same rank, as programs that merge files of
   * ranks put the rank before each process, as a text or as a large number; else the one whose operators come last in the file before it.
   */
  private ownerOf(pid: number): number {
    let owner = this.owners.get(pid)
    if (owner === undefined) {
      const near = this.rows.ranksOf(pid).flatMap((rank) => this.hostsOfRank.get(rank) ?? [])
      owner = near.find((host) => this.rows.isOfOneRank(host, pid)) ?? this.latestHost
      this.owners.set(pid, owner)
    }
    return owner
  }

  /** The process of a call: none in a file of one process whose GPU work comes before its operators and calls. */
  private callerOf(pid: number): number {
    const isUnknown = this.hosts.size === 1 && [...this.owners.values()].includes(NO_PROCESS)
    return isUnknown ? NO_PROCESS : pid
  }
}
