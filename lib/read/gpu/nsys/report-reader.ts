// A report of Nsight Systems, exported by `nsys export --type sqlite`: an SQLite file, one table per kind of event, texts in
// StringIds, times in nanoseconds since the start of the session.
//
//     CUPTI_ACTIVITY_KIND_KERNEL   start | end | deviceId | streamId | correlationId | globalPid | shortName → StringIds …
//     CUPTI_ACTIVITY_KIND_RUNTIME  start | end | globalTid | correlationId | nameId → StringIds …
//     NVTX_EVENTS                  start | end | eventType | globalTid | text or textId → StringIds | domainId …
//
// Only tables with rows exist, and columns differ between versions: the reader looks both up by name. Rows are in no order: those
// that must be in order of time are kept as numbers (common/spans.ts) and sorted.
//
//     report.ts         the file; texts, threads and processes that its tables refer to; issues
//     gpu-tables.ts     kernels, copies, waits, by stream          calls.ts    CUDA calls by thread, and their GPU work
//     nvtx.ts           NVTX rows → nvtx-ranges.ts, in order       projection.ts  NVTX ranges projected onto the GPU
//     series.ts         metrics, memory, the scheduler             csv.ts      rows of the CSV reports of nsys stats

import { FormatError } from '../../../errors.ts'
import { collected, type RandomAccess, rangeAccess } from '../../../input/random-access.ts'
import type { OnDamage } from '../../../input/sqlite/rows.ts'
import { SqliteFile } from '../../../input/sqlite/sqlite-file.ts'
import { DefaultMap, getOrMake } from '../../../model/default-map.ts'
import type { ThreadState, TraceEvent } from '../../../model/events.ts'
import type { IssueCode } from '../../../model/issues.ts'
import { plural } from '../../../model/units.ts'
import { containing, contentsOf } from '../../common/holdings.ts'
import { Spans } from '../../common/spans.ts'
import type { ReadContext } from '../../format.ts'
import { ApiCalls, LaunchedWork } from './calls.ts'
import { readGpuWork, readStreams, readSynchronization } from './gpu-tables.ts'
import { NvtxReader } from './nvtx.ts'
import { project } from './projection.ts'
import { MEMORY_KINDS, pidOf, Report } from './report.ts'

const FORMAT = 'nsys'
/** Memory of the device, of {@link MEMORY_KINDS}. */
const DEVICE_MEMORY = 2

/** Counters that nsys sampled on the GPUs, in the order of the table. */
async function* readGpuMetrics(report: Report): AsyncGenerator<TraceEvent[], void> {
  const metrics = new Map<string, string>()
  await report.each('TARGET_INFO_GPU_METRICS', ['typeId', 'metricId', 'metricName'], (row) => {
    metrics.set(`${row.high(0)} ${row.low(0)} ${row.number(1)}`, row.text(2))
  })
  const names = new Map<string, number>()
  yield* report.events('GPU_METRICS', ['timestamp', 'typeId', 'metricId', 'value'], (row) => {
    const [atNs, value] = [report.time(row, 0), row.number(3)]
    if (report.endOf('GPU_METRICS', atNs, atNs) === undefined) return undefined
    if (!Number.isFinite(value)) {
      report.leftOut.add('GPU_METRICS without a number')
      return undefined
    }
    const key = `${row.high(1)} ${row.low(1)} ${row.number(2)}`
    const name = getOrMake(names, key, () => {
      const gpu = row.low(1) & 0xff // lowest byte of the type
      return report.names.id(`GPU ${gpu}: ${metrics.get(key) || `metric ${row.number(2)}`}`)
    })
    return { kind: 'counter', name, unit: 'count', atNs, value }
  })
}

