// What `nsys export --type sqlite` (Nsight Systems) makes of a report: an SQLite file, one table per kind of event, texts in
// StringIds, times in nanoseconds since the session began.
//
//     CUPTI_ACTIVITY_KIND_KERNEL   start | end | deviceId | streamId | correlationId | globalPid | shortName → StringIds …
//     CUPTI_ACTIVITY_KIND_RUNTIME  start | end | globalTid | correlationId | nameId → StringIds …
//     NVTX_EVENTS                  start | end | eventType | globalTid | text or textId → StringIds | domainId …
//
// Tables come into being with their first row and columns come and go between versions: both are found by name.

import { FormatError } from '../../../errors.ts'
import { collected, type RandomAccess, rangeAccess } from '../../../input/random-access.ts'
import type { OnDamage } from '../../../input/sqlite/rows.ts'
import { isSqlite, SqliteFile } from '../../../input/sqlite/sqlite-file.ts'
import type { TraceEvent } from '../../../model/events.ts'
import { containing, contentsOf } from '../../common/holdings.ts'
import type { Format, ReadContext } from '../../format.ts'
import { leaveTables, readAbout, readDiagnostics, readProcessNames, readSessionStart } from './about.ts'
import { Calls } from './calls.ts'
import { readGpuWork, readStreams, readSynchronization } from './gpu-tables.ts'
import { Launches } from './launches.ts'
import { Nvtx } from './nvtx.ts'
import { project } from './projection.ts'
import { Report } from './report.ts'
import { readGpuMetrics, readMemoryUsage, readSchedule } from './series.ts'

/** Bytes of a report that are held in memory where it cannot be read at any place. */
const COLLECTED_BYTES_MAX = 512 << 20
/** Damage of one file that is told of, one by one. */
const DAMAGE_TOLD_MAX = 1000

export const nsys: Format = {
  name: 'nsys',
  title: 'Nsight Systems: nsys export --type sqlite',

  sniff: isSqlite,

  async *read(source, context) {
    const access = context.range ? rangeAccess(context.range) : await collected(source, COLLECTED_BYTES_MAX)
    yield* read(access, context)
  },
}

async function* read(access: RandomAccess, context: ReadContext): AsyncGenerator<TraceEvent[], void> {
  const report = await openReport(access, context)
  const osRuntime = context.osRuntime === true
  await report.readStrings()
  const start = await readSessionStart(report)
  yield [
    {
      kind: 'input',
      format: nsys.name,
      clock: start === undefined ? 'unknown' : 'REALTIME',
      originNs: start ?? 0n,
      title: 'Nsight Systems',
      attributes: await readAbout(report),
    },
  ]
  await readDiagnostics(report)
  for await (const batch of events(report, osRuntime)) {
    if (report.issues.length > 0) yield report.takeIssues()
    if (batch.length > 0) yield batch
  }
  await leaveTables(report, osRuntime)
  yield [...report.takeIssues(), ...report.leftOut.events(), { kind: 'facts', ...containing(contents(report)) }]
}

async function* events(report: Report, osRuntime: boolean): AsyncGenerator<TraceEvent[], void> {
  const launches = new Launches()
  const streams = await readStreams(report)
  yield* readGpuWork(report, streams, launches)
  warnOfGraphs(report)
  yield* readSynchronization(report, streams)
  const calls = new Calls(report, 'cuda')
  await calls.read()
  const nvtx = new Nvtx(report)
  await nvtx.read()
  await nameThreads(report, nvtx)
  yield* nvtx.events()
  yield* project(report, nvtx.ranges, calls, launches)
  yield* calls.events(launches)
  if (osRuntime) {
    const os = new Calls(report, 'os')
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
  let told = 0
  const onDamage: OnDamage = (detail, byte, isUnread) => {
    if (told++ >= DAMAGE_TOLD_MAX) return
    if (!report) early.push([detail, byte, isUnread])
    else if (isUnread) report.unread(detail)
    else report.issue('database-damaged', detail, report.lastNs, byte)
  }
  const file = await SqliteFile.open(access, nsys.name, onDamage)
  if (!file.tables.has('StringIds')) {
    const tables = [...file.tables.keys()].slice(0, 5).join(', ') || 'none'
    const refusal = file.refusals.get('StringIds')
    const found = refusal === undefined ? `the tables ${tables}` : `one that ${refusal}`
    throw new FormatError(nsys.name, { byte: 0 }, 'the table StringIds', found, HINT)
  }
  report = new Report(file, names)
  for (const problem of early) onDamage(...problem)
  const unread = await file.besides(beside)
  if (unread !== undefined) report.unread(unread)
  return report
}

const HINT = 'nsys export --type sqlite report.nsys-rep makes a file that can be read'

/** Names threads as the program did, as the system did, or as their process is called. */
async function nameThreads(report: Report, nvtx: Nvtx): Promise<void> {
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

function warnOfGraphs(report: Report): void {
  const graphs = report.counts.get('CUPTI_ACTIVITY_KIND_GRAPH_TRACE') ?? 0
  if (graphs === 0) return
  report.issue('graph-kernels-hidden', `${graphs} launches of CUDA graphs were recorded as a whole`)
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
