import { describe, expect, test } from '@jest/globals'
import { FORMATS, summarize } from '../../lib/index.ts'
import { plainBytes } from '../line/support.ts'
import { alloc, json } from './companion-files.ts'
import { blocksOf, everyRecord } from './ggtrace-logs.ts'
import { reportOf } from './reports.ts'

/** A record of a kind that no version has, in a log of each format: it is counted as not drawn, or is an issue. It is never ignored. */

const encode = (text: string) => new TextEncoder().encode(text)
const textOf = (fixture: string) => new TextDecoder().decode(plainBytes(fixture))

/** A log, and the same one with the record. */
type Logs = readonly [log: Uint8Array, withRecord: Uint8Array]

/** A text with a line after line `after`. */
function withLine(fixture: string, line: string, after = -2): Logs {
  const lines = textOf(fixture).split('\n')
  return [plainBytes(fixture), encode([...lines.slice(0, after), line, ...lines.slice(after)].join('\n'))]
}

/** A text with another part in one place. */
function replaced(fixture: string, part: string | RegExp, by: string): Logs {
  const text = textOf(fixture)
  const changed = text.replace(part, by)
  if (changed === text) throw new Error(`${fixture} does not contain ${part}`)
  return [plainBytes(fixture), encode(changed)]
}

/** A text of which a letter in bytes is another, in all places. */
function renamed(fixture: string, name: string, by: string): Logs {
  const bytes = plainBytes(fixture)
  const changed = Buffer.from(bytes)
  for (let at = changed.indexOf(name); at >= 0; at = changed.indexOf(name, at + 1)) changed.write(by, at)
  return [bytes, new Uint8Array(changed)]
}

function perfData(): Logs {
  const bytes = plainBytes('perf-data/own-switches.data.gz')
  const changed = bytes.slice()
  const view = new DataView(changed.buffer)
  const [from, size] = [Number(view.getBigUint64(40, true)), Number(view.getBigUint64(48, true))]
  for (let at = from; at < from + size; at += view.getUint16(at + 6, true)) {
    if (view.getUint32(at, true) !== 14) continue
    view.setUint32(at, 5, true) // PERF_RECORD_THROTTLE
    break
  }
  return [bytes, changed]
}

const GPU_TRACE = 'Start (ns),Duration (ns),CorrId,Strm,Name\n5,6,1,7,gemm\n'
const MAP = { total_size_bytes: 9, tensors: [] as unknown[] }
const TIMELINE = { metadata: { peak_occupancy_bytes: 30 }, buffers: [] as unknown[] }
const GRAPH = { metadata: { total_nodes: 1, total_edges: 0 }, nodes: [] as unknown[], edges: [] }

