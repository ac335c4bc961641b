// rocprofv3's JSON (rocprofiler-sdk, --output-format json; source/lib/output/generateJSON.cpp): one object per traced process.
//
//     {"rocprofiler-sdk-tool": [{"metadata": {"pid": 908, "init_time": 63855948165371, …}, "agents": [{"id": {"handle": 37946},
//       "type": 2, "product_name": "AMD Instinct MI350X", "logical_node_type_id": 0, …}], "strings": {"buffer_records": [
//       {"kind": "HIP_RUNTIME_API", "operations": ["hipMalloc", …]}, …], "marker_api": [{"key": 7, "value": "decode"}], …},
//      "kernel_symbols": [{"kernel_id": 8, "truncated_kernel_name": "gemm", "formatted_kernel_name": "void gemm<…>(…)", …}],
//      "buffer_records": {"kernel_dispatch": [{"correlation_id": {"internal": 1, "external": 0}, "thread_id": 908,
//        "start_timestamp": 63857982592000, "end_timestamp": 63857982594840, "dispatch_info": {"agent_id": {"handle": 37946},
//        "queue_id": {"handle": 16}, "kernel_id": 8, "workgroup_size": {"x": 512, …}, "grid_size": {"x": 512, …}},
//        "stream_id": {"handle": 0}}, …], "hip_api": [{"kind": 5, "operation": 3, …}, …], "memory_copy": [{"bytes": 4096, …}]}}]}
//
// Times are nanoseconds of CLOCK_BOOTTIME (rocprofiler-sdk, source/lib/common/utility.hpp). Records are in no order. Dispatches
// and copies are GPU work; calls wait until all of them are read.
//
//     records.ts   agents, names and records → events        library-calls.ts   calls and ranges of threads, in order

import { type JsonObject, wholeOf } from '../../../input/json.ts'
import type { Choice } from '../../../input/json-walk.ts'
import { DefaultMap } from '../../../model/default-map.ts'
import type { IssueEvent, TraceEvent } from '../../../model/events.ts'
import { EventBatch } from '../../common/batches.ts'
import { holding } from '../../common/holdings.ts'
import { JsonDocument } from '../../common/json-document.ts'
import { Spans } from '../../common/spans.ts'
import { Tally } from '../../common/tally.ts'
import { TimeGuard } from '../../common/time-guard.ts'
import type { Format, ReadContext } from '../../format.ts'
import { factsOf, objectOf, Records, type Timed } from './records.ts'

/** Correlation id of calls that have none. */
const NONE = 0xffffffff

/** Calls of each thread, in order of their starts; ranges of ROCTx. Both come after all GPU work. */
class LibraryCalls {
  count = 0
  ranges = 0
  /** By process and thread. */
  private readonly threads = new DefaultMap<string, Spans>(() => new Spans())
  private readonly rangesOf = new DefaultMap<number, Spans>(() => new Spans())
  /** Pieces of GPU work by correlation id, for each process. */
  private readonly launched = new DefaultMap<number, Tally>(() => new Tally())

  addWork({ correlation, startNs }: Timed, pid: number): void {
    if (correlation >= 0 && correlation < NONE) this.launched.of(pid).add(correlation, startNs)
  }

  /** `name`: of the function. */
  addCall({ startNs, endNs, correlation, tid }: Timed, name: number, pid: number): void {
    const known = correlation >= 0 && correlation < NONE ? correlation : NONE
    this.threads.of(`${pid} ${tid}`).push(startNs, endNs, name, known)
    this.count++
  }

  /** `text`: message of the range or mark. */
  addRange({ startNs, endNs, tid }: Timed, text: number): void {
    this.rangesOf.of(tid).push(startNs, endNs, text, 0)
    this.ranges++
  }

