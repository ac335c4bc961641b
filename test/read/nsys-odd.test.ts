import { describe, expect, test } from '@jest/globals'
import { describeFinding } from '../../bin/findings.ts'
import { analyze, summarize } from '../../lib/index.ts'
import { openTrace } from '../../lib/node.ts'
import { attempt, type Outcome } from '../line/hostile.ts'
import { converted, plainBytes } from '../line/support.ts'
import { ZERO_NS } from '../origin.ts'
import { drawn, type Shown } from '../printing-sink.ts'
import type { Row } from './databases.ts'
import { globalTid, reportOf, rows, SESSION_NS, type Tables, WHOLE } from './reports.ts'

/** Reports of Nsight Systems as some versions and options of it make them, and as none does. */

async function answers(report: Uint8Array, ...queries: string[]) {
  const trace = await openTrace(await converted(report))
  try {
    expect(trace.problems()).toEqual([])
    return queries.map((query) => trace.query(query).rows)
  } finally {
    trace.close()
  }
}
const linesOf = (report: Uint8Array, shown: Shown) => drawn({ name: 'report', source: report }, {}, shown)
const summaryOf = (report: Uint8Array) => summarize({ name: 'report', source: report })
const issuesOf = async (report: Uint8Array) =>
  (await summaryOf(report)).issues.map(({ title, count, first }) => ({ title, count, detail: first.detail }))

const EVENTS: Row = {
  ...{ timestamp: 700, deviceId: 0, contextId: 1, streamId: 7, correlationId: 3, globalPid: globalTid(100, 0) },
  ...{ eventId: 5, eventSyncId: 6 },
}

/** All columns of times moved. */
const moved = (tables: Tables, byNs: bigint): Tables =>
  Object.fromEntries(
    Object.entries(tables).map(([table, list]) => {
      const move = (row: Row) =>
        Object.fromEntries(
          Object.entries(row).map(([column, value]) => [
            column,
            /^(?:start|end|timestamp)$/.test(column) && value !== null ? BigInt(value) + byNs : value,
          ]),
        )
      return [table, list.map(move)]
    }),
  )

test('a thread without a name is called as its process: a program without its folders, a kernel thread by its whole name', async () => {
  const named = (name: string) =>
    linesOf(reportOf({ PROCESSES: [{ globalPid: globalTid(101, 0), pid: 101, name }] }), { rows: /101: CUDA API$/ })
  expect(await named('/home/somebody/bin/serve')).toEqual(['serve 101: CUDA API | 1200–1300 cudaLaunchKernel'])
  expect(await named('kworker/u8:1')).toEqual(['kworker/u8:1 101: CUDA API | 1200–1300 cudaLaunchKernel'])
})

describe('times', () => {
  const SLICES = `SELECT name, ts + ${ZERO_NS}, dur FROM slice WHERE category != 'issue' OR category IS NULL ORDER BY ts, dur, name`
  const COUNTERS = `SELECT ts + ${ZERO_NS}, value FROM counter ORDER BY ts, value`

  test('since 1970 (nsys export --ts-normalize) are the same, to the nanosecond', async () => {
    const whole = { ...WHOLE, CUPTI_ACTIVITY_KIND_CUDA_EVENT: [EVENTS] }
    const [since, normal] = [reportOf(moved(whole, SESSION_NS)), reportOf(whole)]
    expect(await answers(since, SLICES, COUNTERS)).toEqual(await answers(normal, SLICES, COUNTERS))
    expect((await summaryOf(since)).issues).toEqual((await summaryOf(normal)).issues)
  })

  test('before the session began are drawn where it is told when that was', async () => {
    const early = reportOf({ CUPTI_ACTIVITY_KIND_KERNEL: [rows.kernel(100, -3000, -1000, 1)] })
    const [kernels] = await answers(early, `SELECT ts + ${ZERO_NS}, dur FROM gpu_slice WHERE name = 'gemm'`)
    expect(kernels).toEqual([[SESSION_NS - 3000n, 2000]])
    const loose = reportOf({
      CUPTI_ACTIVITY_KIND_KERNEL: [rows.kernel(100, -3000, -1000, 1), rows.kernel(100, 3000, 3500, 2)],
      TARGET_INFO_SESSION_START_TIME: [],
    })
    const [found] = await answers(loose, `SELECT ts + ${ZERO_NS}, dur FROM gpu_slice WHERE name = 'gemm'`)
    expect(found).toEqual([[3000, 500]])
    expect((await issuesOf(loose)).map(({ title, count }) => [title, count])).toContainEqual([
      'row before the session',
      1,
    ])
  })

  test('that cannot be are told of, of CUDA events as well', async () => {
    const events = [{ ...EVENTS, timestamp: 2n ** 62n }, { ...EVENTS, timestamp: 0 }, EVENTS]
    const issues = await issuesOf(reportOf({ CUPTI_ACTIVITY_KIND_CUDA_EVENT: events }))
    expect(issues.map(({ title, count }) => [title, count])).toEqual(
      expect.arrayContaining([
        ['event without a time', 1],
        ['CUDA events without a time', 1],
      ]),
    )
  })
})

