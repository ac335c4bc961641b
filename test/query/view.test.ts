import { readFileSync } from 'node:fs'
import { gunzipSync, gzipSync } from 'node:zlib'
import { describe, expect, test } from '@jest/globals'
import { type ConvertOptions, convert, type TraceEvent } from '../../lib/index.ts'
import { openTrace } from '../../lib/node.ts'
import { findView, type OpenTrace, VIEWER, type View, viewerUrl } from '../../lib/sql.ts'
import { input, ORIGIN_NS } from '../sched/schedule.ts'

const MOE = readFileSync('examples/moe.csv')
const RECORDED = readFileSync('examples/moe.ggtrace.gz')

async function traceOf(log: Uint8Array, options: ConvertOptions = {}): Promise<Buffer> {
  const pieces: Uint8Array[] = []
  for await (const piece of convert({ name: 'log', source: log }, options)) pieces.push(piece)
  return Buffer.concat(pieces)
}

async function* inPieces(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += 100_000) yield bytes.subarray(at, at + 100_000)
}

const view = async (log: Uint8Array, options?: ConvertOptions) => findView(inPieces(await traceOf(log, options)))

async function withTrace<T>(bytes: Uint8Array, use: (trace: OpenTrace) => T): Promise<T> {
  const trace = await openTrace(bytes)
  try {
    return use(trace)
  } finally {
    trace.close()
  }
}

const argsOf = ({ commands }: View, id: string) => commands.find((command) => command.id === `dev.perfetto.${id}`)!.args

/** Names of the calls that lie whole in view. */
const callsIn = (trace: OpenTrace, { span }: View) =>
  trace
    .query(
      `select name from slice where category = 'token' and ts >= ${span![0]} and ts + dur <= ${span![1]} order by ts`,
    )
    .rows.flat()

describe('the first decode calls are in view', () => {
  test.each([
    ['CSV', MOE, {}],
    ['.ggtrace', RECORDED, {}],
    ['without arguments', RECORDED, { detail: 'names' }],
  ] as const)('%s', async (_, log, options) => {
    const found = await view(log, options)
    const calls = await withTrace(await traceOf(log, options), (trace) => callsIn(trace, found))
    expect(calls).toEqual(['decode 1', 'decode 2', 'decode 3'])
  })

  test('of those calls only that are drawn', async () => {
    const options = { tokens: [5, 7] } as const
    const found = await view(RECORDED, options)
    const calls = await withTrace(await traceOf(RECORDED, options), (trace) => callsIn(trace, found))
    expect(calls).toEqual(['decode 5', 'decode 6', 'decode 7'])
  })

  test('the prefill, where nothing was decoded', async () => {
    const options = { tokens: [0, 0] } as const
    const found = await view(MOE, options)
    const calls = await withTrace(await traceOf(MOE, options), (trace) => callsIn(trace, found))
    expect(calls).toEqual(['prefill (16 tokens)'])
  })

  test('compressed, too', async () => {
    const trace = await traceOf(MOE)
    expect(await findView(inPieces(gzipSync(trace)))).toEqual(await findView(inPieces(trace)))
  })
})

test('the beginning of a long trace is enough', async () => {
  const trace = await traceOf(MOE)
  let read = 0
  async function* endless() {
    for (;;) {
      read += trace.length
      yield trace // again and again: packets of a trace may follow those of another
    }
  }
  const found = await findView(endless())
  expect(await withTrace(trace, (whole) => callsIn(whole, found))).toEqual(['decode 1'])
  expect(read).toBeLessThan(2 ** 24 + 2 * trace.length)
})

test('a trace that is not of ours is shown as the UI does', async () => {
  const events = [{ name: 'a', ph: 'X', ts: 1, dur: 2, pid: 1, tid: 1 }]
  expect(await findView(inPieces(Buffer.from(JSON.stringify({ traceEvents: events }))))).toEqual({ commands: [] })
})

test('what is no trace at all', async () => {
  await expect(findView(inPieces(Buffer.alloc(5000, 7)))).rejects.toThrow(/cannot read this trace/)
})

