import type { SqliteRows } from '../../../input/sqlite/rows.ts'
import type { TraceEvent } from '../../../model/events.ts'
import type { Facts, GpuEvent, GpuPlace } from '../../../model/gpu-events.ts'
import { copyName, FILL_NAME, UNIFIED_FROM } from '../../common/cuda.ts'
import type { Launches } from './calls.ts'
import { MEMORY_KINDS, pidOf, type Report } from './report.ts'

/** The first columns of all queries of GPU work, and their indexes. */
const COMMON = ['start', 'end', 'deviceId', 'contextId', 'streamId', 'globalPid', 'correlationId'] as const
const [START, END, DEVICE, CONTEXT, STREAM, PROCESS, CORRELATION] = [0, 1, 2, 3, 4, 5, 6]
const NO_STREAM = 0xffffffff

/** CUpti_ActivitySynchronizationType. */
const SYNC_KINDS: Readonly<Record<number, string>> = {
  1: 'event synchronize',
  2: 'stream wait event',
  3: 'stream synchronize',
  4: 'context synchronize',
}

/** A table of GPU work. */
interface WorkTable {
  readonly table: string
  readonly what: GpuEvent['what']
  /** Further columns; their indexes begin at `FIRST`. */
  readonly columns: readonly string[]
  name(row: SqliteRows, report: Report): number
  facts(row: SqliteRows): Facts
}

const FIRST = COMMON.length
/** Index of copyKind, of copies. */
const COPY_KIND = FIRST + 1
/** Index of demangledName, of kernels. */
const SIGNATURE = FIRST + 1

const WORK: readonly WorkTable[] = [
  {
    table: 'CUPTI_ACTIVITY_KIND_KERNEL',
    what: 'kernel',
    columns: [
      ...['shortName', 'demangledName', 'gridX', 'gridY', 'gridZ', 'blockX', 'blockY', 'blockZ'],
      ...['registersPerThread', 'staticSharedMemory', 'dynamicSharedMemory', 'graphNodeId'],
    ],
    name: (row, report) => report.string(row.number(FIRST)) || report.string(row.number(FIRST + 1)),
    facts(row) {
      const facts: Record<string, number | bigint | string> = {
        grid: dimensions(row, FIRST + 2),
        block: dimensions(row, FIRST + 5),
        registers: row.number(FIRST + 8, 0),
        shared_bytes: row.number(FIRST + 9, 0) + row.number(FIRST + 10, 0),
      }
      if (!row.isNull(FIRST + 11)) facts['graph_node'] = row.exact(FIRST + 11)
      return facts
    },
  },
  {
    table: 'CUPTI_ACTIVITY_KIND_MEMCPY',
    what: 'memcpy',
    columns: ['bytes', 'copyKind', 'srcKind', 'dstKind', 'srcDeviceId', 'dstDeviceId', 'graphNodeId'],
    name: (row, { names }) => names.id(copyName(row.number(COPY_KIND))),
    facts(row) {
      const facts: Record<string, number | bigint | string> = { bytes: row.exact(FIRST, 0) }
      const [from, to] = [MEMORY_KINDS[row.number(FIRST + 2)], MEMORY_KINDS[row.number(FIRST + 3)]]
      if (from !== undefined) facts['from'] = from
      if (to !== undefined) facts['to'] = to
      if (!row.isNull(FIRST + 4)) facts['from_device'] = row.number(FIRST + 4)
      if (!row.isNull(FIRST + 5)) facts['to_device'] = row.number(FIRST + 5)
      if (!row.isNull(FIRST + 6)) facts['graph_node'] = row.exact(FIRST + 6)
      return facts
    },
  },
  {
    table: 'CUPTI_ACTIVITY_KIND_MEMSET',
    what: 'memset',
    columns: ['bytes', 'value', 'memKind', 'graphNodeId'],
    name: (_, { names }) => names.id(FILL_NAME),
    facts(row) {
      const facts: Record<string, number | bigint | string> = {
        bytes: row.exact(FIRST, 0),
        value: row.exact(FIRST + 1, 0),
      }
      const memory = MEMORY_KINDS[row.number(FIRST + 2)]
      if (memory !== undefined) facts['to'] = memory
      if (!row.isNull(FIRST + 3)) facts['graph_node'] = row.exact(FIRST + 3)
      return facts
    },
  },
  {
    table: 'CUPTI_ACTIVITY_KIND_GRAPH_TRACE',
    what: 'graph',
    columns: ['graphId', 'graphExecId'],
    name: (_, { names }) => names.id('CUDA graph'),
    facts: (row) => ({ graph: row.exact(FIRST, 0), graph_exec: row.exact(FIRST + 1, 0) }),
  },
]

/** Facts about streams and contexts from other tables. */
export interface Streams {
  /** Names that the program or the driver gave them, by process, context and stream. */
  readonly names: ReadonlyMap<string, number>
  /** Devices of contexts, by process and context: rows of waits always have the device 0. */
  readonly devices: Map<string, number>
}

/** Key of a stream; without a stream, of a context. */
function streamKey(pid: number, context: number, stream?: number): string {
  return `${pid} ${context} ${stream ?? ''}`
}