/** Allocated memory by process and device, from allocations and frees. */
async function* readMemoryUsage(report: Report): AsyncGenerator<TraceEvent[], void> {
  const table = 'CUDA_GPU_MEMORY_USAGE_EVENTS'
  const columns = ['start', 'globalPid', 'deviceId', 'bytes', 'memoryOperationType', 'memKind']
  const spans = new Spans() // `a` is the index in `owners`, `b` is 0 for an allocation, 1 for a free
  const sizes: number[] = []
  const owners: { readonly name: number; bytes: number }[] = []
  const numbers = new DefaultMap((name: string) => owners.push({ name: report.names.id(name), bytes: 0 }) - 1)
  await report.each(table, columns, (row) => {
    const atNs = report.time(row, 0)
    if (report.endOf(table, atNs, atNs) === undefined) return
    const [pid, device] = [pidOf(row.high(1), row.low(1)), row.number(2, 0)]
    const kind = row.number(5, DEVICE_MEMORY)
    const kindText = kind === DEVICE_MEMORY ? '' : `${MEMORY_KINDS[kind] ?? 'other'} `
    const owner = numbers.of(`GPU ${device}: ${kindText}memory allocated by process ${pid}`)
    spans.push(atNs, atNs, owner, row.number(4, 0))
    sizes.push(row.number(3, 0))
    report.count(table)
  })
  yield* spans.order().inBatches((id, batch) => {
    const owner = owners[spans.a(id)]!
    owner.bytes += spans.b(id) === 0 ? sizes[id]! : -sizes[id]!
    batch.push({ kind: 'counter', name: owner.name, unit: 'bytes', atNs: spans.start(id), value: owner.bytes })
  })
}

/** States of the traced threads, thread by thread in order. */
async function* readSchedule(report: Report): AsyncGenerator<TraceEvent[], void> {
  const table = 'SCHED_EVENTS'
  const byThread = new DefaultMap<number, Spans>(() => new Spans()) // `a` is the state, `b` the CPU
  await report.each(table, ['start', 'cpu', 'isSchedIn', 'globalTid', 'threadState', 'threadBlock'], (row) => {
    const atNs = report.time(row, 0)
    if (report.endOf(table, atNs, atNs) === undefined) return
    const thread = report.threads.of(row.high(3), row.low(3))
    const state = row.number(2, 0) !== 0 ? 'running' : stateOf(row.number(4, 0), row.number(5, -1))
    byThread.of(thread).push(atNs, atNs, STATES.indexOf(state), row.number(1, 0))
    report.count(table)
  })
  for (const [thread, spans] of byThread) {
    const { tid } = report.threads.list[thread]!
    const name = report.names.id(`${report.names.text(report.threadNames[thread] ?? 0) || 'thread'} ${tid}`)
    yield* spans.order().inBatches((id, batch) => {
      const state = STATES[spans.a(id)]!
      batch.push({ kind: 'state', tid, cpu: spans.b(id), state, atNs: spans.start(id), thread: name })
    })
  }
}

/** Reasons for leaving a CPU (nsys's ENUM_SCHEDULING_THREAD_BLOCK) with which a thread remains runnable; with others it waits. */
const PREEMPTED = new Set([42, 43, 44, 45, 49, 51])
const STATES: readonly ThreadState[] = ['running', 'runnable', 'blocked', 'off']

/** State of a thread that left its CPU; `off` if nsys does not record why. */
function stateOf(state: number, block: number): ThreadState {
  if (PREEMPTED.has(block)) return 'runnable'
  return block > 1 || state === 2 || state === 3 || state === 7 ? 'blocked' : 'off'
}

/** Maximum size of a report without random access, which is kept in memory. */
const COLLECTED_BYTES_MAX = 512 << 20
/** Maximum number of issues about damage of one file. */
const DAMAGE_ISSUES_MAX = 1000

/** Reads a report: see {@link Format.read}. */
export async function* readReport(
  source: AsyncIterable<Uint8Array>,
  context: ReadContext,
): AsyncGenerator<TraceEvent[], void> {
  const access = context.range ? rangeAccess(context.range) : await collected(source, COLLECTED_BYTES_MAX)
  const report = await openReport(access, context)
  const osRuntime = context.osRuntime === true
  await report.readStrings()
  const start = await readSessionStart(report)
  yield [
    {
      kind: 'input',
      format: FORMAT,
      clock: start === undefined ? 'unknown' : 'REALTIME',
      originNs: start ?? 0n,
      title: 'Nsight Systems',
      attributes: await readAbout(report),
      capabilities: { operators: false },
    },
  ]
  await readDiagnostics(report)
  for await (const batch of events(report, osRuntime)) {
    if (report.issues.length > 0) yield report.takeIssues()
    if (batch.length > 0) yield batch
  }
  await countOtherTables(report, osRuntime)
  yield [...report.takeIssues(), ...report.leftOut.events(), { kind: 'facts', ...containing(contents(report)) }]
}