describe('names', () => {
  test('of calls lose the version of CUDA, not that of the function', async () => {
    const calls = ['cudaStreamGetCaptureInfo_v2_v11030', 'cublasCreate_v2', 'cudaLaunchKernel_v7000']
    const report = reportOf({
      CUPTI_ACTIVITY_KIND_RUNTIME: calls.map((name, i) => rows.call(100, 100 * i, 100 * i + 9, name, i)),
    })
    expect(await linesOf(report, { rows: /: CUDA API$/ })).toEqual([
      'main 100: CUDA API | 0–9 cudaStreamGetCaptureInfo_v2',
      'main 100: CUDA API | 100–109 cublasCreate_v2',
      'main 100: CUDA API | 200–209 cudaLaunchKernel',
    ])
  })

  test('of rows of waits are of the GPU whose stream it is: nsys records device 0 for all waits', async () => {
    const wait = (pid: number, start: number, contextId: number, streamId: number) => {
      const place = { deviceId: 0, contextId, streamId, correlationId: 9, globalPid: globalTid(pid, 0) }
      return { start, end: start + 50, ...place, syncType: 3, eventId: 4294967295 }
    }
    const report = reportOf({
      CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: [
        wait(100, 100, 1, 7),
        wait(101, 200, 1, 9),
        wait(101, 300, 1, 40),
        wait(101, 400, 2, 50),
      ],
      TARGET_INFO_CUDA_CONTEXT_INFO: [{ processId: 101, deviceId: 3, contextId: 2, nullStreamId: 50 }],
    })
    expect(await linesOf(report, { rows: /^GPU synchronization|waits/ })).toEqual([
      'GPU 0 waits: stream 7, pid 100 | 100–150 stream synchronize',
      'GPU 1 waits: stream 9, pid 101 | 200–250 stream synchronize',
      'GPU 1 waits: stream 40, pid 101 | 300–350 stream synchronize',
      'GPU 3 waits: 50 (default), ctx 2, pid 101 | 400–450 stream synchronize',
    ])
  })
})

describe('what is not drawn', () => {
  test('is told by table, where it has rows: known ones and those of versions to come', async () => {
    const { left_out } = await summaryOf(
      reportOf({
        CUPTI_ACTIVITY_KIND_TOMORROW: [
          { start: 1, end: 2 },
          { start: 2, end: 3 },
        ],
        NET_NIC_METRIC: [{ timestamp: 1, value: 2 }],
        TARGET_INFO_TOMORROW: [{ name: 'no event' }],
      }),
    )
    expect(left_out.map(({ what, count }) => [what, count])).toEqual([
      ['CUPTI_ACTIVITY_KIND_TOMORROW', 2],
      ['NET_NIC_METRIC', 1],
      ['OSRT_API', WHOLE['OSRT_API']!.length],
    ])
    expect(left_out.at(-1)!.hint).toContain('--osrt')
    expect((await summaryOf(reportOf({ OSRT_API: [] }))).left_out).toEqual([])
  })

  test('NVTX rows of unknown types are counted', async () => {
    const types = [76, 97, 98, 99, 72, 200, 200].map((eventType) => rows.nvtx({ start: 5, eventType }))
    const report = reportOf({ NVTX_EVENTS: [...WHOLE['NVTX_EVENTS']!, ...types] })
    const issues = await issuesOf(report)
    expect(issues.filter(({ title }) => title === 'NVTX rows of an unknown type')).toEqual([
      { title: 'NVTX rows of an unknown type', count: 1, detail: '2 rows, the first of type 200: not drawn' },
    ])
    const { left_out } = await summaryOf(report)
    expect(left_out).toContainEqual({ what: 'NVTX rows of type 76', count: 1 })
  })

  test('a payload that was exported as bytes is told to be there', async () => {
    const nvtx = { ...rows.nvtx({ start: 5, end: 9, text: 'x' }), binaryData: '\u0001\u0002' }
    const lines = await linesOf(reportOf({ NVTX_EVENTS: [nvtx] }), { rows: /NVTX/, args: ['payload_type'] })
    expect(lines).toEqual(['main 100: NVTX | 5–9 x {payload_type: unknown}'])
  })
})

test('what the profiler warned of has no paths, however they are written', async () => {
  const text = [
    "Loading '/home/Jane Doe/.venv/lib/a b.so' failed",
    'in /home/josé/x',
    'C:\\Users\\Jane\\run.exe',
    '~/secret/place',
    '"/a-path (x86)/jane/b"',
    'read/write is fine',
  ].join('; ')
  const [warned] = await issuesOf(reportOf({ DIAGNOSTIC_EVENT: [{ timestamp: 1, severity: 2, text }] }))
  expect(warned!.detail).not.toMatch(/jane|jos|doe|secret|\.so|place/i)
  expect(warned!.detail).toContain('failed')
  expect(warned!.detail).toContain('read/write is fine')
})

