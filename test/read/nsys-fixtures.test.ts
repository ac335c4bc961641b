import { describe, expect, test } from '@jest/globals'
import { summarize } from '../../lib/index.ts'
import { openTrace } from '../../lib/node.ts'
import { sniffFormat } from '../../lib/read/index.ts'
import { attempt, importFaults } from '../line/hostile.ts'
import { converted, plainBytes, randomOf } from '../line/support.ts'
import { inLong, inParts, isLong } from '../long.ts'
import { ZERO_NS } from '../origin.ts'
import * as figures from './nsys-figures.ts'
import { drawnLaunches } from './nsys-launches.ts'
import { reportOf } from './reports.ts'

/** Cuts of real reports: the trace tells what SQL on the report tells; and damage of all kinds. */

const REPORTS = ['nsys/one-gpu.sqlite.gz', 'nsys/two-processes.sqlite.gz']
/** Times that a report is damaged. */
const DAMAGED = isLong ? 120 : 40
const JAX = plainBytes('nsys-nvtx-trace/jax.csv')

describe.each(REPORTS)('%s', (fixture) => {
  const bytes = plainBytes(fixture)

  test('has what the tables have: rows, launches, projections, as real SQLite has them', async () => {
    const trace = await converted(bytes, { osRuntime: true })
    const told = figures.withReport(bytes, (db) => {
      figures.makeLaunches(db)
      const [projections, running] = [figures.toldProjections(db), figures.toldRunning(db)]
      return { ...figures.told(db), launches: figures.toldLaunches(db), projections, running }
    })
    const open = await openTrace(trace)
    const drawn = {
      ...figures.drawn(open, Object.keys(told.figures)),
      ...{ projections: figures.drawnProjections(open), running: figures.drawnRunning(open) },
    }
    expect(open.problems()).toEqual([])
    expect(open.query("SELECT name FROM track WHERE name GLOB '*(2)'").rows).toEqual([])
    open.close()
    expect({ ...drawn, launches: drawnLaunches(trace) }).toEqual(told)
    expect(told.launches.length).toBeGreaterThan(90)
  })

  test('no issue is made up', async () => {
    expect((await summarize({ name: fixture, source: bytes }, { osRuntime: true })).issues).toEqual([])
  })

  inLong(test)('damaged anywhere, it ends in a sound trace or in a message', async () => {
    const traces = await damaged(bytes, DAMAGED, { osRuntime: true })
    expect(traces.length).toBeGreaterThan(DAMAGED / 2)
    for (const trace of traces.slice(0, 3)) expect(await importFaults(trace, true)).toEqual([])
  })
})

/** Traces of what is left after bytes were changed, pages overwritten and ends cut off. */
async function damaged(bytes: Uint8Array, count: number, options = {}): Promise<Uint8Array[]> {
  const random = randomOf(bytes.length)
  const traces: Uint8Array[] = []
  for (let i = 0; i < count; i++) {
    const at = Math.floor(random() * bytes.length)
    const copy = i % 3 === 0 ? bytes.slice(0, at) : bytes.slice()
    if (i % 3 === 1) copy[at]! ^= 1 << Math.floor(random() * 8)
    if (i % 3 === 2) for (let j = at; j < Math.min(at + 300, copy.length); j++) copy[j] = Math.floor(random() * 256)
    const { trace } = await attempt(copy, `damage ${i % 3} at ${at}`, options)
    if (trace) traces.push(trace)
  }
  return traces
}

inLong(test)('each byte of the first page changed, and a small report cut at many places', async () => {
  const bytes = reportOf({}, 'PRAGMA page_size=512')
  for (let at = 0; at < 512; at++) {
    const copy = bytes.slice()
    // The head of the file and of its first page: each byte both ways.
    if (at < 120 || at % 2 === 0) {
      copy[at]! ^= 1 << (at & 7)
      await attempt(copy, `byte ${at} changed`)
    }
    copy[at] = 0xff
    if (at < 120 || at % 2 === 1) await attempt(copy, `byte ${at} is 255`)
  }
  for (let length = 0; length < bytes.length; length += 193) await attempt(bytes.slice(0, length), `cut to ${length}`)
})

test('a page that is its own child, and overflow pages in a circle, end', async () => {
  const long = 'x'.repeat(5000)
  const bytes = reportOf({ StringIds: [{ id: 0, value: long }] }, 'PRAGMA page_size=512')
  for (let page = 1; page * 512 < bytes.length; page++) {
    const copy = bytes.slice()
    new DataView(copy.buffer).setUint32(page * 512, page + 1) // as an overflow page, it goes on in itself
    new DataView(copy.buffer).setUint32(page * 512 + 8, page + 1) // as an inner page, it is its own last child
    await attempt(copy, `page ${page + 1} points to itself`)
  }
})