async function* events(report: Report, osRuntime: boolean): AsyncGenerator<TraceEvent[], void> {
  const launches = new DefaultMap<number, LaunchedWork>(() => new LaunchedWork())
  const streams = await readStreams(report)
  yield* readGpuWork(report, streams, launches)
  reportGraphs(report)
  yield* readSynchronization(report, streams)
  const calls = new ApiCalls(report, 'cuda')
  await calls.read()
  const nvtx = new NvtxReader(report)
  await nvtx.read()
  await nameThreads(report, nvtx)
  yield* nvtx.events()
  yield* project(report, nvtx.ranges, calls, launches)
  yield* calls.events(launches)
  if (osRuntime) {
    const os = new ApiCalls(report, 'os')
    await os.read()
    yield* os.events(launches)
  }
  yield* readSchedule(report)
  yield* readGpuMetrics(report)
  yield* readMemoryUsage(report)
}

async function openReport(access: RandomAccess, { names, beside }: ReadContext): Promise<Report> {
  let report: Report | undefined
  const early: Parameters<OnDamage>[] = []
  let damages = 0
  const onDamage: OnDamage = (detail, byte, isUnread) => {
    if (damages++ >= DAMAGE_ISSUES_MAX) return
    if (!report) early.push([detail, byte, isUnread])
    else if (isUnread) report.unread(detail)
    else report.issue('database-damaged', detail, report.lastNs, byte)
  }
  const file = await SqliteFile.open(access, FORMAT, onDamage)
  if (!file.tables.has('StringIds')) {
    const tables = [...file.tables.keys()].slice(0, 5).join(', ') || 'none'
    const refusal = file.refusals.get('StringIds')
    const found = refusal === undefined ? `the tables ${tables}` : `one that ${refusal}`
    throw new FormatError(FORMAT, { byte: 0 }, 'the table StringIds', found, HINT)
  }
  report = new Report(file, names)
  for (const problem of early) onDamage(...problem)
  const unread = await file.unreadChanges(beside)
  if (unread !== undefined) report.unread(unread)
  return report
}

const HINT = 'nsys export --type sqlite report.nsys-rep makes a file that can be read'

/** Names threads after the program, else the system, else their process. */
async function nameThreads(report: Report, nvtx: NvtxReader): Promise<void> {
  const { threads, threadNames, names } = report
  const processes = await readProcessNames(report)
  await report.each('ThreadNames', ['globalTid', 'nameId'], (row) => {
    threadNames[threads.of(row.high(0), row.low(0))] = report.string(row.number(1))
  })
  for (const [thread, name] of nvtx.threadNames) threadNames[thread] = name
  for (const [thread, { pid }] of threads.list.entries()) {
    if (!threadNames[thread]) threadNames[thread] = names.id(processes.get(pid) ?? '')
  }
}

function reportGraphs(report: Report): void {
  const graphs = report.counts.get('CUPTI_ACTIVITY_KIND_GRAPH_TRACE') ?? 0
  if (graphs === 0) return
  report.issue('graph-kernels-hidden', `${plural(graphs, 'launch')} of CUDA graphs recorded as a whole`)
}

const NOUNS: Readonly<Record<string, string>> = {
  CUPTI_ACTIVITY_KIND_KERNEL: 'kernel',
  CUPTI_ACTIVITY_KIND_MEMCPY: 'memory copy',
  CUPTI_ACTIVITY_KIND_MEMSET: 'memory set',
  CUPTI_ACTIVITY_KIND_GRAPH_TRACE: 'CUDA graph',
  CUPTI_ACTIVITY_KIND_RUNTIME: 'CUDA call',
  NVTX_EVENTS: 'NVTX event',
}

function contents({ counts }: Report): string {
  return contentsOf(Object.entries(NOUNS).map(([table, noun]) => [counts.get(table) ?? 0, noun])) || 'no GPU activity'
}

/** Start of the session in nanoseconds since 1970, the origin of all times of the report. Undefined if it is not recorded. */
async function readSessionStart(report: Report): Promise<bigint | undefined> {
  let start: bigint | undefined
  await report.each('TARGET_INFO_SESSION_START_TIME', ['utcEpochNs'], (row) => {
    if (!row.isNull(0)) start = (BigInt(row.high(0)) << 32n) | BigInt(row.low(0))
  })
  if (start !== undefined) report.startsAt(start)
  return start
}

