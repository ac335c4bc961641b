import { describe, expect, test } from '@jest/globals'
import { summarize } from '../../lib/index.ts'
import { openTrace } from '../../lib/node.ts'
import { converted, plainBytes } from '../line/support.ts'
import { faultsOf, madeOf } from './made.ts'
import {
  type Mutation,
  ofBlocks,
  ofCsv,
  ofJson,
  ofLines,
  ofSqlite,
  ofWords,
  withCsv,
  withJson,
  withSqlite,
} from './mutations.ts'

/**
 * Each field of each format, or word of a binary one, in turn with a number above 2^31, one of 64 bits, no number, infinity or an empty text: no
 * result contains "NaN", "Infinity", "undefined" or an empty name, and identifiers are printed digit by digit.
 */

const LARGE = ['4294967301', '9007199254740991', '18446744073709551615']
const TEXTS = [...LARGE, 'nan', '1e999', '']
const VALUES = [...LARGE, '1e999', 'null', '""', '-1']
/** 2^32 + 5, 2^53 + 1, 2^64 − 1, a number that is none, zeros. */
const WORDS = ['0500000001000000', '0100000000002000', 'ffffffffffffffff', '000000000000f87f', '0000000000000000']
const SQL_VALUES = ['4294967301', '9007199254740993', 'null', "''", '9e999']

type Way = (bytes: Uint8Array, values: readonly string[]) => Iterable<Mutation>
type Row = readonly [way: Way, values: readonly string[], fixtures: readonly string[], tried?: number]
const FIXTURES: readonly Row[] = [
  [
    ofJson,
    VALUES,
    [
      ...['aiperf/documented.jsonl', 'backend-profiler/two-backends.json', 'chrome-json/gpu-only.json'],
      ...['genai-perf/profile.json', 'llama-bench/tests.jsonl', 'otlp/sglang.json', 'otlp/vllm.jsonl'],
      ...['perf-stat/program.jsonl', 'power/amd-smi.json', 'rocprofv3/calls.json', 'tensor-trace-json/tiny.json'],
      ...['bpftrace/sched.jsonl', 'server/v0.7.0-lv4.jsonl'],
    ],
  ],
  [
    ofCsv,
    TEXTS,
    [
      ...['llama-bench/tests.csv', 'ncu/raw.csv', 'nsys-nvtx-trace/jax.csv', 'opencl-csv/real.csv'],
      ...['opencl-csv/cl_profiling.csv', 'perf-stat/program.csv', 'power/amd-smi.csv', 'power/nvidia-smi.csv'],
      ...['power/power.csv', 'profinfer-csv/tiny.csv', 'profinfer-openharmony/tiny.csv', 'streamline/timeline.csv'],
    ],
  ],
  [
    ofLines,
    TEXTS,
    [
      ...['llama-bench/tests.md', 'llama-bench/tests.sql', 'llama-log/backends.log', 'llama-log/vulkan.log'],
      ...['blas-log/cublas.log', 'blas-log/rocblas.log', 'onednn/v3.7.log', 'power/dcgm.txt', 'power/nvidia-dmon.txt'],
      ...['power/tegrastats.txt', 'power/turbostat.txt', 'profinfer-text/tiny.txt', 'profinfer-ktrace/tiny.txt'],
      ...['server/v0.7.0-lv4.log', 'ftrace/trace.txt', 'perf-script/task-events.txt', 'perf-stat/program.txt'],
    ],
  ],
  [ofBlocks, ['0000000000000000'], ['ggtrace/tiny.ggtrace'], 130],
  [ofBlocks, WORDS, ['ggtrace/tiny.ggtrace', 'ggtrace/lossy.ggtrace', 'session/run.ggtrace.gz']],
  [
    ofWords,
    WORDS,
    [
      ...['tensor-trace/tiny-64.bin', 'tensor-trace/tiny-128.bin', 'tensor-trace/tiny-v4.bin'],
      ...['perf-data/own-switches.data.gz', 'perf-data/mono.data.gz', 'trace-dat/mono-v6.dat.gz'],
    ],
  ],
  [ofSqlite, SQL_VALUES, ['nsys/gpu-without-id.sqlite.gz']],
]
/** Changes of one fixture that are tried, unless the table has a number: those are many, and alike. */
const TRIED = 24
/** Which of them: others with another seed. */
const SEED = Number(process.env['FC_SEED'] ?? 1)

/** Each value is tried on some fields: the stride and their number have no divisor in common. */
function strideOf(changes: number, values: number, tried: number): number {
  const divisor = (a: number, b: number): number => (b === 0 ? a : divisor(b, a % b))
  let stride = Math.max(1, Math.ceil(changes / tried))
  while (divisor(stride, values) > 1) stride++
  return stride
}

