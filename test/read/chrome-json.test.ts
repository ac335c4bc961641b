import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { describe, expect, test } from '@jest/globals'
import { type ByteSource, summarize } from '../../lib/index.ts'
import { openTrace } from '../../lib/node.ts'
import { sniffFormat } from '../../lib/read/index.ts'
import { converted, cut, plainBytes } from '../line/support.ts'
import { figuresIn, figuresOf } from './chrome-json/figures.ts'

/** Traces of PyTorch's profiler, read back by SQL. */

/** Folder of whole traces (`*.json.gz`), for those who have some. */
const TRACES = process.env['KINETO_TRACES']
const FIXTURES = [
  'absolute.json',
  'communication.json.gz',
  'gpu-only.json',
  'h100.json.gz',
  'integers.json',
  'sglang.json.gz',
  'vllm.json.gz',
]
const fixture = (name: string) => plainBytes(`chrome-json/${name}`)

async function rowsOf(bytes: Uint8Array, ...queries: string[]): Promise<(readonly unknown[])[][]> {
  const trace = await openTrace(await converted(bytes, { detail: 'full' }))
  try {
    expect(trace.problems()).toEqual([])
    return queries.map((sql) => [...trace.query(sql).rows])
  } finally {
    trace.close()
  }
}
const arg = (key: string) => `extract_arg(s.arg_set_id, 'debug.${key}')`

async function expectSameFigures(bytes: Uint8Array): Promise<void> {
  const { problems, ...found } = await figuresIn(bytes)
  const expected = figuresOf(new TextDecoder().decode(bytes))
  expect(problems).toEqual([])
  expect(found.byCategory).toEqual(expected.byCategory)
  expect(found.launched).toBe(expected.launched)
  // Each slice by itself starts where its digits say.
  expect(found.starts.filter((start, i) => start !== expected.starts[i])).toEqual([])
  expect(found.starts.length).toBe(expected.starts.length)
}

describe('by category: counts, first and last times, durations, launches; every start to the nanosecond', () => {
  test.each(FIXTURES)('%s', async (name) => {
    await expectSameFigures(fixture(name))
    const { issues, clock } = await summarize({ name, source: fixture(name) })
    expect({ issues, clock }).toEqual({ issues: [], clock: 'REALTIME' })
  })

  for (const name of TRACES === undefined ? [] : readdirSync(TRACES).filter((file) => file.endsWith('.json.gz'))) {
    test(name, async () => expectSameFigures(new Uint8Array(gunzipSync(readFileSync(join(TRACES!, name))))))
  }
})