  *events(): Generator<TraceEvent[]> {
    for (const [key, spans] of this.threads) {
      const [pid, tid] = key.split(' ').map(Number) as [number, number]
      const tally = this.launched.get(pid)
      yield* spans.order().inBatches((id, batch) => {
        const correlation = spans.b(id)
        batch.push({
          kind: 'api',
          library: 'hip',
          name: spans.a(id),
          startNs: spans.start(id),
          endNs: spans.end(id),
          ...{ pid, tid, thread: 0, result: 0 },
          correlation: correlation === NONE ? -1 : correlation,
          launched: correlation === NONE ? 0 : (tally?.of(correlation) ?? 0),
        })
      })
    }
    yield* this.rangeEvents()
  }

  private *rangeEvents(): Generator<TraceEvent[]> {
    let track = 0
    for (const [tid, spans] of this.rangesOf) {
      const id = track++
      const name = `ROCTx ranges of thread ${tid}`
      const description = `Ranges and marks that thread ${tid} announced through ROCTx, as rocprofv3 recorded them.`
      yield [{ kind: 'own-track', id, name, description, nests: true, leads: true, tid }]
      yield* spans.order().inBatches((span, batch) => {
        const [startNs, endNs, text] = [spans.start(span), spans.end(span), spans.a(span)]
        if (startNs === endNs) batch.push({ kind: 'own-instant', track: id, name: text, atNs: startNs })
        else batch.push({ kind: 'own-slice', track: id, name: text, startNs, endNs })
      })
    }
  }
}