describe.each(
  FIXTURES.flatMap(([way, values, fixtures, tried = TRIED]) => fixtures.map((name) => ({ name, way, values, tried }))),
)('$name: $values', ({ name, way, values, tried }) => {
  test('no result contains what is nothing', async () => {
    const all = [...way(plainBytes(name), values)]
    const every = strideOf(all.length, values.length, tried)
    let read = 0
    for (const [i, [change, make]] of all.entries()) {
      const bytes = i % every === SEED % every ? make() : undefined
      const made = bytes && (await madeOf(bytes))
      if (!made) continue
      read++
      expect([change, faultsOf(made).slice(0, 3)]).toEqual([change, []])
    }
    expect(read).toBeGreaterThan(3)
  })
})

/** A format's identifiers: how one gets another number, and what of the results shows it. */
const IDENTIFIERS: readonly (readonly [
  name: string,
  fixture: string,
  of: (bytes: Uint8Array, id: string) => Uint8Array,
])[] = [
  ...['pid', 'tid', 'stream', 'External id', 'correlation'].map(
    (key) =>
      [
        `chrome-json ${key}`,
        'chrome-json/communication.json.gz',
        (bytes: Uint8Array, id: string) => withJson(bytes, key, id),
      ] as const,
  ),
  ...['pid', 'handle', 'dispatch_id', 'thread_id'].map(
    (key) =>
      [
        `rocprofv3 ${key}`,
        'rocprofv3/calls.json',
        (bytes: Uint8Array, id: string) => withJson(bytes, key, id),
      ] as const,
  ),
  ['amd-smi gpu', 'power/amd-smi.json', (bytes, id) => withJson(bytes, 'gpu', id)],
  ['nvidia-smi index', 'power/nvidia-smi.csv', (bytes, id) => withCsv(bytes, 1, ` ${id}`)],
  ['backend-profiler split_id', 'backend-profiler/two-backends.json', (bytes, id) => withJson(bytes, 'split_id', id)],
  ['llama-bench build_number', 'llama-bench/tests.json', (bytes, id) => withJson(bytes, 'build_number', id)],
  ['nsys-nvtx-trace TID', 'nsys-nvtx-trace/jax.csv', (bytes, id) => withCsv(bytes, 7, id)],
  ...['streamId', 'contextId', 'correlationId', 'deviceId'].map(
    (column) =>
      [
        `nsys ${column}`,
        'nsys/gpu-without-id.sqlite.gz',
        (bytes: Uint8Array, id: string) => withSqlite(bytes, 'CUPTI_ACTIVITY_KIND_KERNEL', column, id),
      ] as const,
  ),
]

const replaced = (bytes: Uint8Array, what: RegExp, by: string) =>
  new TextEncoder().encode(new TextDecoder().decode(bytes).replace(what, by))

describe.each(IDENTIFIERS)('%s', (_, fixture, of) => {
  test.each(['2147483653', '4294967301', '9007199254740991'])('%s is shown digit by digit', async (id) => {
    await expectShown(of(plainBytes(fixture), id), id)
  })
})

test('a task of llama-server, whose numbers have up to ten digits', async () => {
  for (const id of ['2147483653', '4294967301'])
    await expectShown(replaced(plainBytes('server/v0.7.0-lv4.log'), /task 6\b/g, `task ${id}`), id)
})

/** What is out of the range of its field is an issue, with the number. */
async function expectShown(bytes: Uint8Array, id: string): Promise<void> {
  const made = await madeOf(bytes)
  const text = [...made!.draws, ...made!.texts, JSON.stringify(made!.analysis)].join('\n')
  expect(text.includes(id)).toBe(true)
  expect(text.match(ROUNDED)).toBeNull()
}

/** Four digits, other digits, thousands apart. */
const ROUNDED =
  /2147000000|4295000000|9007000000000000|900719925474099[02]|[249]\.\d+e[+]\d+|2 147 483 653|4 294 967 301|9 007 199/

test('identifiers of a trace are exact in trace_processor', async () => {
  const bytes = withJson(plainBytes('chrome-json/communication.json.gz'), 'External id', '18446744073709551615')
  const trace = await openTrace(await converted(withJson(bytes, 'stream', '9007199254740991'), { detail: 'full' }))
  try {
    expect(trace.problems()).toEqual([])
    const ids = trace.query(
      `select distinct extract_arg(arg_set_id, 'debug.External id') from slice where category = 'cpu_op'`,
    )
    expect(ids.rows).toEqual([['18446744073709551615']])
    const queues = trace.query('select distinct t.name from gpu_slice s join track t on t.id = s.track_id')
    expect(queues.rows).toEqual([['9007199254740991, pid 2910249']])
  } finally {
    trace.close()
  }
})

test('a log of two versions of oneDNN names both', async () => {
  const log = new TextDecoder().decode(plainBytes('onednn/v3.7.log'))
  const source = new TextEncoder().encode(`${log}\n${log.replaceAll('oneDNN v3.7', 'oneDNN v2.1')}`)
  expect((await summarize({ name: 'log', source })).attributes['onednn']).toMatch(/^3\.7[\d.]*, 2\.1[\d.]*$/)
})
