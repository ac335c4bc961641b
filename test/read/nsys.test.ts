import { writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from '@jest/globals'
import { type ConvertOptions, convert, summarize } from '../../lib/index.ts'
import { inputOf, openTrace } from '../../lib/node.ts'
import { converted } from '../line/support.ts'
import { inParts, someOf } from '../long.ts'
import { ZERO_NS } from '../origin.ts'
import { makeLaunches, toldLaunches, withReport } from './nsys-figures.ts'
import { drawnLaunches } from './nsys-launches.ts'
import { globalTid, reportOf, rows, SESSION_NS, WHOLE } from './reports.ts'

/** Reports of Nsight Systems through the library, read back by trace_processor. */

type Cells = readonly unknown[]

async function asking<T>(
  bytes: Uint8Array,
  ask: (sql: (text: string) => readonly Cells[]) => T,
  options: ConvertOptions = {},
): Promise<T> {
  const trace = await openTrace(await converted(bytes, options))
  try {
    expect(trace.problems()).toEqual([])
    return ask((text) => trace.query(text).rows)
  } finally {
    trace.close()
  }
}

const SINCE = `ts + ${ZERO_NS} - ${SESSION_NS}`
const titles = async (bytes: Uint8Array, options = {}) =>
  (await summarize({ name: 'report', source: bytes }, options)).issues.map(({ title, count }) => `${count} × ${title}`)

describe('a whole report', () => {
  const report = reportOf()

  test('GPU work is on queues, by stream, with its arguments', async () => {
    const work = await asking(report, (sql) => [
      sql(`SELECT s.name, ${SINCE}, dur, submission_id, extract_arg(arg_set_id, 'kind'), t.name, upid IS NOT NULL
        FROM gpu_slice s JOIN track t ON t.id = track_id ORDER BY ts`),
      sql(`SELECT extract_arg(arg_set_id, 'grid'), extract_arg(arg_set_id, 'block'), extract_arg(arg_set_id, 'registers'),
        extract_arg(arg_set_id, 'shared_bytes') FROM gpu_slice WHERE name = 'gemm' LIMIT 1`),
      sql(`SELECT extract_arg(arg_set_id, 'bytes'), extract_arg(arg_set_id, 'from'), extract_arg(arg_set_id, 'to')
        FROM gpu_slice WHERE extract_arg(arg_set_id, 'kind') = 'memcpy'`),
    ])
    const stream = (id: number, pid: number) => `stream ${id}, pid ${pid}`
    expect(work).toEqual([
      [
        ['gemm', 2000, 2000, 1, 'kernel', stream(7, 100), 1],
        ['gemm', 2500, 1000, 1, 'kernel', stream(9, 101), 1],
        ['[CUDA memcpy Host-to-Device]', 4100, 800, 3, 'memcpy', stream(8, 100), 1],
        ['gemm', 5000, 4000, 2, 'kernel', stream(7, 100), 1],
      ],
      [['64x2x1', '256x1x1', '40', '1536']],
      [['4096', 'pinned', 'device']],
    ])
  })

  test('calls are on their threads, each with what it launched in its own process', async () => {
    const calls = await asking(report, (sql) =>
      sql(`SELECT t.name, s.name, ${SINCE}, dur, extract_arg(arg_set_id, 'debug.correlation'),
        extract_arg(arg_set_id, 'debug.gpu_work'), extract_arg(arg_set_id, 'debug.result')
        FROM slice s JOIN track t ON t.id = track_id WHERE category = 'api' ORDER BY ts`),
    )
    expect(calls).toEqual([
      ['main 100: CUDA API', 'cudaLaunchKernel', 1000, 400, 1, 1, 700],
      ['serve 101: CUDA API', 'cudaLaunchKernel', 1200, 100, 1, 1, null],
      ['main 100: CUDA API', 'cudaLaunchKernel', 1500, 100, 2, 1, null],
      ['main 100: CUDA API', 'cudaMemcpyAsync', 3000, 100, 3, 1, null],
    ])
  })

  test('each piece of work is joined with the call of its own process', async () => {
    const launches = withReport(report, (db) => {
      makeLaunches(db)
      return toldLaunches(db)
    })
    expect(launches).toEqual(['100 100 1 2000', '100 100 2 4000', '100 100 3 800', '101 101 1 1000'])
    expect(drawnLaunches(await converted(report))).toEqual(launches)
  })

  test('NVTX: domains, categories, registered texts, colours, payloads, ranges across threads and open ones', async () => {
    const ranges = await asking(report, (sql) =>
      sql(`SELECT s.name, ${SINCE}, dur, depth, extract_arg(arg_set_id, 'debug.domain'),
        extract_arg(arg_set_id, 'debug.category'), extract_arg(arg_set_id, 'debug.color'),
        extract_arg(arg_set_id, 'debug.payload'), extract_arg(arg_set_id, 'debug.end_tid')
        FROM slice s WHERE category = 'nvtx' ORDER BY ts`),
    )
    const none = null
    expect(ranges).toEqual([
      ['request', 800, 5200, 0, none, none, none, none, 105],
      ['request', 850, 6150, 0, none, none, none, 2n ** 60n, none],
      ['outer', 900, 2600, 0, none, none, '#0000ff', '18446744073709551615', none],
      ['registered', 950, 2650, 0, 'engine', 'layers', '#ffd700', none, none],
      ['mark', 1100, 0, 1, none, none, none, -7, none],
      ['inner', 1450, 250, 1, none, none, none, 2.5, none],
      ['open', 5000, 4100, 0, none, none, none, '{"a": [1]}', none],
    ])
    expect(await titles(report)).toContain('1 × range without an end')
  })

  test('each NVTX range has its projection on the GPU', async () => {
    const projected = await asking(report, (sql) =>
      sql(`SELECT s.name, ${SINCE}, dur, depth, extract_arg(arg_set_id, 'debug.gpu_work'),
        extract_arg(arg_set_id, 'debug.busy_ns'), t.name FROM slice s JOIN track t ON t.id = track_id
        WHERE category = 'nvtx_gpu' ORDER BY t.name, ts, depth`),
    )
    expect(projected).toEqual([
      ['registered', 2000, 7000, 0, 3, 6800, 'main 100: NVTX engine on the GPU'],
      ['request', 2000, 7000, 0, 3, 6800, 'main 100: NVTX on the GPU'],
      ['request', 2000, 7000, 1, 3, 6800, 'main 100: NVTX on the GPU'],
      ['outer', 2000, 7000, 2, 3, 6800, 'main 100: NVTX on the GPU'],
      ['inner', 5000, 4000, 3, 1, 4000, 'main 100: NVTX on the GPU'],
    ])
  })

  test('waits, states of threads, metrics and memory', async () => {
    const found = await asking(report, (sql) => [
      sql(`SELECT s.name, ${SINCE}, dur, t.name FROM slice s JOIN track t ON t.id = track_id WHERE category = 'sync'`),
      sql(`SELECT name, ${SINCE}, dur FROM slice WHERE category = 'state' ORDER BY ts`),
      sql(
        `SELECT t.name, ${SINCE}, value FROM counter c JOIN track t ON t.id = track_id WHERE t.name != 'at the top' ORDER BY t.name, ts`,
      ),
    ])
    const memory = 'GPU 0: memory allocated by process 100'
    expect(found).toEqual([
      [['stream synchronize', 8000, 1100, 'GPU 0 waits: stream 7, pid 100']],
      [
        ['running on CPU 3', 100, 900],
        ['blocked', 1000, 1000],
        ['running on CPU 1', 2000, 600],
      ],
      [
        [memory, 300, 1000],
        [memory, 400, 5_000_001_000],
        [memory, 900, 5_000_000_000],
        ['GPU 1: SMs Active [Throughput %]', 200, 75],
        ['GPU 1: SMs Active [Throughput %]', 300, 80],
      ],
    ])
  })

  test('the OS runtime on request only', async () => {
    const sql = `SELECT s.name, ${SINCE}, dur FROM slice s WHERE s.name = 'poll'`
    expect(await asking(report, (ask) => ask(sql))).toEqual([])
    expect(await asking(report, (ask) => ask(sql), { osRuntime: true })).toEqual([['poll', 500, 200]])
  })

  test('neither host nor paths get into the trace', async () => {
    for (const to of ['perfetto', 'json'] as const) {
      const trace = Buffer.from(await converted(report, { to, detail: 'full', osRuntime: true })).toString('latin1')
      expect(trace).not.toMatch(/secret-host|somebody|\/tmp|libcudnn/)
      expect(trace).toContain('cuDNN symbols found in <path>')
    }
  })

  test('Chrome JSON has the same slices, GPU work included', async () => {
    const sql = `SELECT name, dur, category FROM slice WHERE ifnull(category, '') NOT IN ('issue', 'gpu_busy') ORDER BY ts, dur DESC, name`
    const json = await asking(report, (ask) => ask(sql), { to: 'json' })
    const perfetto = await asking(report, (ask) => ask(sql.replace('category,', "ifnull(category, 'gpu'),")))
    expect(json.map(([name, dur]) => [name, dur])).toEqual(perfetto.map(([name, dur]) => [name, dur]))
    expect(json.filter(([, , category]) => category === 'gpu')).toHaveLength(4)
  })

  test('is the same from a file, a stream, a Blob and compressed', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'ggml2perfetto-nsys-'))
    try {
      const path = join(folder, 'report.sqlite')
      writeFileSync(path, report)
      const zipped = `${path}.gz`
      writeFileSync(zipped, gzipSync(report))
      const whole = Buffer.from(await converted(report))
      const of = async (input: Parameters<typeof convert>[0]) => {
        const pieces: Uint8Array[] = []
        for await (const piece of convert(input)) pieces.push(piece)
        return Buffer.concat(pieces)
      }
      const stream = (async function* () {
        for (let at = 0; at < report.length; at += 1000) yield report.subarray(at, at + 1000)
      })()
      for (const input of [inputOf(path), inputOf(zipped), { name: 'stream', source: stream }]) {
        expect((await of(input)).equals(whole)).toBe(true)
      }
      expect((await of({ name: 'blob', source: new Blob([report as Uint8Array<ArrayBuffer>]) })).equals(whole)).toBe(
        true,
      )
    } finally {
      await rm(folder, { recursive: true })
    }
  })
})

