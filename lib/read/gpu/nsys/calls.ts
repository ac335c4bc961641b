import { firstIndex } from '../../../bytes/search.ts'
import { DefaultMap } from '../../../model/default-map.ts'
import type { TraceEvent } from '../../../model/events.ts'
import { Order, Spans, SparseNumbers } from '../../common/spans.ts'
import type { Report } from './report.ts'

const NO_CORRELATION = 0xffffffff
/** In nsys's reports, RUNTIME contains the runtime and the driver API; cuDNN and cuBLAS are libraries above them. */
const CUDA_TABLES = ['CUPTI_ACTIVITY_KIND_RUNTIME', 'CUPTI_ACTIVITY_KIND_DRIVER', 'CUDNN_EVENTS', 'CUBLAS_EVENTS']
const OS_TABLE = 'OSRT_API'

/** Calls by thread; `a` of a span is the name, `b` the correlation id. */
export class ApiCalls {
  readonly byThread = new DefaultMap<number, Spans>(() => new Spans())
  /** Results other than 0, by thread. */
  private readonly results = new DefaultMap<number, SparseNumbers>(() => new SparseNumbers())
  private readonly namesByTextId = new DefaultMap<number, number>((textId) => this.nameOf(textId))
  /** Whether a call of that name launches a CUDA graph. */
  private readonly graphLaunches = new DefaultMap<number, boolean>((name) => this.isGraphLaunch(name))

  constructor(
    private readonly report: Report,
    private readonly library: 'cuda' | 'os',
  ) {}

  /** Reads all tables of calls. */
  async read(): Promise<void> {
    for (const table of this.library === 'cuda' ? CUDA_TABLES : [OS_TABLE]) await this.readTable(table)
  }

  /** Calls of each thread in order, with the GPU work that they launched. */
  *events(launches: Launches): Generator<TraceEvent[], void> {
    const { report, library } = this
    let hidden = 0
    for (const [thread, spans] of this.byThread) {
      const { pid, tid, owner } = report.threads.list[thread]!
      const results = this.results.get(thread)
      const work = launches.of(owner)
      yield* spans.order().inBatches((id, batch) => {
        const [name, correlation] = [spans.a(id), spans.b(id)]
        const [first, last] = correlation === NO_CORRELATION ? NOTHING : work.find(correlation)
        if (first === last && this.graphLaunches.of(name)) hidden++
        batch.push({
          kind: 'api',
          library,
          name,
          startNs: spans.start(id),
          endNs: spans.end(id),
          pid,
          tid,
          thread: report.threadNames[thread] ?? 0,
          correlation: correlation === NO_CORRELATION ? -1 : correlation,
          launched: last - first,
          result: (results?.at(id) ?? 0) | 0,
        })
      })
    }
    if (hidden > 0) {
      report.issue('graph-kernels-hidden', `${hidden} launches of CUDA graphs have no GPU work in the report`)
    }
  }

  private async readTable(table: string): Promise<void> {
    const { report, library } = this
    const columns = ['start', 'end', 'globalTid', 'nameId', 'correlationId', 'returnValue']
    for await (const row of report.pages(table, columns)) {
      while (row.next()) {
        const startNs = report.time(row, 0)
        const endNs = report.endOf(table, startNs, report.time(row, 1))
        if (endNs === undefined) continue
        const thread = report.threads.of(row.high(2), row.low(2))
        const spans = this.byThread.of(thread)
        const result = row.number(5, 0)
        if (result !== 0 && library === 'cuda') this.results.of(thread).set(spans.length, result)
        const correlation = report.correlation(row, 4, startNs)
        const name = this.namesByTextId.of(row.number(3))
        spans.push(startNs, endNs, name, correlation < 0 ? NO_CORRELATION : correlation)
        report.count(table)
      }
    }
  }

  /** The name without the version of CUDA: `cudaLaunchKernel_v7000` becomes `cudaLaunchKernel`; `cublasCreate_v2` remains. */
  private nameOf(textId: number): number {
    const { names } = this.report
    return names.id(names.text(this.report.string(textId)).replace(/_v\d{4,5}(?=_|$)/, '') || 'call')
  }

  private isGraphLaunch(name: number): boolean {
    return this.library === 'cuda' && /^cu(?:da)?GraphLaunch/.test(this.report.names.text(name))
  }
}

const NOTHING = [0, 0] as const

/** GPU work of one process, by the correlation id of the call that launched it. */
export class LaunchedWork {
  private readonly spans = new Spans() // `a` is the correlation id
  private order: Order | undefined

  add(correlation: number, startNs: number, endNs: number): void {
    this.spans.push(startNs, endNs, correlation, 0)
  }

  /** The places `[first, last)` of the work of one launch, for {@link start} and {@link end}. No {@link add} afterwards. */
  find(correlation: number): readonly [number, number] {
    const { spans } = this
    this.order ??= new Order(spans.length, (x, y) => spans.a(x) - spans.a(y))
    const { order } = this
    const first = firstIndex(0, spans.length, (place) => spans.a(order.at(place)) >= correlation)
    let last = first
    while (last < spans.length && spans.a(order.at(last)) === correlation) last++
    return [first, last]
  }

  start(place: number): number {
    return this.spans.start(this.order!.at(place))
  }

  end(place: number): number {
    return this.spans.end(this.order!.at(place))
  }
}

/** The GPU work of a report by the number of its process, as correlation ids are unique in a process only. */
export type Launches = DefaultMap<number, LaunchedWork>
