import { readFileSync, writeFileSync } from 'node:fs'
import { expect, test } from '@jest/globals'
import { convert } from '../../lib/index.ts'
import { inputOf, openTrace } from '../../lib/node.ts'
import { pathOf } from '../line/support.ts'
import { begun } from '../read/ggtrace-logs.ts'
import { at, run, useFolder } from './helpers.ts'

/** What commands print of inputs that contain one of each thing, and things without a name: nouns agree with their numbers, no name is missing. */

useFolder()

/** A number of one with a plural; units are none. */
const ONE = /(?:^|[^\d.,×/-])(?<!\d )1 (?!is\b|was\b|has\b|as\b|less\b|m?s\b|[µn]s\b)[A-Za-z]+s\b/
/** A name that is missing: before a comma, after `for`, `of` or `by`, in brackets or quotes. */
const EMPTY = / ,|, ,|\b(?:for|of|by|on|in)(?: [,:;.)])|\(\)|\( | \)|: ,|undefined|NaN/

/** Calls of so many tokens each, of one worker and one operator; `name`: of its tensor and its backend. */
function log(tokens: readonly number[], name: string, losses = 0): Uint8Array {
  const writer = begun({ command: name, cpus: '1' })
  writer.type(0, 'f32')
  writer.op(25, 'RMS_NORM')
  const buffer = writer.buffer({ name, backend: name, usage: 'compute', base: 1 << 20, sizeBytes: 256 })
  const tensor = writer.tensor({ name, op: 25, type: 0, ne: [64, 1, 1, 1], buffer, address: 1 << 20, sizeBytes: 256 })
  const graph = writer.graph(name, [tensor])
  const [host, worker] = [writer.thread(700), writer.thread(701, 0)]
  for (const [call, count] of tokens.entries()) {
    const from = 10_000 + 100_000 * call
    worker.call = call
    worker.operator({ tensor, startNs: from + 1000, endNs: from + 2000, waitEndNs: from + 3000 })
    host.graph({ startNs: from, endNs: from + 4000, graph, call })
    const spans = [{ sequence: 0, position: call, tokens: count }]
    host.token({ startNs: from - 1000, endNs: from + 80_000, call, tokens: count, spans })
  }
  writer.end(1_000_000)
  const bytes = writer.take()
  return losses > 0 ? bytes.subarray(0, bytes.length - 10) : bytes
}

const slice = (cat: string, name: string, ts: number, dur: number, args: object = {}) => ({
  ...{ ph: 'X', cat, name, ts, dur, args },
  ...(/cpu|cuda|user/.test(cat) ? { pid: 1, tid: 1 } : { pid: 0, tid: 7 }),
})
const PLACE = { device: 0, stream: 7 }
const KINETO = [
  slice('cpu_op', 'aten::mm', 0, 50, {
    'External id': 1,
    'Input Dims': [
      [4, 8],
      [8, 2],
    ],
  }),
  slice('cuda_runtime', 'cudaLaunchKernel', 10, 2, { correlation: 1 }),
  slice('kernel', 'gemm', 20, 20, { ...PLACE, correlation: 1 }),
  slice('cuda_runtime', 'cudaMemcpyAsync', 60, 2, { correlation: 2 }),
  slice('gpu_memcpy', 'Memcpy DtoH (Device -> Pageable)', 70, 5, { ...PLACE, correlation: 2, bytes: 1 }),
  slice('user_annotation', 'ProfilerStep#1', 0, 90),
]

const SERVER = `srv  load_model: loading model '/m/x.gguf'
srv    load_model: initializing slots, n_slots = 1
main: server is listening on http://127.0.0.1:8080 - starting the main loop
slot launch_slot_: id  0 | task 0 | processing task, is_child = 0
slot update_slots: id  0 | task 0 | new prompt, n_ctx_slot = 4096, n_keep = 0, task.n_tokens = 1
slot update_slots: id  0 | task 0 | n_tokens = 0, memory_seq_rm [0, end)
slot update_slots: id  0 | task 0 | prompt done, n_tokens = 1, batch.n_tokens = 1
slot print_timing: id  0 | task 0 | 
prompt eval time =    5000.00 ms /     1 tokens ( 5000.00 ms per token,     0.20 tokens per second)
       eval time =   10000.00 ms /     1 tokens (10000.00 ms per token,     0.10 tokens per second)
      total time =   15000.00 ms /     2 tokens
slot      release: id  0 | task 0 | stop processing: n_tokens = 2, truncated = 0
srv  update_slots: all slots are idle
`

/** The first lines of a fixture. */
const head = (fixture: string, lines: number) =>
  `${readFileSync(pathOf(fixture), 'utf8').split('\n').slice(0, lines).join('\n')}\n`

const INPUTS: Readonly<Record<string, () => string | Uint8Array>> = {
  'one-call.ggtrace': () => log([1], 'x-0'),
  'two-calls.ggtrace': () => log([2, 1], 'x-0'),
  'unnamed.ggtrace': () => log([2, 1, 1], ''),
  'cut.ggtrace': () => log([1, 1], 'x-0', 1),
  'kineto.json': () =>
    JSON.stringify({ schemaVersion: 1, deviceProperties: [{ id: 0, name: '' }], traceEvents: KINETO }),
  'server.log': () => SERVER,
  'bench.csv': () => head('llama-bench/tests.csv', 2),
  'smi.csv': () => head('power/nvidia-smi.csv', 2),
  'tegrastats.txt': () => head('power/tegrastats.txt', 1),
  'script.txt': () => head('perf-script/default.txt', 2),
  'client.jsonl': () => head('aiperf/documented.jsonl', 1),
}

const COMMANDS: Readonly<Record<string, readonly string[]>> = {
  stats: [],
  why: [],
  info: [],
  convert: ['-o', 'out.pftrace'],
  report: ['-o', 'out.html'],
}

/** The words of a page. */
const wordsOf = (page: string) =>
  page
    .replace(/<(script|style)[\s\S]*?<\/\1>/g, '')
    .replace(/<[^>]*>/g, '\n')
    .replaceAll('&quot;', '"')

test.each(Object.keys(INPUTS))('%s', async (name) => {
  writeFileSync(at(name), INPUTS[name]!())
  const wrong = (lines: readonly string[]) =>
    lines.filter((line) => ONE.test(line) || EMPTY.test(line) || /a bug in/.test(line))
  const said = Object.entries(COMMANDS).flatMap(([command, options]) => {
    const { code, stdout, stderr } = run([command, name, ...options])
    const page = command === 'report' && code === 0 ? wordsOf(readFileSync(at('out.html'), 'utf8')) : ''
    const lines = `${stdout}\n${stderr}\n${page}`
      .split('\n')
      .filter((line) => !/ggml2perfetto query .*select/.test(line))
    return wrong(lines).map((line) => [command, line])
  })
  expect(said).toEqual([])
  const trace = await openTrace(convert(inputOf(at(name)), { detail: 'full' }))
  const texts = 'select name from slice union select name from track union select string_value from args'
  const { rows } = trace.query(texts)
  trace.close()
  expect(rows.length).toBeGreaterThan(0)
  expect(wrong(rows.map(([text]) => String(text ?? '')))).toEqual([])
})