describe('commands', () => {
  /** Perfetto v58, ui/src/core/startup_command_allowlist.ts */
  const ALLOWED = ['PinTracksByRegex', 'ExpandTracksByRegex', 'AddDebugSliceTrack']

  test('are ones that the UI runs from a URL, with texts as arguments', async () => {
    const { commands } = await view(RECORDED)
    expect(commands.map(({ id }) => id.replace('dev.perfetto.', '')).sort()).toEqual(ALLOWED.sort())
    for (const { args } of commands) for (const arg of args) expect(typeof arg).toBe('string')
  })

  test('pin calls and workers, open the groups: tracks of these names are there', async () => {
    const found = await view(RECORDED)
    const names = await withTrace(await traceOf(RECORDED), (trace) =>
      trace.query('select name from track order by id').rows.flat().map(String),
    )
    const matches = (id: string) => names.filter((name) => new RegExp(argsOf(found, id)[0]!).test(name)).sort()
    expect(matches('PinTracksByRegex')).toEqual(['GB/s', 'Phase', 'Tokens', 'tok/s', 'worker 0', 'worker 1'])
    expect(matches('ExpandTracksByRegex')).toEqual(['LLM moe.gguf · 2 workers · CPU', 'Memory'])
  })

  test.each([
    ['by name and shape', {}, (op: Operator) => `${op.name} ${op.shape}`],
    ['by name, of decode calls, where shapes are not told', { detail: 'names' }, (op: Operator) => op.name],
  ] as const)('slow operators are those above three times the median of their kind: %s', async (_, options, kind) => {
    const bytes = await traceOf(MOE, options)
    const found = await findView(inPieces(bytes))
    const [drawn, operators, decode] = await withTrace(bytes, (trace) => {
      // Just as the UI does it.
      const [sql] = argsOf(found, 'AddDebugSliceTrack')
      trace.query(
        `create perfetto table debug as with data as (${sql}) select ts, dur, printf('%s', name) as name from data order by ts`,
      )
      const first = trace.query("select min(ts) from slice where name = 'decode 1'").rows[0]![0]
      return [trace.query('select ts, dur, name from debug').rows, operatorsOf(trace), Number(first)] as const
    })
    const groups = new Map<string, Operator[]>()
    for (const op of operators) {
      if ('detail' in options && op.ts < decode) continue
      groups.set(kind(op), [...(groups.get(kind(op)) ?? []), op])
    }
    const slow = [...groups.values()].flatMap((group) => {
      const usual = median(group.map(({ dur }) => dur))
      return group.filter(({ dur }) => dur > 3 * usual).map((op) => ({ ...op, usual }))
    })
    const expected = slow
      .sort((a, b) => b.dur - b.usual - (a.dur - a.usual))
      .slice(0, 500)
      .map(({ ts, dur, name }) => `${ts} ${dur} ${name}`)
    expect(drawn.length).toBeGreaterThan(10)
    const plain = (name: unknown) => String(name).replace(/ ×\d+( · .*)?$/, '')
    expect(drawn.map(([ts, dur, name]) => `${ts} ${dur} ${plain(name)}`).sort()).toEqual(expected.sort())
    for (const [, , name] of drawn) expect(Number(/ ×(\d+)/.exec(String(name))![1])).toBeGreaterThanOrEqual(3)
  })
})