describe('what may be otherwise', () => {
  test('rows in any order give the same slices', async () => {
    const sql = `SELECT s.name, ts, dur, depth, category, t.name FROM slice s JOIN track t ON t.id = track_id
      WHERE category IS NOT NULL ORDER BY t.name, ts, depth, s.name`
    const reversed = Object.fromEntries(Object.entries(WHOLE).map(([name, list]) => [name, [...list].reverse()]))
    const [straight, back] = [reportOf(), reportOf(reversed)]
    expect(await asking(back, (ask) => ask(sql))).toEqual(await asking(straight, (ask) => ask(sql)))
  })

  inParts(test)('every table may be missing', async () => {
    const tables = Object.keys(WHOLE).filter((table) => table !== 'StringIds')
    for (const table of someOf(tables, 6)) {
      const missing = reportOf({ [table]: [] })
      await asking(missing, (sql) => expect(sql('SELECT count(*) FROM slice')[0]![0]).toBeGreaterThan(5))
    }
  })

  test('columns may be missing, and the table of facts has another name in older reports', async () => {
    const kernels = WHOLE['CUPTI_ACTIVITY_KIND_KERNEL']!.map(({ start, end, streamId, shortName }) => {
      return { shortName: shortName!, end: end!, start: start!, streamId: streamId! }
    })
    const older = reportOf({
      ...{ CUPTI_ACTIVITY_KIND_KERNEL: kernels, META_DATA_EXPORT: [] },
      EXPORT_META_DATA: [{ name: 'EXPORT_SCHEMA_VERSION', value: '3.1.2' }],
    })
    const { attributes } = await summarize({ name: 'older', source: older })
    expect(attributes).toMatchObject({ schema_version: '3.1.2' })
    await asking(older, (sql) => {
      expect(sql(`SELECT name, ${SINCE}, dur, submission_id FROM gpu_slice WHERE name = 'gemm' ORDER BY ts`)).toEqual([
        ['gemm', 2000, 2000, expect.anything()],
        ['gemm', 2500, 1000, expect.anything()],
        ['gemm', 5000, 4000, expect.anything()],
      ])
    })
  })

  test('without a session start, times count from zero, on a clock that is not told', async () => {
    const loose = reportOf({ TARGET_INFO_SESSION_START_TIME: [] })
    const kernels = await asking(loose, (sql) => sql(`SELECT ts + ${ZERO_NS}, dur FROM gpu_slice ORDER BY ts`))
    expect(kernels).toEqual([
      [2000, 2000],
      [2500, 1000],
      [4100, 800],
      [5000, 4000],
    ])
  })

  test('kernels inside CUDA graphs are missed, whether the graphs were recorded or not', async () => {
    const launch = rows.call(100, 4000, 4050, 'cudaGraphLaunch_v10000', 50)
    const calls = [...WHOLE['CUPTI_ACTIVITY_KIND_RUNTIME']!, launch]
    const graph = {
      ...{ start: 9000, end: 9500, deviceId: 0, contextId: 1, streamId: 7, correlationId: 50 },
      ...{ globalPid: globalTid(100, 0), graphId: 3, graphExecId: 4 },
    }
    const graphs = { CUPTI_ACTIVITY_KIND_RUNTIME: calls, CUPTI_ACTIVITY_KIND_GRAPH_TRACE: [graph] }
    expect(await titles(reportOf(graphs))).toContain('1 × kernels hide inside CUDA graphs')
    expect(await titles(reportOf({ CUPTI_ACTIVITY_KIND_RUNTIME: calls }))).toContain(
      '1 × kernels hide inside CUDA graphs',
    )
    expect(await titles(reportOf())).not.toContain('1 × kernels hide inside CUDA graphs')
    const kinds = await asking(reportOf(graphs), (sql) =>
      sql("SELECT name, dur FROM gpu_slice WHERE extract_arg(arg_set_id, 'kind') = 'graph'"),
    )
    expect(kinds).toEqual([['CUDA graph', 500]])
  })

  test('rows without times are told of, one by one', async () => {
    const kernels = [...WHOLE['CUPTI_ACTIVITY_KIND_KERNEL']!, { ...rows.kernel(100, 0, 1, 90), start: null }]
    const backwards = rows.call(100, 5000, 4000, 'cudaLaunchKernel_v7000', 91)
    const damaged = reportOf({
      CUPTI_ACTIVITY_KIND_KERNEL: kernels,
      CUPTI_ACTIVITY_KIND_RUNTIME: [...WHOLE['CUPTI_ACTIVITY_KIND_RUNTIME']!, backwards],
    })
    expect(await titles(damaged)).toEqual(
      expect.arrayContaining(['1 × event without a time', '1 × event without an end']),
    )
  })

  test('a report that was not exported is refused, and it is said how to export it', async () => {
    const source = new TextEncoder().encode('closed')
    await expect(summarize({ name: 'run.nsys-rep', source })).rejects.toThrow(
      /^run\.nsys-rep: not a known format.*\nhint: nsys export --type sqlite converts it into a file that can be read$/s,
    )
  })

  test('a database of something else is refused, and says what was found', async () => {
    const other = reportOf({ ...Object.fromEntries(Object.keys(WHOLE).map((name) => [name, []])), books: [{ id: 1 }] })
    await expect(converted(other)).rejects.toThrow(
      'nsys: byte 0 (0x0): expected the table StringIds, found the tables books\nhint: nsys export --type sqlite',
    )
  })
})