/** Reads the names of streams and contexts, and the devices of contexts. */
export async function readStreams(report: Report): Promise<Streams> {
  const devices = new Map<string, number>()
  const names = new Map<string, number>()
  const nulls = (table: string) =>
    report.each(table, ['processId', 'contextId', 'nullStreamId', 'streamId'], (row) => {
      const key = streamKey(row.number(0), row.number(1), row.number(row.isNull(2) ? 3 : 2))
      names.set(key, report.names.id('default'))
    })
  await nulls('TARGET_INFO_CUDA_NULL_STREAM')
  await nulls('TARGET_INFO_CUDA_CONTEXT_INFO')
  await report.each('TARGET_INFO_NVTX_CUDA_STREAM', ['processId', 'contextId', 'streamId', 'name'], (row) => {
    names.set(streamKey(row.number(0), row.number(1), row.number(2)), report.names.id(row.text(3)))
  })
  await report.each('TARGET_INFO_NVTX_CUDA_CONTEXT', ['processId', 'contextId', 'name'], (row) => {
    names.set(streamKey(row.number(0), row.number(1)), report.names.id(row.text(2)))
  })
  await report.each('TARGET_INFO_CUDA_CONTEXT_INFO', ['processId', 'contextId', 'deviceId'], (row) => {
    if (!row.isNull(2)) devices.set(streamKey(row.number(0), row.number(1)), row.number(2))
  })
  return { names, devices }
}

/** Kernels, copies, fills and whole graphs, in the order of the tables. */
export async function* readGpuWork(
  report: Report,
  streams: Streams,
  launches: Launches,
): AsyncGenerator<TraceEvent[], void> {
  let latest = { context: -1, pid: -1 }
  for (const { table, what: ofTable, columns, name, facts } of WORK) {
    yield* report.events(table, [...COMMON, ...columns], (row) => {
      const startNs = report.time(row, START)
      const endNs = report.endOf(table, startNs, report.time(row, END))
      if (endNs === undefined) return undefined
      const isMigration = ofTable === 'memcpy' && row.number(COPY_KIND) >= UNIFIED_FROM
      const what = isMigration ? 'migration' : ofTable
      // The driver moves pages: no call launches it.
      const correlation = isMigration ? -1 : report.correlation(row, CORRELATION, startNs)
      if (correlation >= 0) {
        launches.of(report.threads.processOf(row.high(PROCESS), row.low(PROCESS))).add(correlation, startNs, endNs)
      }
      const signature = what === 'kernel' ? report.string(row.number(SIGNATURE)) : 0
      const { device, context, contextName, stream, streamName, pid } = placeOf(row, streams)
      if (context !== latest.context || pid !== latest.pid) {
        latest = { context, pid }
        streams.devices.set(streamKey(pid, context), device)
      }
      return {
        ...{ kind: 'gpu', what, name: name(row, report), startNs, endNs, correlation, signature, facts: facts(row) },
        ...{ device, context, contextName, stream, streamName, pid },
      }
    })
  }
}

/** Waits for streams, events and contexts; and CUDA events with a time. */
export async function* readSynchronization(report: Report, streams: Streams): AsyncGenerator<TraceEvent[], void> {
  const table = 'CUPTI_ACTIVITY_KIND_SYNCHRONIZATION'
  yield* report.events(table, [...COMMON, 'syncType', 'eventId', 'eventSyncId'], (row) => {
    const startNs = report.time(row, START)
    const endNs = report.endOf(table, startNs, report.time(row, END))
    if (endNs === undefined) return undefined
    const name = report.names.id(SYNC_KINDS[row.number(FIRST)] ?? 'synchronize')
    const correlation = report.correlation(row, CORRELATION, startNs)
    const facts = eventFacts(row, FIRST + 1)
    return { kind: 'gpu-sync', name, startNs, endNs, ...placeOfWait(row, streams), correlation, facts }
  })
  yield* readCudaEvents(report, streams)
}

async function* readCudaEvents(report: Report, streams: Streams): AsyncGenerator<TraceEvent[], void> {
  const table = 'CUPTI_ACTIVITY_KIND_CUDA_EVENT'
  const columns = ['timestamp', 'timestamp', ...COMMON.slice(2), 'eventId', 'eventSyncId']
  let untimed = 0
  yield* report.events(table, columns, (row) => {
    const startNs = row.isNull(START) ? 0 : report.time(row, START)
    if (startNs === 0) untimed++
    if (startNs === 0 || report.endOf(table, startNs, startNs) === undefined) return undefined
    const [correlation, facts] = [report.correlation(row, CORRELATION, startNs), eventFacts(row, FIRST)]
    const name = report.names.id('event')
    return { kind: 'gpu-sync', name, startNs, endNs: startNs, ...placeOfWait(row, streams), correlation, facts }
  })
  if (untimed > 0) {
    const detail = `${untimed} CUDA events have no time: expected nsys profile --cuda-event-trace=true; not drawn`
    report.issue('cuda-events-without-time', detail)
  }
}

function placeOf(row: SqliteRows, { names }: Streams): GpuPlace {
  const pid = pidOf(row.high(PROCESS), row.low(PROCESS))
  const context = row.number(CONTEXT, -1)
  const number = row.number(STREAM, -1)
  const stream = number === NO_STREAM ? -1 : number
  const streamName = names.get(streamKey(pid, context, stream)) ?? 0
  const contextName = names.get(streamKey(pid, context)) ?? 0
  return { device: row.number(DEVICE, -1), context, contextName, stream, streamName, pid }
}

/** The place of a wait or an event, with the device of its context. */
function placeOfWait(row: SqliteRows, streams: Streams): GpuPlace {
  const place = placeOf(row, streams)
  return { ...place, device: streams.devices.get(streamKey(place.pid, place.context)) ?? place.device }
}

function eventFacts(row: SqliteRows, field: number): Facts {
  const facts: Record<string, number | bigint> = {}
  for (const [i, key] of ['event', 'event_sync'].entries()) {
    const id = row.exact(field + i, NO_STREAM)
    if (id !== NO_STREAM) facts[key] = id
  }
  return facts
}

function dimensions(row: SqliteRows, field: number): string {
  return `${row.number(field, 1)}x${row.number(field + 1, 1)}x${row.number(field + 2, 1)}`
}