describe('CSV reports', () => {
  const HEADER =
    'Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),Bytes (MB),' +
    'Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,GreenCtx,Strm,Name\n'
  const ROWS =
    '1949099896,3552,142,,,,,,,,,,0.038,10594.575,Pageable,Device,NVIDIA RTX A4500 (0),1,,7,[CUDA memcpy Host-to-Device]\n' +
    '1959533099,1632,209,64,2,1,128,1,1,16,0.000,0.000,,,,,NVIDIA RTX A4500 (0),1,,7,"void gemm<float, 4>(T1, T2)"\n' +
    '1959540000,512,210,,,,,,,,,,0.004,1,Device,,NVIDIA RTX A4500 (1),2,,13,[CUDA memset]\n'
  const bytes = (text: string) => new TextEncoder().encode(text)

  const work = async (source: Uint8Array) => {
    const trace = await openTrace(await converted(source))
    const { rows } =
      trace.query(`SELECT s.name, ts + ${ZERO_NS}, dur, extract_arg(arg_set_id, 'kind'), submission_id, t.name
      FROM gpu_slice s JOIN track t ON t.id = track_id ORDER BY ts`)
    expect(trace.problems()).toEqual([])
    trace.close()
    return rows
  }
  const EXPECTED = [
    ['[CUDA memcpy Host-to-Device]', 1949099896, 3552, 'memcpy', 142, 'stream 7'],
    ['void gemm<float, 4>(T1, T2)', 1959533099, 1632, 'kernel', 209, 'stream 7'],
    ['[CUDA memset]', 1959540000, 512, 'memset', 210, 'stream 13, ctx 2'],
  ]

  test('cuda_gpu_trace, with what nsys says before it, and in other units', async () => {
    expect(await work(bytes(HEADER + ROWS))).toEqual(EXPECTED)
    const preamble = '\nProcessing [x.sqlite] with [cuda_gpu_trace.py]... \n\n'
    expect(await work(bytes(preamble + (HEADER + ROWS).replaceAll('\n', '\r\n')))).toEqual(EXPECTED)
    const inMicros = ROWS.replace(/^(\d+)(\d{3}),(\d*?)(\d{3}),/gm, '$1.$2,$3.$4,').replaceAll(',.', ',0.')
    const header = HEADER.replaceAll('(ns)', '(us)')
      .replace('Throughput (MB/s)', 'Throughput (MBps)')
      .replace('GreenCtx,', '')
    const without = inMicros.replace(/,(\d),,(\d+),/g, ',$1,$2,')
    expect(await work(bytes(header + without))).toEqual(EXPECTED)
  })

  test('cuda_gpu_trace: a row that cannot be read is told of', async () => {
    const { issues } = await summarize({ name: 'csv', source: bytes(`${HEADER}${ROWS}nonsense\n`) })
    expect(issues.map(({ title, first }) => `${first.at.line}: ${title}`)).toEqual(['5: unreadable row'])
  })

  test('nvtx_pushpop_trace: ranges are nested as the report says', async () => {
    const trace = await openTrace(await converted(JAX))
    const found =
      trace.query(`SELECT s.name, ts + ${ZERO_NS}, dur, depth, extract_arg(arg_set_id, 'debug.domain'), t.name
      FROM slice s JOIN track t ON t.id = track_id WHERE category = 'nvtx' ORDER BY ts, depth`).rows
    trace.close()
    const lines = new TextDecoder().decode(JAX).trim().split('\n').slice(1)
    const told = lines.map((line) => {
      const [, start, end, name, tid, level] = /^(\d+),(\d+),.*?,"?TSL:(.*?)"?,\d+,(\d+),(\d+),/.exec(line) ?? []
      return [name, Number(start), Number(end) - Number(start), Number(level), 'TSL', `thread ${tid}: NVTX TSL`]
    })
    const order = (a: (typeof told)[number], b: (typeof told)[number]) =>
      Number(a[1]) - Number(b[1]) || Number(a[3]) - Number(b[3])
    expect(found).toEqual(told.sort(order))
  })

  test('are told from each other and from all else', () => {
    const named = (head: Uint8Array) => sniffFormat(head)?.name
    expect(named(bytes(HEADER))).toBe('nsys-gpu-trace')
    expect(named(JAX.subarray(0, 4096))).toBe('nsys-nvtx-trace')
    expect(named(plainBytes(REPORTS[0]!).subarray(0, 4096))).toBe('nsys')
    expect(named(plainBytes('profinfer-csv/tiny.csv').subarray(0, 4096))).toBe('profinfer-csv')
  })

  inParts(test)('damaged anywhere, they end in a sound trace or in a message', async () => {
    for (const report of [JAX.subarray(0, 6000), bytes(HEADER + ROWS)]) {
      const traces = await damaged(report, DAMAGED)
      expect(traces.length).toBeGreaterThan(DAMAGED / 9)
      for (const trace of traces.slice(0, 2)) expect(await importFaults(trace, true)).toEqual([])
    }
  })
})