describe('a model on one GPU', () => {
  const h100 = fixture('h100.json.gz')

  test('kernels are on queues, with what Nsight Systems tells, too, under the same names', async () => {
    const [kernels, copies] = await rowsOf(
      h100,
      `SELECT t.name, count(*) FROM gpu_slice s JOIN track t ON t.id = s.track_id GROUP BY t.name`,
      `SELECT s.name, extract_arg(arg_set_id, 'kind'), extract_arg(arg_set_id, 'bytes'),
        extract_arg(arg_set_id, 'External id'), dur FROM gpu_slice s
        WHERE extract_arg(arg_set_id, 'kind') != 'kernel' ORDER BY ts`,
    )
    expect(kernels).toEqual([['stream 7, pid 25286', 17]])
    expect(copies).toEqual([['Memcpy DtoH (Device -> Pinned)', 'memcpy', '1', '18452', 2368]])
    const [grids] = await rowsOf(
      h100,
      `SELECT DISTINCT extract_arg(arg_set_id, 'grid'), extract_arg(arg_set_id, 'block'), extract_arg(arg_set_id, 'registers')
        FROM gpu_slice WHERE name LIKE '%vectorized_elementwise%' LIMIT 1`,
    )
    expect(grids![0]).toEqual([
      expect.stringMatching(/^\d+x\d+x\d+$/),
      expect.stringMatching(/^\d+x1x1$/),
      expect.any(String),
    ])
  })

  test('operators nest in annotations, calls stand by themselves, functions, too', async () => {
    const [tracks, nested] = await rowsOf(
      h100,
      `SELECT coalesce(p.name, thread.name || ' ' || tid), coalesce(t.name, ''), s.category, count(*) FROM slice s JOIN track t ON t.id = s.track_id
        LEFT JOIN track p ON p.id = t.parent_id AND p.name IS NOT NULL LEFT JOIN thread_track tt ON tt.id = t.id LEFT JOIN thread USING (utid)
        WHERE s.category NOT IN ('issue', 'gpu_busy', 'thread_overview') GROUP BY 1, 2, 3 ORDER BY 1, 2, 3`,
      `SELECT count(*) FROM slice s JOIN slice p ON p.id = s.parent_id WHERE s.ts < p.ts OR s.ts + s.dur > p.ts + p.dur`,
    )
    // The viewer closes groups of processes, and draws rows of threads of SQL nowhere else: others are at the top.
    expect(tracks!.map(([group, row, category]) => [group, row, category])).toEqual([
      [null, 'GPU 0: stream 7: annotations', 'gpu_user_annotation'],
      [null, 'python3 0: Python', 'python_function'],
      [null, 'python3 25286: Allocations', 'cpu_instant_event'],
      [null, 'python3 25286: CUDA API', 'api'],
      [null, 'python3 25286: Python', 'python_function'],
      [null, 'python3 25286: operators', 'cpu_op'],
      [null, 'python3 25286: operators', 'user_annotation'],
      ['Profiler', 'PyTorch Profiler', 'Trace'],
    ])
    expect(nested).toEqual([[0]])
  })

  test('arguments are as the source has them; bookkeeping at full detail', async () => {
    const keys = ['External id', 'Input Dims[1][0]', 'Input Dims[1][1]', 'Input Dims[2]', 'Input type[1]', 'Ev Idx']
    const sql = `SELECT ${keys.map(arg)} FROM slice s WHERE s.name = 'aten::embedding' ORDER BY ts LIMIT 1`
    const full = [18434, 16, 559, '[]', 'long int', 1]
    expect(await rowsOf(h100, sql)).toEqual([[full]])
    const trace = await openTrace(await converted(h100))
    expect(trace.query(sql).rows).toEqual([[...full.slice(0, 5), null]])
    trace.close()
  })

  test('memory: counters of what the allocator holds, and each change as an instant', async () => {
    const [counters, changes] = await rowsOf(
      h100,
      `SELECT t.name, count(*), min(value) > 1e9 FROM counter c JOIN track t ON t.id = c.track_id WHERE t.name != 'at the top' GROUP BY 1 ORDER BY 1`,
      `SELECT s.name, ${arg('Bytes')}, ${arg('Total Allocated')} FROM slice s
        WHERE category = 'cpu_instant_event' ORDER BY ts LIMIT 1`,
    )
    expect(counters).toEqual([
      ['CPU: memory allocated', 7, 0],
      ['CPU: memory reserved', 7, 0],
      ['GPU 0: memory allocated', 27, 1],
      ['GPU 0: memory reserved', 27, 1],
    ])
    expect(changes).toEqual([['[memory]', 18317312, 1003059712]])
  })

  test('Chrome JSON of it has the same slices', async () => {
    // The row GPU shows what the queues' rows have, once more; traces for Chrome have none.
    const sql = `SELECT name, dur FROM slice WHERE category IS NULL OR category NOT IN ('gpu_busy', 'thread_overview') ORDER BY ts, dur DESC, name`
    const json = await openTrace(await converted(h100, { to: 'json' }))
    expect(json.problems()).toEqual([])
    expect(json.query(sql).rows).toEqual((await rowsOf(h100, sql))[0])
    json.close()
  })
})