/** By format. Those that complete a log are read with one. */
const LOGS: Readonly<Record<string, () => Logs>> = {
  ggtrace: () => {
    const blocks = blocksOf(everyRecord())
    return [Buffer.concat(blocks), Buffer.concat([...blocks, blocks[0]!])]
  },
  'trace-dat': () => renamed('trace-dat/mono-v6.dat.gz', 'name: sched_waking\n', 'name: other_waking\n'),
  'perf-data': perfData,
  nsys: () => [reportOf(), reportOf({ OSRT_FILE_ACCESS_EVENTS: [{ startedAt: 5, endedAt: 6, eventType: 1 }] })],
  'nsys-gpu-trace': () => [encode(GPU_TRACE), encode(`${GPU_TRACE}7,8,unknown\n`)],
  'nsys-nvtx-trace': () => withLine('nsys-nvtx-trace/jax.csv', 'unknown,row'),
  ncu: () => withLine('ncu/raw.csv', 'unknown,row'),
  rocprofv3: () =>
    replaced('rocprofv3/calls.json', '"memory_allocation":', '"unknown_records": [{"a":1}], "memory_allocation":'),
  power: () => withLine('power/power.csv', 'unknown'),
  'nvidia-smi': () => withLine('power/nvidia-smi.csv', 'unknown, row'),
  'nvidia-dmon': () => withLine('power/nvidia-dmon.txt', 'unknown row'),
  dcgm: () => withLine('power/dcgm.txt', 'unknown row'),
  'amd-smi': () => withLine('power/amd-smi.csv', 'unknown,row'),
  turbostat: () => withLine('power/turbostat.txt', 'unknown row'),
  tegrastats: () => replaced('power/tegrastats.txt', 'EMC_FREQ', 'UNKNOWN 7 EMC_FREQ'),
  'profinfer-csv': () => replaced('profinfer-csv/tiny.csv', /(,\d+,)20,/, '$199,'),
  'profinfer-openharmony': () => replaced('profinfer-openharmony/tiny.csv', /,10,0,,/, ',199,0,,'),
  'profinfer-text': () => replaced('profinfer-text/tiny.txt', 'func:llama_decode', 'func:unknown'),
  'profinfer-ktrace': () => replaced('profinfer-ktrace/tiny.txt', 'sched_wakeup: 701', 'sched_unknown: 701'),
  bpftrace: () => replaced('bpftrace/sched.txt', 'g2p waking', 'g2p unknown'),
  onednn: () => withLine('onednn/v3.7.log', 'onednn_verbose,v1,graph,exec,cpu,100,partition,unknown'),
  'blas-log': () => withLine('blas-log/cublaslt.log', '[2026-05-04 15:08:48][cublasLt][1][Api][cublasLtUnknown] a=1'),
  'llama-bench': () => withLine('llama-bench/tests.md', 'unknown row', -3),
  'backend-profiler': () => replaced('backend-profiler/two-backends.json', '{"type": 1,', '{"type": 7,'),
  'opencl-csv': () => withLine('opencl-csv/real.csv', 'unknown,row'),
  aiperf: () => withLine('aiperf/documented.jsonl', '{"unknown":{"a":1}}'),
  'genai-perf': () => replaced('genai-perf/profile.json', '"requests":[', '"requests":[{"unknown":1},'),
  otlp: () => replaced('otlp/sglang.json', '"decode_loop"', '"unknown"'),
  'llama-log': () => withLine('llama-log/backends.log', 'ET_PERF|unknown=1'),
  'llama-server': () => withLine('server/failed.log', 'slot unknown_event: id 0 | task 0 | unknown'),
  'perf-stat': () => withLine('perf-stat/program.csv', 'unknown,row'),
  streamline: () => withLine('streamline/timeline.csv', 'unknown,row'),
  ftrace: () => replaced('ftrace/trace.txt', 'sched_waking: ', 'sched_unknown: '),
  'perf-script': () => replaced('perf-script/default.txt', 'sched_waking:', 'sched_unknown:'),
  'chrome-json': () =>
    replaced('chrome-json/integers.json', '"traceEvents": [', '"traceEvents": [{"ph": "?", "ts": 5, "pid": 1},'),
  'tensor-trace': () => [plainBytes('tensor-trace/tiny-v4.bin'), plainBytes('tensor-trace/unknown-op.bin')],
  'tensor-trace-json': () => replaced('tensor-trace-json/tiny.json', '"entries": [', '"entries": [{"unknown": 1},'),
  'buffer-stats': () => [encode(alloc(1, '1', 9, 'a')), encode(`${alloc(1, '1', 9, 'a')}{"event":"unknown"}\n`)],
  'memory-map': () => [json(MAP), json({ ...MAP, tensors: [{ unknown: 1 }] })],
  'buffer-timeline': () => [json(TIMELINE), json({ ...TIMELINE, buffers: [{ unknown: 1 }] })],
  'ggml-graph': () => [json(GRAPH), json({ ...GRAPH, nodes: [{ unknown: 1 }] })],
}

/** Records of which a summary says that they are not drawn, or why they could not be read; by title. */
async function saidOf(source: Uint8Array, from: string): Promise<Map<string, number>> {
  const { left_out, issues, attributes } = await summarize({ name: 'log', source }, { from })
  const lines = Object.entries(attributes).filter(
    ([key, value]) => /^(?:other_lines|lines_without_task)$/.test(key) && value,
  )
  return new Map([
    ...lines.map(([key, value]) => [key, Number(value)] as const),
    ...left_out.map(({ what, count }) => [what, count] as const),
    ...issues.map(({ title, count }) => [title, count] as const),
  ])
}

test('of each format', () => {
  expect(Object.keys(LOGS).sort()).toEqual(FORMATS.map(({ name }) => name).sort())
})

describe.each(Object.keys(LOGS))('%s', (format) => {
  test('a record of another kind is said', async () => {
    const [log, changed] = LOGS[format]!()
    const [before, after] = [await saidOf(log, format), await saidOf(changed, format)]
    const more = [...after].filter(([what, count]) => count > (before.get(what) ?? 0))
    expect(more).not.toEqual([])
  })
})