test('memory is counted by its kind', async () => {
  const allocation = (start: number, bytes: number, memKind: number | null): Row => ({
    ...{ start, globalPid: globalTid(100, 0), deviceId: 0, bytes, memoryOperationType: 0, memKind },
  })
  const report = reportOf({
    CUDA_GPU_MEMORY_USAGE_EVENTS: [allocation(1, 10, 2), allocation(2, 20, 1), allocation(3, 5, 2)],
  })
  expect(await linesOf(report, { rows: /memory/ })).toEqual([
    'GPU 0: memory allocated by process 100 | 1 = 10',
    'GPU 0: memory allocated by process 100 | 3 = 15',
    'GPU 0: pinned memory allocated by process 100 | 2 = 20',
  ])
})

test('devices and contexts have the names that the program gave them, and GPUs are told apart by what they are', async () => {
  const [found] = await answers(
    reportOf({
      TARGET_INFO_NVTX_CUDA_CONTEXT: [{ name: 'serving', processId: 100, deviceId: 0, contextId: 1 }],
      TARGET_INFO_NVTX_CUDA_STREAM: [{ name: 'copies', processId: 100, contextId: 1, streamId: 8 }],
    }),
    `SELECT DISTINCT t.name FROM gpu_slice JOIN track t ON t.id = track_id ORDER BY 1`,
  )
  expect(found).toEqual([['8 (copies), serving, pid 100'], ['stream 7, serving, pid 100'], ['stream 9, pid 101']])
})

test('names of queues have at most 28 characters, the stream first; the description has names that are too long for that', async () => {
  const context = 'inference on the first GPU'
  const [found] = await answers(
    reportOf({
      TARGET_INFO_NVTX_CUDA_CONTEXT: [{ name: context, processId: 100, deviceId: 0, contextId: 1 }],
      TARGET_INFO_NVTX_CUDA_STREAM: [
        { name: 'copies of the KV cache', processId: 100, contextId: 1, streamId: 8 },
        { name: 'compute', processId: 101, contextId: 1, streamId: 9 },
      ],
    }),
    `SELECT DISTINCT t.name, extract_arg(t.source_arg_set_id, 'description') FROM gpu_slice JOIN track t ON t.id = track_id ORDER BY 1`,
  )
  expect(found!.map(([name]) => name)).toEqual([
    ...['stream 7, ctx 1, pid 100', 'stream 8, ctx 1, pid 100'],
    'stream 9 (compute), pid 101',
  ])
  expect(found!.map(([, description]) => description)).toEqual([
    expect.stringContaining(`Context 1, ${context}. Process 100.`),
    expect.stringContaining(`Stream copies of the KV cache. Context 1, ${context}. Process 100.`),
    expect.stringContaining('Stream compute. Context 1. Process 101.'),
  ])
})

test('rows that claim to go on in a circle of pages for ever take no memory', async () => {
  const bytes = reportOf({ StringIds: [{ id: 0, value: 'x'.repeat(40_000) }] }, 'PRAGMA page_size=512')
  const view = new DataView(bytes.buffer)
  const pages = Array.from({ length: bytes.length / 512 - 1 }, (_, i) => i + 2)
  const isOverflow = (page: number) => bytes.subarray((page - 1) * 512 + 4, page * 512).every((byte) => byte === 120)
  const circle = pages.find(isOverflow)!
  const leaf = pages.find((page) => bytes[(page - 1) * 512] === 13 && bytes[page * 512 - 5] === 120)!
  view.setUint32((circle - 1) * 512, circle)
  const at = (leaf - 1) * 512
  // As many cells as fit, all the same one, whose payload is said to be 60 MB.
  view.setUint16(at + 3, 100)
  for (let cell = 0; cell < 100; cell++) view.setUint16(at + 8 + 2 * cell, 300)
  bytes.set([0x9c, 0xce, 0x90, 0x71, 1], at + 300)
  view.setUint32(at + 300 + 5 + 39, circle)
  const { trace, summary } = (await attempt(bytes, 'endless payloads')) as Extract<Outcome, { trace: Uint8Array }>
  expect(trace.length).toBeGreaterThan(0)
  expect(summary.issues.find(({ title }) => title === 'damaged file')).toMatchObject({ count: expect.any(Number) })
})

describe('numbers of GPUs and processes', () => {
  const REPORT = { name: 'report', source: plainBytes('nsys/gpu-without-id.sqlite.gz') }

  test('a GPU whose number is in another column has that number', async () => {
    expect((await summarize(REPORT)).attributes['gpus']).toBe('0 GPU Example')
  })

  test.each<[string, Row, string | undefined]>([
    ['no number', { name: 'GPU Example' }, 'GPU Example'],
    ['no name', { id: 1, name: null }, '1'],
    ['neither', { busLocation: '0000:02:00.0', name: null }, undefined],
  ])('a GPU with %s', async (_, row, shown) => {
    const { attributes } = await summaryOf(reportOf({ ...WHOLE, TARGET_INFO_GPU: [row] }))
    expect(attributes['gpus']).toBe(shown)
  })

  test('evidence has the whole number of the process', async () => {
    const { findings } = await analyze(REPORT)
    const lines = findings.flatMap((finding) => describeFinding(finding, 1, 'query'))
    expect(lines.join('\n')).toMatch(/measured: device 0, pid 1125204, launches 98\.0 %, host wait /)
  })
})
