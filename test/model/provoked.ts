import { gzipSync } from 'node:zlib'
import type { ConvertOptions, Input, Names } from '../../lib/index.ts'
import type { IssueCode } from '../../lib/model/issues.ts'
import { plainBytes } from '../line/support.ts'
import { addTable, databaseOf } from '../read/databases.ts'
import { atraceOf, zip } from '../read/packed.ts'
import { globalTid, reportOf, rows, type Tables, WHOLE } from '../read/reports.ts'
import { input, inputEvent, switchOf } from '../sched/schedule.ts'

/** What provokes an issue: one input or several, and options. */
export type Provocation = Input | readonly [inputs: readonly Input[], options?: ConvertOptions]
export type Provocations = Partial<Readonly<Record<IssueCode, () => Provocation>>>

export const textInput = (text: string, name = 'log'): Input => ({ name, source: new TextEncoder().encode(text) })
export const fixture = (name: string): Input => ({ name, source: plainBytes(name) })

/** Chrome JSON: an object with a list of events. */
const chrome = (...events: object[]): Input => textInput(JSON.stringify({ traceEvents: events }))
const X = (name: string, ts: unknown, more = {}) => ({ ph: 'X', pid: 1, tid: 2, name, ts, dur: 1, ...more })
const many = (count: number, event: (i: number) => object) => Array.from({ length: count }, (_, i) => event(i))
const GOOD = JSON.stringify(X('good', 5))

/** A small report of Nsight Systems, with some tables replaced. */
const nsys = (changes: Tables): Input => ({ name: 'report', source: reportOf(changes) })
const KERNELS = 'CUPTI_ACTIVITY_KIND_KERNEL'
const cudaEvent = (timestamp: number) => ({
  ...{ timestamp, deviceId: 0, contextId: 1, streamId: 7, correlationId: 3, globalPid: globalTid(100, 0) },
  ...{ eventId: 5, eventSyncId: 6 },
})
/** A report with a view instead of a table. */
const viewed = (): Input => ({
  name: 'report',
  source: databaseOf((db) => {
    for (const [name, list] of Object.entries(WHOLE)) if (name !== KERNELS) addTable(db, name, list)
    db.exec(`CREATE VIEW ${KERNELS} AS SELECT 1`)
  }),
})
/** A report whose table of kernels has a page of no known kind. */
function damagedReport(): Input {
  const bytes = reportOf({ [KERNELS]: Array.from({ length: 200 }, (_, i) => rows.kernel(100, i * 10, i * 10 + 5, i)) })
  const pages = Array.from({ length: bytes.length / 1024 - 1 }, (_, i) => (i + 1) * 1024)
  const leaf = pages.findLast((at) => bytes[at] === 13 && bytes[at + 4]! > 5)!
  bytes[leaf] = 99
  return { name: 'report', source: bytes }
}

/** Records of TensorTrace of 1 024 bytes, in which one byte is another. */
const tensorTrace = (at: number, byte: number): Input => {
  const bytes = plainBytes('tensor-trace/tiny-v4.bin')
  bytes[at] = byte
  return { name: 'log', source: bytes }
}
const [PHASE, FIRST_MEMORY, EXPERT_COUNT] = [17, 152 + 142, 856]
/** More records than the reader holds back to put them in order, and one that is earlier than all but the first. */
function lateRecord(): Input {
  const record = plainBytes('tensor-trace/tiny-128.bin').subarray(0, 128)
  const firstNs = new DataView(record.buffer).getBigUint64(0, true)
  const bytes = new Uint8Array(128 * 4000)
  for (let i = 0; i < 4000; i++) {
    bytes.set(record, i * 128)
    new DataView(bytes.buffer).setBigUint64(i * 128, firstNs + BigInt(i === 3999 ? 1 : i * 1000), true)
  }
  return { name: 'log', source: bytes }
}
const SMI = 'timestamp, index, power.draw [W]\n'
const memoryMap = (...tensors: object[]): Input => textInput(JSON.stringify({ total_size_bytes: 1, tensors }), 'map')

const GRAPH = '{"nodes": [{"id": "n1", "operation": "x+y"}], "edges": [{"source": "n0", "target": "n1"}]}'

/** Events as a program makes them: a graph that lasts 10 s, a CPU that goes from one thread to another. */
const graph = (name: string, startNs: number) =>
  input(name, () => [{ kind: 'graph', startNs, endNs: startNs + 1e10, backend: 0, nodes: 1, call: 0, inferred: 0 }])
const turn = (names: Names, at: number, from: number, to: number) => switchOf(names, { cpu: 0, at, from, to })
const scheduler = (name: string) => input(name, (names) => [turn(names, 10, 0, 5), turn(names, 20, 5, 0)])

const inNamespace = input('a', () => [], inputEvent({ attributes: { pid: '1', pid_namespace: 'pid:[4026532178]' } }))

