import { addTable, databaseOf, type Row } from './databases.ts'

/** Small reports of Nsight Systems, as it would export them; two processes whose correlation ids are the same. */

/** A `globalTid`: hardware, machine, process and thread. */
export const globalTid = (pid: number, tid: number): bigint => (1n << 48n) | (BigInt(pid) << 24n) | BigInt(tid)
export const SESSION_NS = 1_754_324_972_242_076_786n

export type Tables = Readonly<Record<string, readonly Row[]>>

const TEXTS: readonly string[] = [
  ...['', 'gemm', 'void gemm<float, 4>(T *)', 'cudaLaunchKernel_v7000', 'cudaMemcpyAsync_v3020', 'main', 'registered'],
  ...['cudaGraphLaunch_v10000', 'poll', 'cudaStreamGetCaptureInfo_v2_v11030', 'cublasCreate_v2'],
]
const text = (value: string) => TEXTS.indexOf(value)

const kernel = (pid: number, start: number, end: number, correlationId: number, streamId = 7): Row => ({
  ...{ start, end, deviceId: pid - 100, contextId: 1, streamId, correlationId, globalPid: globalTid(pid, 0) },
  ...{ demangledName: text('void gemm<float, 4>(T *)'), shortName: text('gemm'), registersPerThread: 40 },
  ...{ gridX: 64, gridY: 2, gridZ: 1, blockX: 256, blockY: 1, blockZ: 1 },
  ...{ staticSharedMemory: 1024, dynamicSharedMemory: 512, graphNodeId: null },
})
const call = (pid: number, start: number, end: number, name: string, correlationId: number, tid = pid): Row => ({
  ...{ start, end, eventClass: 0, globalTid: globalTid(pid, tid), correlationId, nameId: text(name), returnValue: 0 },
})

const NVTX: Row = {
  ...{ start: 0, end: null, eventType: 59, rangeId: null, category: null, color: null, text: null, globalTid: null },
  ...{ endGlobalTid: null, textId: null, domainId: 0, uint64Value: null, int64Value: null, doubleValue: null },
  ...{ uint32Value: null, int32Value: null, floatValue: null, jsonText: null },
}
const nvtx = (row: Row): Row => ({ ...NVTX, globalTid: globalTid(100, 100), ...row })

/** All of a report but what `changes` replaces; a table without rows is left out, as nsys does. */
export const reportOf = (changes: Tables = {}, pragmas?: string): Uint8Array => {
  const tables = { ...WHOLE, ...changes }
  return databaseOf((db) => {
    for (const [name, rows] of Object.entries(tables)) if (rows.length > 0) addTable(db, name, rows)
  }, pragmas)
}