export const rocprofv3: Format = {
  name: 'rocprofv3',
  title: "AMD's rocprofv3: rocprofv3 --output-format json",
  sniff: (head) => /^\s*\{\s*"rocprofiler-sdk-tool"\s*:/.test(new TextDecoder().decode(head)),
  read: (source, context) => new RocprofDocument(source, context).read(),
}

const PROCESS = 'rocprofiler-sdk-tool/*/'
const ENTERED: ReadonlySet<string> = new Set([
  ...['agents', 'kernel_symbols', 'strings', 'strings/buffer_records', 'strings/marker_api', 'buffer_records'].map(
    (path) => PROCESS + path,
  ),
  ...['', 'rocprofiler-sdk-tool', 'rocprofiler-sdk-tool/*'],
  ...['callback_records', 'callback_records/counter_collection'].map((path) => PROCESS + path),
])
const TAKEN: ReadonlySet<string> = new Set(
  ['metadata', 'agents/*', 'kernel_symbols/*', 'strings/buffer_records/*', 'strings/marker_api/*'].map(
    (path) => PROCESS + path,
  ),
)
const RECORDS = /^rocprofiler-sdk-tool\/\*\/(?:buffer|callback)_records\/(\w+)(\/\*)?$/
/** Calls of libraries. */
const CALLS: ReadonlySet<string> = new Set(['hip_api', 'hsa_api', 'rccl_api', 'rocdecode_api', 'rocjpeg_api'])

function choose(path: string): Choice {
  if (ENTERED.has(path)) return 'enter'
  if (TAKEN.has(path)) return 'take'
  const [, list, item] = RECORDS.exec(path) ?? []
  return list === undefined ? 'skip' : item === undefined ? 'enter' : 'take'
}

/** Reads all processes of a document. */
class RocprofDocument extends JsonDocument {
  readonly batch = new EventBatch()
  private readonly guard = new TimeGuard()
  private readonly records: Records
  private readonly calls = new LibraryCalls()
  private readonly counts = { kernel: 0, copy: 0 }
  private originNs: number | undefined
  private unnamed = 0
  private unnamedAt = 0

  constructor(source: AsyncIterable<Uint8Array>, { names }: ReadContext) {
    super(source, rocprofv3.name, choose)
    this.records = new Records(names)
  }

  protected override get lastNs(): number {
    return this.guard.lastNs
  }

  protected override take(object: JsonObject, path: string): void {
    const { records } = this
    const part = path.slice(PROCESS.length)
    if (part === 'metadata') {
      records.beginProcess(object)
      return this.begin(object)
    }
    if (part === 'agents/*') return records.addAgent(object)
    if (part === 'kernel_symbols/*') return records.addKernel(object)
    if (part === 'strings/buffer_records/*') return records.addKind(object)
    if (part === 'strings/marker_api/*') return records.addMarker(object)
    this.record(object, RECORDS.exec(path)![1]!)
  }

  protected override report(issue: IssueEvent): void {
    this.batch.add(issue)
  }

  protected override finish(): void {
    const { batch, calls, counts } = this
    if (!batch.hasBegun) this.begin({})
    if (this.unnamed > 0) {
      const detail = `${this.unnamed} dispatches are of kernels that "kernel_symbols" does not contain: named by their id`
      this.issue('damaged-record', detail, this.lastNs, this.unnamedAt)
    }
    for (const events of calls.events()) for (const event of events) batch.add(event)
    batch.end()
    batch.add({
      kind: 'facts',
      ...holding(
        { kernel: counts.kernel, 'memory copy': counts.copy, call: calls.count, range: calls.ranges },
        'no work of a GPU',
      ),
    })
  }

  /** The input begins with the first process, or with the first record where there is none. */
  private begin(metadata: JsonObject): void {
    if (this.originNs !== undefined) return
    const originNs = wholeOf(metadata, 'init_time') ?? 0
    this.originNs = originNs
    const attributes = { tool: 'rocprofv3', ...factsOf(metadata) }
    const title = attributes.command
    this.batch.begin({
      kind: 'input',
      format: rocprofv3.name,
      clock: 'BOOTTIME',
      originNs: BigInt(originNs),
      attributes,
      capabilities: { order: false, operators: false },
      ...(title !== undefined && { title: `rocprofv3 ${title}` }),
    })
  }

  private record(object: JsonObject, list: string): void {
    const isKnown = list === 'kernel_dispatch' || list === 'memory_copy' || list === 'marker_api' || CALLS.has(list)
    if (!isKnown) return this.batch.leftOut.add(`records of ${list}`)
    const timed = this.timed(object)
    if (timed) this.add(list, timed)
  }

  private add(list: string, timed: Timed): void {
    const { batch, calls, counts, records } = this
    if (CALLS.has(list)) return calls.addCall(timed, records.nameOf(timed.object), records.pid)
    if (list === 'marker_api') return calls.addRange(timed, records.rangeOf(timed.object))
    let event: TraceEvent
    if (list === 'kernel_dispatch') {
      const kernel = records.dispatch(timed)
      if (!kernel.isNamed && this.unnamed++ === 0) this.unnamedAt = this.walk.byte
      event = kernel.event
      counts.kernel++
    } else {
      event = records.copy(timed)
      counts.copy++
    }
    calls.addWork(timed, records.pid)
    batch.add(event)
  }

  /** The times of a record; undefined where it has none, or impossible ones. */
  private timed(object: JsonObject): Timed | undefined {
    const start = wholeOf(object, 'start_timestamp')
    const end = wholeOf(object, 'end_timestamp')
    if (start === undefined || start === 0) {
      this.issue('event-without-time', 'expected "start_timestamp", found none', this.lastNs)
      return undefined
    }
    if (this.originNs === undefined) this.begin({ init_time: start })
    const startNs = start - this.originNs!
    const doubt = this.guard.doubt(startNs)
    if (doubt !== undefined) {
      this.issue('impossible-time', doubt, this.lastNs)
      return undefined
    }
    if (end === undefined || end < start) {
      this.issue('event-without-end', `expected an "end_timestamp" from ${start} on, found ${end ?? 'none'}`, startNs)
    }
    const correlation = wholeOf(objectOf(object, 'correlation_id'), 'internal') ?? -1
    const tid = wholeOf(object, 'thread_id') ?? -1
    return { object, startNs, endNs: Math.max(startNs, (end ?? start) - this.originNs!), correlation, tid }
  }
}