/** For each code, the smallest input that has it; those of ggtrace, ProfInfer and the kernel are in provoked-kernel.ts. */
export const PROVOKED: Provocations = {
  'other-files': () => {
    const content = plainBytes('ftrace/trace-marks.txt')
    return { name: 'log', source: zip({ content }, { name: 'b', content }) }
  },
  'broken-archive': () => ({ name: 'log', source: atraceOf(plainBytes('ftrace/trace-marks.txt')).subarray(0, -20) }),
  'broken-gzip': () => ({ name: 'log', source: gzipSync(plainBytes('profinfer-csv/tiny.csv')).subarray(0, -20) }),
  'inputs-apart': () => [[graph('a', 0), graph('b', 1e11)]],
  'pid-namespace': () => [[inNamespace, scheduler('b')]],
  'recorded-twice': () => [[scheduler('a'), scheduler('b')]],
  'impossible-time': () => chrome(X('good', 1), X('far', 1e14)),
  'profiles-without-kernel': () => [[fixture('ncu/details.csv'), fixture('nsys/one-gpu.sqlite.gz')]],
  'calls-without-time': () => fixture('blas-log/rocblas.log'),
  'unreadable-call': () => textInput('./rocblas-bench -f gemm -m 0 -n 1 -k 1\n'),
  'value-out-of-range': () => input('log', (names) => [{ ...turn(names, 10, 0, 5), cpu: 1e9 }]),
  'late-switch': () => input('log', (names) => [turn(names, 20, 0, 5), turn(names, 10, 5, 0)]),
  'lost-switches': () => input('log', (names) => [turn(names, 10, 0, 5), turn(names, 20, 6, 0)]),
  'call-failed': () => textInput('g2p clock boot\ng2p token 5 1 7 9 1 0\ng2p token 25 1 7 26 1 1\n'),
  'event-without-time': () => chrome(X('good', 1), X('timeless', undefined)),
  'event-without-end': () => chrome(X('good', 1), X('endless', 2, { dur: -1 })),
  'end-without-start': () => chrome(X('good', 1), { ph: 'E', pid: 1, tid: 2, ts: 13 }),
  'overlapping-work': () => nsys({ [KERNELS]: [rows.kernel(100, 0, 1000, 1), rows.kernel(100, 10, 20, 2)] }),
  'range-without-end': () => chrome(X('good', 1), { ph: 'B', pid: 1, tid: 2, ts: 13 }),
  'record-out-of-order': lateRecord,
  'late-record': () => textInput(SMI + ['09', '10', '01'].map((s) => `2025/10/01 10:00:${s}.000, 0, 50 W\n`).join('')),
  'torn-record': () => fixture('tensor-trace/torn-tail.bin'),
  'damaged-record': () => tensorTrace(1024 + FIRST_MEMORY, 2),
  'unreadable-row': () => textInput('Start (ns),Duration (ns),CorrId,Strm,Name\n5,6,1,7,gemm\n,6,1,7,gemm\n'),
  'unknown-op': () => fixture('tensor-trace/unknown-op.bin'),

  'json-damaged': () => textInput(`[${GOOD}, {"ph":"X","ts":@}, ${GOOD}]`),
  'json-without-end': () => textInput(`{"traceEvents":[${GOOD}`),
  'json-behind-end': () => textInput(`[${GOOD}] [`),
  'json-large-event': () => chrome(X('large', 1, { args: { text: 'x'.repeat(17 << 20) } }), X('good', 1)),
  'json-no-phase': () => chrome(X('good', 1), { name: 'what', ts: 1 }),
  'json-no-base-time': () => textInput(`{"schemaVersion":1,"traceEvents":[${GOOD}]}`),
  'too-many-open': () => chrome(...many(4097, (ts) => ({ ph: 'B', pid: 1, tid: 2, name: 's', ts }))),
  'late-begin-or-end': () =>
    chrome(...many(100_000, (i) => ({ ph: 'BE'[i % 2], tid: 2, ts: i + 10 })), { ph: 'B', tid: 2, ts: 1 }),

  'unread-table': viewed,
  'database-damaged': damagedReport,
  'row-before-session': () =>
    nsys({ [KERNELS]: [rows.kernel(100, -3000, -1000, 1)], TARGET_INFO_SESSION_START_TIME: [] }),
  'graph-kernels-hidden': () =>
    nsys({ CUPTI_ACTIVITY_KIND_RUNTIME: [rows.call(100, 10, 20, 'cudaGraphLaunch_v10000', 99)] }),
  'cuda-events-without-time': () => nsys({ CUPTI_ACTIVITY_KIND_CUDA_EVENT: [cudaEvent(0)] }),
  'nvtx-type-unknown': () => nsys({ NVTX_EVENTS: [rows.nvtx({ eventType: 200 })] }),
  'profiler-warning': () => nsys({ DIAGNOSTIC_EVENT: [{ timestamp: 231, severity: 2, text: 'some' }] }),
  'profiler-error': () => nsys({ DIAGNOSTIC_EVENT: [{ timestamp: 231, severity: 3, text: 'some' }] }),

  'log-hole': () => fixture('tensor-trace/hole.bin'),
  'unknown-phase': () => tensorTrace(1024 + PHASE, 7),
  'too-many-experts': () => tensorTrace(1024 + EXPERT_COUNT, 17),
  'other-weight': () => [
    [fixture('tensor-trace/tiny-v4.bin'), memoryMap({ name: 'other', offset_start: 4096, offset_end: 8192 })],
  ],
  'companion-entry': () => [[fixture('tensor-trace/tiny-v4.bin'), memoryMap({ name: 'a' })]],
  'graph-edge': () => [[fixture('tensor-trace/tiny-v4.bin'), textInput(GRAPH)]],
}