describe('serving engines', () => {
  test.each([
    ['vllm.json.gz', ['decode 1 (32 tokens) · 19.1 ms', 19_114_059, 'decode', 32], [0, 0, 32, 32, 55086]],
    ['sglang.json.gz', ['prefill (15360 tokens) · 523 ms', 522_741_423, 'prefill', 15360], [15, 15360, 0, 0, 0]],
  ])('%s: steps are calls of the model, with a phase and counts', async (name, call, counts) => {
    const keys = [
      'context_requests',
      'context_tokens',
      'generation_requests',
      'generation_tokens',
      'generation_kv_tokens',
    ]
    const [calls, phases, annotations] = await rowsOf(
      fixture(name),
      `SELECT s.name, dur, ${arg('phase')}, ${arg('n_tokens')} FROM slice s WHERE category = 'token' ORDER BY ts`,
      `SELECT s.name, dur FROM slice s WHERE category = 'phase'`,
      `SELECT ${keys.map(arg)} FROM slice s WHERE category = 'user_annotation' AND ${arg('phase')} IS NOT NULL`,
    )
    expect(calls).toEqual([call])
    expect(phases).toEqual([[call[2], call[1]]])
    expect(annotations).toEqual([counts])
  })

  test('one launch of a HIP graph is correlated to all of its kernels', async () => {
    const [launches] = await rowsOf(
      fixture('vllm.json.gz'),
      `SELECT s.name, ${arg('gpu_work')}, (SELECT count(*) FROM gpu_slice WHERE submission_id = ${arg('correlation')}), t.name
        FROM slice s JOIN track t ON t.id = s.track_id
        WHERE category = 'api' AND ${arg('gpu_work')} > 1`,
    )
    expect(launches).toEqual([['hipGraphLaunch', 421, 421, 'thread 851: HIP API']])
  })
})

describe('arrows', () => {
  test('from forward to backward join the operators; ends without the other are no harm', async () => {
    const [flows] = await rowsOf(
      fixture('absolute.json'),
      `SELECT a.category, b.category FROM flow JOIN slice a ON a.id = slice_out JOIN slice b ON b.id = slice_in`,
    )
    expect(flows).toEqual([])
    const pair = `{"ph":"s","id":5,"pid":1,"tid":2,"ts":12.5,"cat":"fwdbwd","name":"fwdbwd"},
      {"ph":"f","id":5,"pid":1,"tid":3,"ts":30,"cat":"fwdbwd","name":"fwdbwd","bp":"e"},
      {"ph":"f","id":6,"pid":1,"tid":3,"ts":30,"cat":"fwdbwd","name":"fwdbwd","bp":"e"},
      {"ph":"s","id":5,"pid":1,"tid":2,"ts":10,"cat":"ac2g","name":"ac2g"}`
    const [joined] = await rowsOf(
      new TextEncoder().encode(`{"schemaVersion":1,"baseTimeNanoseconds":5,"traceEvents":[
        {"ph":"X","cat":"cpu_op","name":"outer","pid":1,"tid":2,"ts":10,"dur":5},
        {"ph":"X","cat":"cpu_op","name":"forward","pid":1,"tid":2,"ts":12,"dur":1},
        {"ph":"X","cat":"cpu_op","name":"backward","pid":1,"tid":3,"ts":30,"dur":1},${pair}]}`),
      `SELECT a.name, b.name FROM flow JOIN slice a ON a.id = slice_out JOIN slice b ON b.id = slice_in`,
    )
    expect(joined).toEqual([['forward', 'backward']])
  })
})