describe('of a run on GPUs, its first work is in view', () => {
  const fixture = (name: string) => {
    const bytes = readFileSync(`test/fixtures/${name}`)
    return name.endsWith('.gz') ? gunzipSync(bytes) : bytes
  }
  const OF_UI = ['GPU', 'Hardware Queues']

  test.each([
    [
      'nsys/one-gpu.sqlite.gz',
      ['stream 7 (default), context 1, process 9946'],
      ['CCCL', 'CUDA API', 'NVTX', 'NVTX on the GPU', 'Nsight Systems', 'default domain'],
    ],
    [
      'nsys/two-processes.sqlite.gz',
      ['stream 15, context 2, process 112', 'stream 7, context 1, process 111'],
      ['CUDA API', 'NVTX', 'NVTX on the GPU', 'Nsight Systems', 'default domain'],
    ],
    [
      'chrome-json/h100.json.gz',
      ['stream 7, context 1, process 25286'],
      ['Annotations on the GPU', 'CUDA API', 'PyTorch profiler', 'python3 25286'],
    ],
    ['chrome-json/gpu-only.json', ['stream 0, process 44077'], ['HIP API', 'PyTorch profiler']],
  ])('%s: groups open, streams pinned', async (name, streams, groups) => {
    const log = fixture(name)
    const found = await view(log)
    await withTrace(await traceOf(log), (trace) => {
      const names = [...new Set(trace.query('select name from track').rows.flat().map(String))].concat(OF_UI)
      const matches = (id: string) => names.filter((name) => new RegExp(argsOf(found, id)[0]!).test(name)).sort()
      expect(matches('PinTracksByRegex')).toEqual(streams)
      expect(matches('ExpandTracksByRegex')).toEqual([...OF_UI, ...groups].sort())
      const first = trace.query('select min(ts) from gpu_slice').rows[0]![0] as bigint
      const [start, end] = found.span!
      expect(start).toBeLessThan(first)
      expect(end).toBeGreaterThan(first)
      expect(end - start).toBeLessThan(30_000_000n)
      const inView = trace.query(`select count(*) from gpu_slice where ts between ${start} and ${end}`).rows[0]![0]
      expect(inView).toBeGreaterThanOrEqual(10)
    })
    expect(found.commands.map(({ id }) => id)).not.toContain('dev.perfetto.AddDebugSliceTrack')
  })

  test('with steps of vLLM: these are in view, with their work on the GPU', async () => {
    const log = fixture('chrome-json/vllm.json.gz')
    const found = await view(log)
    const calls = await withTrace(await traceOf(log), (trace) => callsIn(trace, found))
    expect(calls.length).toBeGreaterThan(0)
    expect(argsOf(found, 'PinTracksByRegex')[0]).toMatch(/\bTokens\b.*\btok\/s\b.*\bstream \d+/)
    expect(argsOf(found, 'ExpandTracksByRegex')[0]).toMatch(/\|GPU\|Hardware Queues\|.*\|HIP API\|/)
  })

  test('a first copy of a few bytes is not the first work, and of long work the beginning is in view', async () => {
    const MS = 1e6
    const run = (startNs: number, endNs: number, stream: number): TraceEvent => ({
      ...{
        kind: 'gpu',
        what: 'kernel',
        device: 0,
        context: 1,
        contextName: 0,
        streamName: 0,
        pid: 9,
        correlation: 0,
        signature: 0,
        facts: [],
      },
      ...{ startNs, endNs, name: 0, stream },
    })
    const works = [run(0, 1000, 7), run(0, 5, 8), run(50 * MS, 52 * MS, 7), run(52.5 * MS, 900 * MS, 7)]
    const found = await findView(convert(input('profile', () => works)))
    expect(found.span!.map((ts) => Number(ts - BigInt(ORIGIN_NS)) / MS)).toEqual([47, 73])
    expect(argsOf(found, 'PinTracksByRegex')[0]).toMatch(/^\^\(stream 7\b[^|]*\)\$$/) // 8 has too little work
  })
})

interface Operator {
  readonly ts: number
  readonly dur: number
  readonly name: string
  readonly shape: string
}

function operatorsOf(trace: OpenTrace): Operator[] {
  const sql = "select ts, dur, name, extract_arg(arg_set_id, 'debug.shape') from slice where category = 'operator'"
  return trace.query(sql).rows.map(([ts, dur, name, shape]) => ({
    ts: Number(ts),
    dur: Number(dur),
    name: String(name),
    shape: String(shape),
  }))
}

function median(values: number[]): number {
  const sorted = values.sort((a, b) => a - b)
  const middle = (sorted.length - 1) / 2
  return (sorted[Math.floor(middle)]! + sorted[Math.ceil(middle)]!) / 2
}

describe('the URL', () => {
  const traceUrl = 'http://127.0.0.1:9001/t/run.pftrace'

  test('carries all of it, is not cut by terminals, and fits where URLs are limited to 2 000 characters', async () => {
    const found = await view(RECORDED)
    const url = viewerUrl(traceUrl, found)
    expect(url).toMatch(/^https:\/\/ui\.perfetto\.dev\/#!\/\?[\w%&=.,+-]+$/)
    expect(url.length).toBeLessThan(2000)
    const parameters = new URLSearchParams(url.slice(`${VIEWER}/#!/?`.length))
    expect(parameters.get('url')).toBe(traceUrl)
    expect([parameters.get('visStart'), parameters.get('visEnd')]).toEqual(found.span!.map(String))
    expect(JSON.parse(parameters.get('startupCommands')!)).toEqual(found.commands)
  })

  test('of a foreign trace has the address only', () => {
    expect(viewerUrl(traceUrl, { commands: [] })).toBe(
      `${VIEWER}/#!/?url=http%3A%2F%2F127.0.0.1%3A9001%2Ft%2Frun.pftrace`,
    )
  })
})