/** Attributes of the report. Facts about machine and user are not copied, except the names of GPUs. */
async function readAbout(report: Report): Promise<Record<string, string | number>> {
  const about: Record<string, string | number> = {}
  const wanted = new Map([
    ['EXPORT_PRODUCT_VERSION', 'nsys_version'],
    ['EXPORT_SCHEMA_VERSION', 'schema_version'],
  ])
  for (const table of ['META_DATA_EXPORT', 'EXPORT_META_DATA']) {
    await report.each(table, ['name', 'value'], (row) => {
      const key = wanted.get(row.text(0))
      if (key !== undefined) about[key] = row.text(1)
    })
  }
  const gpus: string[] = []
  await report.each('TARGET_INFO_GPU', ['id', 'deviceId', 'name'], (row) => {
    const number = row.number(row.isNull(0) ? 1 : 0)
    const parts = [Number.isInteger(number) ? `${number}` : '', row.text(2)].filter(Boolean)
    if (parts.length > 0) gpus.push(parts.join(' '))
  })
  if (gpus.length > 0) about['gpus'] = gpus.sort().join(', ')
  return about
}

const OS_TABLE = 'OSRT_API'
/** Tables whose events are drawn or become issues. */
const DRAWN = new Set([
  ...['KERNEL', 'MEMCPY', 'MEMSET', 'GRAPH_TRACE', 'SYNCHRONIZATION', 'CUDA_EVENT', 'RUNTIME', 'DRIVER'].map(
    (kind) => `CUPTI_ACTIVITY_KIND_${kind}`,
  ),
  ...['CUDNN_EVENTS', 'CUBLAS_EVENTS', 'NVTX_EVENTS', 'SCHED_EVENTS', 'GPU_METRICS', 'CUDA_GPU_MEMORY_USAGE_EVENTS'],
  'DIAGNOSTIC_EVENT',
])

/** Columns of times, whatever the version calls them: `start`, `startedAt`, `openedAt`, `rawTimestamp`. */
const TIME = /^(?:start|time)|(?:At|Time|Timestamp|Ns)$/
/** Tables that describe the session, the machine or the report. */
const ABOUT = /^(?:TARGET_INFO|META_DATA|EXPORT_META_DATA|ANALYSIS|ENUM|PROCESSES|StringIds)/
const CALL_STACKS = /_CALLCHAINS$/

/** Counts the rows of all other tables with times, and frames of call stacks; later versions of nsys may add some. */
async function countOtherTables(report: Report, osRuntime: boolean): Promise<void> {
  for (const { name, columns } of report.file.tables.values()) {
    if (DRAWN.has(name) || ABOUT.test(name) || (osRuntime && name === OS_TABLE)) continue
    if (!CALL_STACKS.test(name) && !columns.some((column) => TIME.test(column.name))) continue
    const hint = name === OS_TABLE ? '--osrt draws the calls of the OS runtime (OSRT_API)' : 'Nsight Systems shows them'
    report.leftOut.add(name, await report.sizeOf(name), hint)
  }
}

/** Names of processes by pid, without folders; kernel threads have names such as `kworker/u8:1`. */
async function readProcessNames(report: Report): Promise<Map<number, string>> {
  const names = new Map<number, string>()
  await report.each('PROCESSES', ['pid', 'name'], (row) => {
    const program = row.text(1).replace(/^(?:[A-Za-z]:)?[/\\](?:.*[/\\])?/, '')
    if (program !== '') names.set(row.number(0), program)
  })
  return names
}

/** Warnings and errors of the profiler as issues, without paths. */
async function readDiagnostics(report: Report): Promise<void> {
  await report.each('DIAGNOSTIC_EVENT', ['timestamp', 'severity', 'text'], (row) => {
    const code = SEVERITIES[row.number(1)]
    if (code !== undefined) report.issue(code, withoutPaths(row.text(2)), report.time(row, 0) || 0)
  })
}

const SEVERITIES: Readonly<Record<number, IssueCode>> = { 2: 'profiler-warning', 3: 'profiler-error' }

/** Replaces paths; in quotes the whole text, as a path may contain spaces there. */
function withoutPaths(text: string): string {
  return text
    .replace(/(['"])[^'"/\\]*[/\\][^'"]*\1/g, '$1<path>$1')
    .replace(/(?<![\w.])(?:[A-Za-z]:|~|\.{1,2})?(?:[/\\][^\s/\\'"<>,;:()]+)+[/\\]?/g, '<path>')
    .replace(/\s+/g, ' ')
    .trim()
}