export const WHOLE: Tables = {
  StringIds: TEXTS.map((value, id) => ({ id, value })),
  META_DATA_EXPORT: [
    { name: 'EXPORT_SCHEMA_VERSION', value: '3.20.2' },
    { name: 'EXPORT_HOST', value: 'secret-host' },
  ],
  TARGET_INFO_SYSTEM_ENV: [{ name: 'Hostname', value: 'secret-host' }],
  TARGET_INFO_SESSION_START_TIME: [{ utcEpochNs: SESSION_NS, utcTime: '2025-08-04T16:29:32' }],
  PROCESSES: [
    { globalPid: globalTid(100, 0), pid: 100, name: '/home/somebody/bin/serve' },
    { globalPid: globalTid(101, 0), pid: 101, name: '/home/somebody/bin/serve' },
  ],
  ThreadNames: [{ nameId: text('main'), priority: 20, globalTid: globalTid(100, 100) }],
  CUPTI_ACTIVITY_KIND_KERNEL: [kernel(100, 5000, 9000, 2), kernel(100, 2000, 4000, 1), kernel(101, 2500, 3500, 1, 9)],
  CUPTI_ACTIVITY_KIND_MEMCPY: [
    {
      ...{
        start: 4100,
        end: 4900,
        deviceId: 0,
        contextId: 1,
        streamId: 8,
        correlationId: 3,
        globalPid: globalTid(100, 0),
      },
      ...{ bytes: 4096, copyKind: 1, srcKind: 1, dstKind: 2 },
    },
  ],
  CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: [
    {
      ...{
        start: 8000,
        end: 9100,
        deviceId: 0,
        contextId: 1,
        streamId: 7,
        correlationId: 9,
        globalPid: globalTid(100, 0),
      },
      ...{ syncType: 3, eventId: 4294967295 },
    },
  ],
  CUPTI_ACTIVITY_KIND_RUNTIME: [
    call(100, 3000, 3100, 'cudaMemcpyAsync_v3020', 3),
    call(100, 1500, 1600, 'cudaLaunchKernel_v7000', 2),
    { ...call(100, 1000, 1400, 'cudaLaunchKernel_v7000', 1), returnValue: 700 },
    call(101, 1200, 1300, 'cudaLaunchKernel_v7000', 1),
  ],
  OSRT_API: [{ ...call(100, 500, 700, 'poll', 0), correlationId: null }],
  NVTX_EVENTS: [
    nvtx({ start: -500, eventType: 75, domainId: 2, text: 'engine' }),
    nvtx({ start: 10, eventType: 33, domainId: 2, category: 5, text: 'layers' }),
    nvtx({ start: 1450, end: 1700, text: 'inner', doubleValue: 2.5 }),
    nvtx({ start: 900, end: 3500, text: 'outer', color: 255, uint64Value: -1n }),
    nvtx({ start: 950, end: 3600, domainId: 2, textId: text('registered'), category: 5, color: 4294956800 }),
    nvtx({ start: 1100, eventType: 34, text: 'mark', int32Value: -7 }),
    nvtx({ start: 800, end: 6000, eventType: 60, rangeId: 77, text: 'request', endGlobalTid: globalTid(100, 105) }),
    nvtx({ start: 850, end: 7000, eventType: 60, rangeId: 78, text: 'request', int64Value: 2n ** 60n }),
    nvtx({ start: 5000, text: 'open', jsonText: '{"a": [1]}' }),
  ],
  SCHED_EVENTS: [
    { start: 100, cpu: 3, isSchedIn: 1, globalTid: globalTid(100, 100), threadState: 0, threadBlock: null },
    { start: 2000, cpu: 1, isSchedIn: 1, globalTid: globalTid(100, 100), threadState: 0, threadBlock: null },
    { start: 1000, cpu: 3, isSchedIn: 0, globalTid: globalTid(100, 100), threadState: 0, threadBlock: 5 },
    { start: 2600, cpu: 1, isSchedIn: 0, globalTid: globalTid(100, 100), threadState: 0, threadBlock: null },
  ],
  GPU_METRICS: [
    { timestamp: 300, typeId: 0x1_0000_0001, metricId: 4, value: 80 },
    { timestamp: 200, typeId: 0x1_0000_0001, metricId: 4, value: 75 },
  ],
  TARGET_INFO_GPU_METRICS: [{ typeId: 0x1_0000_0001, metricId: 4, metricName: 'SMs Active [Throughput %]' }],
  CUDA_GPU_MEMORY_USAGE_EVENTS: [
    { start: 900, globalPid: globalTid(100, 0), deviceId: 0, bytes: 1000, memoryOperationType: 1 },
    { start: 400, globalPid: globalTid(100, 0), deviceId: 0, bytes: 5_000_000_000, memoryOperationType: 0 },
    { start: 300, globalPid: globalTid(100, 0), deviceId: 0, bytes: 1000, memoryOperationType: 0 },
  ],
  DIAGNOSTIC_EVENT: [
    { timestamp: -18_602_805_018, severity: 1, text: 'Process was launched, see /tmp/nvidia/streams/pid_1' },
    { timestamp: 231, severity: 2, text: 'cuDNN symbols found in /home/somebody/lib/libcudnn.so' },
  ],
}

/** Rows of tables that a call may have beside the others. */
export const rows = { kernel, call, nvtx, text }