describe('the base time behind the events', () => {
  const bytes = fixture('h100.json.gz')
  const [whole, zipped] = [new Uint8Array(bytes), new Uint8Array(gzipSync(bytes))]
  const startOf = async (source: ByteSource) => {
    const { clock, start_ns, issues } = await summarize({ name: 'trace', source })
    return [clock, start_ns, issues.map(({ title }) => title)]
  }

  test('is found in bytes, in a Blob, compressed or not', async () => {
    const expected = ['REALTIME', `${figuresOf(new TextDecoder().decode(bytes)).starts[0]}`, []]
    expect(await startOf(whole)).toEqual(expected)
    expect(await startOf(zipped)).toEqual(expected)
    expect(await startOf(new Blob([whole]))).toEqual(expected)
    expect(await startOf(new Blob([zipped]))).toEqual(expected)
  })

  test('is missed in a stream, which is told', async () => {
    const [clock, start_ns, issues] = await startOf(cut(whole, 1000))
    expect([clock, issues]).toEqual(['unknown', ['no base time']])
    expect(BigInt(1751410836) * 1_000_000_000n + BigInt(start_ns as string)).toBe(
      BigInt((await startOf(whole))[1] as string),
    )
  })
})

test('threads that are known by the lower 32 bits of their pthread_t, with sign, remain apart', async () => {
  const calls = [-247463936, -147463936].map((tid, i) => {
    const args = `{"cbid":138,"correlation":${160622 + i}}`
    return `{"ph":"X","cat":"cuda_runtime","name":"cudaEventQuery","pid":1102,"tid":${tid},"ts":${i}.8,"dur":3.5,"args":${args}}`
  })
  const text = `{"schemaVersion":1,"baseTimeNanoseconds":1751410836000000000,"traceEvents":[${calls.join(',')}]}`
  const bytes = new TextEncoder().encode(text)
  const sql = "select t.name from slice s join track t on t.id = s.track_id where s.category = 'api' order by s.ts"
  expect(await rowsOf(bytes, sql)).toEqual([
    ['thread 4047503360: CUDA API', 'thread 4147503360: CUDA API'].map((name) => [name]),
  ])
  expect((await summarize({ name: 'trace', source: bytes })).issues).toEqual([])
})

describe('what is not copied', () => {
  test('hosts, users, jobs, the environment and folders of functions', async () => {
    const secret = `{"schemaVersion":1,"host_name":"secret-host","username":"somebody","tw_job":"secret-job","traceName":"/tmp/secret",
      "distributedInfo":{"backend":"nccl","rank":3,"pg_config":"secret"},"baseTimeNanoseconds":1000,
      "INFO":["secret"],"traceEvents":[
      {"ph":"X","cat":"python_function","name":"/home/secret/app/run.py(7): main","pid":1,"tid":1,"ts":1,"dur":2},
      {"ph":"X","cat":"python_function","name":"/secret/lib/python3/site-packages/torch/nn/x.py(8): f","pid":1,"tid":1,"ts":1,"dur":1},
      {"ph":"M","name":"thread_name","pid":1,"tid":1,"ts":0,"args":{"name":"python3"}}]}`
    const trace = Buffer.from(await converted(new TextEncoder().encode(secret), { detail: 'full' })).toString('latin1')
    expect(trace).not.toMatch(/secret|somebody/)
    expect(trace).toContain('run.py(7): main')
    expect(trace).toContain('torch/nn/x.py(8): f')
    expect(trace).toContain('python3 1')
    const { attributes } = await summarize({ name: 'trace', source: new TextEncoder().encode(secret) })
    expect(attributes).toMatchObject({ rank: 3, backend: 'nccl' })
  })
})

describe('detection', () => {
  test('by content, and no other JSON', () => {
    const nameOf = (text: string) => sniffFormat(new TextEncoder().encode(text))?.name
    for (const name of FIXTURES) expect(sniffFormat(fixture(name).subarray(0, 4096))?.name).toBe('chrome-json')
    expect(nameOf('\ufeff [ {"name":"a","ph":"X","ts":1}')).toBe('chrome-json')
    expect(nameOf('{"displayTimeUnit":"ms","traceEvents":[]}')).toBe('chrome-json')
    for (const other of [
      '{"name":"ggml2perfetto","version":"0"}',
      '[1,2]',
      '[{"a":1}]',
      '{"nodes":[],"edges":[]}',
      '{}',
    ]) {
      expect(nameOf(other)).not.toBe('chrome-json')
    }
  })
})
