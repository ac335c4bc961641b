import { readFileSync } from 'node:fs'
import { gunzipSync, gzipSync } from 'node:zlib'
import { describe, expect, test } from '@jest/globals'
import { convert, type TraceEvent } from '../../lib/index.ts'
import { findView, type OpenTrace, VIEWER, type View, viewerUrl } from '../../lib/sql.ts'
import { inLong, inParts, someOf } from '../long.ts'
import { input, ORIGIN_NS } from '../sched/schedule.ts'
import { argsOf, inPieces, pathsIn, traceOf, view, withTrace } from './opened.ts'

const MOE = readFileSync('examples/moe.csv')
const RECORDED = readFileSync('test/recorded/outside-graphs.ggtrace.gz')

/** Names of the calls that lie whole in view. */
const callsIn = (trace: OpenTrace, { span }: View) =>
  trace
    .query(
      `select name from slice where category = 'token' and ts >= ${span![0]} and ts + dur <= ${span![1]} order by ts`,
    )
    .rows.flat()

/** `decode 5` of `decode 5 · 629 µs`. */
const withoutTime = (name: unknown) => String(name).split(' · ')[0]

/** Of calls that took these times: the slowest, the usual one nearest to it, which took the median but for 5 %, and the median. */
function compared(times: readonly number[]): {
  readonly slowest: number
  readonly usual: number
  readonly median: number
} {
  const slowest = times.indexOf(Math.max(...times))
  const median = times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)]!
  const usual = times.flatMap((time, nth) => (Math.abs(time / median - 1) < 0.05 ? [nth] : []))
  return { slowest, usual: usual.toSorted((a, b) => Math.abs(a - slowest) - Math.abs(b - slowest))[0]!, median }
}

describe('the slowest decode call is in view, with those beside it', () => {
  test.each([
    ['CSV', MOE, {}],
    ['.ggtrace', RECORDED, {}],
    ['without arguments', RECORDED, { detail: 'names' }],
  ] as const)('%s', async (_, log, options) => {
    const found = await view(log, options)
    await withTrace(await traceOf(log, options), (trace) => {
      const decodes = trace.query("select dur, name from slice where name glob 'decode [0-9]*' order by ts").rows
      const times = decodes.map(([dur]) => Number(dur))
      const { slowest, usual, median } = compared(times)
      const isSlow = times[slowest]! >= 1.5 * median
      const from = Math.max(0, Math.min(isSlow ? slowest - 1 : 0, decodes.length - 3))
      const [first, end] = isSlow ? [Math.min(from, usual), Math.max(from + 3, usual + 1)] : [from, from + 3]
      const shown = end - first <= 8 ? decodes.slice(first, end) : decodes.slice(from, from + 3)
      expect(callsIn(trace, found)).toEqual(shown.map(([, name]) => name))
    })
  })

  test.each([
    [5, ['decode 15', 'decode 16', 'decode 17', 'decode 18', 'decode 19', 'decode 20', 'decode 21', 'decode 22']],
    [6, ['decode 20', 'decode 21', 'decode 22']],
  ])('with the nearest usual one, if at most 8 calls are in view then: of %i others between', async (others, shown) => {
    const MS = 1e6
    const log = input('calls', () => {
      let endNs = 0
      return Array.from({ length: 40 }, (_, call): TraceEvent => {
        const startNs = endNs
        endNs += Math.abs(call - 20) > others ? MS : call === 20 ? 9 * MS : 1.3 * MS
        return { kind: 'token', call, phase: 'decode', tokens: 1, startNs, endNs, tid: 7, inferred: 0 }
      })
    })
    const pieces: Uint8Array[] = []
    for await (const piece of convert(log)) pieces.push(piece)
    const bytes = Buffer.concat(pieces)
    const found = await findView(inPieces(bytes))
    expect((await withTrace(bytes, (trace) => callsIn(trace, found))).map(withoutTime)).toEqual(shown)
    const usual = `decode ${20 - others}`
    const texts = found.commands.filter(({ id }) => id.endsWith('AddNoteAtTimestamp')).map(({ args }) => args[1]!)
    expect(texts.map((text) => text.replace(/ · [^:;]*s(?=[:;]|$)/g, ''))).toEqual([
      `decode 21: 9.0 × the median${shown.length === 8 ? '' : `; compare with ${usual}`}`,
      `${usual}: 1.0 × the median`,
    ])
  })

  test('of those calls only that are drawn', async () => {
    const options = { tokens: [5, 7] } as const
    const found = await view(RECORDED, options)
    const calls = await withTrace(await traceOf(RECORDED, options), (trace) => callsIn(trace, found))
    expect(calls.map(withoutTime)).toEqual(['decode 5', 'decode 6', 'decode 7'])
  })

  test('the prefill, where nothing was decoded', async () => {
    const options = { tokens: [0, 0] } as const
    const found = await view(MOE, options)
    const calls = await withTrace(await traceOf(MOE, options), (trace) => callsIn(trace, found))
    expect(calls.map(withoutTime)).toEqual(['prefill (16 tokens)'])
  })

  test('compressed, too', async () => {
    const trace = await traceOf(MOE)
    expect(await findView(inPieces(gzipSync(trace)))).toEqual(await findView(inPieces(trace)))
  })
})

inLong(test)('the beginning of a long trace is enough', async () => {
  const trace = await traceOf(MOE)
  let read = 0
  async function* endless() {
    for (;;) {
      read += trace.length
      yield trace // again and again: packets of a trace may follow those of another
    }
  }
  const found = await findView(endless())
  expect((await withTrace(trace, (whole) => callsIn(whole, found))).map(withoutTime)).toEqual(['decode 1'])
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
  const ALLOWED = [
    ...['CopyTracksToWorkspaceByRegexWithAncestors', 'SwitchWorkspace', 'ExpandTracksByRegex', 'AddDebugSliceTrack'],
    ...['RunQueryAndShowTab', 'AddNoteAtTimestamp'],
  ]

  test('are ones that the UI runs from a URL, with texts as arguments', async () => {
    const { commands } = await view(RECORDED, { findings: true })
    expect([...new Set(commands.map(({ id }) => id.replace('dev.perfetto.', '')))]).toEqual(ALLOWED)
    for (const { args } of commands) for (const arg of args) expect(typeof arg).toBe('string')
  })

  test('copy the rows of the run to a workspace, none of them twice', async () => {
    const found = await view(RECORDED, { findings: true })
    const [pattern, workspace, by] = argsOf(found, 'CopyTracksToWorkspaceByRegexWithAncestors')
    expect([workspace, by]).toEqual([argsOf(found, 'SwitchWorkspace')[0], 'path'])
    const paths = await withTrace(await traceOf(RECORDED, { findings: true }), pathsIn)
    const copied = paths.filter((path) => new RegExp(pattern!).test(path))
    const rows = ['Findings', 'Phase', 'Tokens', 'tok/s', 'Graphs', 'worker 0', 'worker 0: state', 'worker 1']
    const root = 'LLM moe.gguf · 2 workers · CPU'
    const others = [
      'Copies',
      'GB/s',
      'GFLOP/s',
      ...[0, 1, 2, 3, 4, 5].map((layer) => `layer ${layer}: experts`),
      'bytes touched per operator',
      'compute buffer: live',
      ...['KV cache: cells used (inferred)', 'weights: offset read', 'KV cache: offset read'],
      'Memory',
    ]
    const all = [...rows, 'worker 1: state', ...others].map((row) => `${root} > ${row}`)
    expect(copied.sort()).toEqual(all.sort())
    expect(copied.filter((path) => copied.some((other) => path.startsWith(`${other} > `)))).toEqual([])
  })

  test('find the same rows in Chrome JSON, to whose names the UI adds a number or a unit', async () => {
    const [pattern] = argsOf(await view(RECORDED, { to: 'json' }), 'CopyTracksToWorkspaceByRegexWithAncestors')
    const names = ['Phase 2', 'Tokens 4', 'tok/s tok/s', 'worker 0 7', 'worker 0: state 8', 'GB/s GB/s']
    const paths = names.map((name) => `LLM moe.gguf · 2 workers · CPU 1 > ${name}`)
    expect(paths.filter((path) => !new RegExp(pattern!).test(path))).toEqual([])
  })

  test('list findings as the table below, most time first, and note slow calls and a usual one', async () => {
    const found = await view(RECORDED, { findings: true })
    const [sql] = argsOf(found, 'RunQueryAndShowTab')
    await withTrace(await traceOf(RECORDED, { findings: true }), (trace) => {
      const findings = trace.query("select name from slice where category = 'finding' order by id").rows.flat()
      expect(findings.length).toBeGreaterThan(0)
      expect(trace.query(sql!).rows.map(([name]) => name)).toEqual(findings)
      const notes = found.commands.filter(({ id }) => id.endsWith('AddNoteAtTimestamp')).map(({ args }) => args)
      const decodes = trace.query("select ts, dur, name from slice where name glob 'decode [0-9]*' order by ts").rows
      const { usual, median } = compared(decodes.map(([, dur]) => Number(dur)))
      const slow = decodes
        .filter(([, dur]) => Number(dur) >= 1.5 * median)
        .sort(([, a], [, b]) => Number(b) - Number(a))
        .slice(0, 3)
      expect(slow.length).toBeGreaterThan(0)
      const isSeen = callsIn(trace, found).includes(decodes[usual]![2]!)
      const texts = [...slow, decodes[usual]!].map(([ts, dur, name], i) => [
        `${ts}`,
        `${name}: ${(Number(dur) / median).toFixed(1)} × the median${i > 0 || isSeen ? '' : `; compare with ${decodes[usual]![2]}`}`,
      ])
      expect(notes).toEqual(texts)
    })
  })

  test('show the requests of a server, the slowest one in view', async () => {
    const log = readFileSync('test/fixtures/server/v0.7.0-lv4.log')
    const found = await view(log)
    const bytes = await traceOf(log)
    await withTrace(bytes, (trace) => {
      const [pattern] = argsOf(found, 'CopyTracksToWorkspaceByRegexWithAncestors')
      const copied = pathsIn(trace).filter((path) => new RegExp(pattern!).test(path))
      expect(copied.map((path) => path.split(' > ')[1])).toEqual(
        expect.arrayContaining(['slots busy', 'generated tok/s', 'slot 0', 'slot 0: tokens']),
      )
      const [[ts, endTs]] = trace.query(
        "select ts, ts + dur from slice where category = 'request' order by dur desc limit 1",
      ).rows as [[bigint, bigint]]
      expect([found.span![0] <= BigInt(ts), found.span![1] >= BigInt(endTs)]).toEqual([true, true])
    })
  })

  const KINDS = [
    ['by name and shape', {}, (op: Operator) => `${op.name} ${op.shape}`],
    ['by name, of decode calls, where shapes are not told', { detail: 'names' }, (op: Operator) => op.name],
  ] as const
  inParts(test).each(someOf(KINDS, 2))(
    'slow operators are those above three times the median of their kind: %s',
    async (_, options, kind) => {
      const bytes = await traceOf(MOE, options)
      const found = await findView(inPieces(bytes))
      const [drawn, operators, decode] = await withTrace(bytes, (trace) => {
        // Just as the UI does it.
        const [sql] = argsOf(found, 'AddDebugSliceTrack')
        trace.query(
          `create perfetto table debug as with data as (${sql}) select ts, dur, printf('%s', name) as name from data order by ts`,
        )
        const first = trace.query("select min(ts) from slice where name glob 'decode 1 *'").rows[0]![0]
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
      const plain = (name: unknown) => String(name).replace(/^worker \d: | ×\d+( · .*)?$/g, '')
      expect(drawn.map(([ts, dur, name]) => `${ts} ${dur} ${plain(name)}`).sort()).toEqual(expected.sort())
      for (const [, , name] of drawn) expect(Number(/ ×(\d+)/.exec(String(name))![1])).toBeGreaterThanOrEqual(3)
    },
  )
})

describe('of a run on GPUs, its first work is in view', () => {
  const fixture = (name: string) => {
    const bytes = readFileSync(`test/fixtures/${name}`)
    return name.endsWith('.gz') ? gunzipSync(bytes) : bytes
  }
  const OF_UI = ['GPU', 'Hardware Queues']

  const H100 = 'chrome-json/h100.json.gz'
  /** Opened as a log (rows of threads are in their groups), or as a trace, in which they are at the top. */
  const LOGS: readonly (readonly [
    name: string,
    as: 'log' | 'trace',
    streams: readonly string[],
    groups: readonly string[],
  ])[] = [
    ['nsys/one-gpu.sqlite.gz', 'trace', ['stream 7 (default), pid 9946'], []],
    ['nsys/two-processes.sqlite.gz', 'trace', ['stream 15, ctx 2, pid 112', 'stream 7, pid 111'], []],
    [H100, 'trace', ['stream 7, pid 25286'], ['PyTorch profiler']],
    [H100, 'log', ['stream 7, pid 25286'], ['Annotations on the GPU', 'PyTorch profiler', 'python3 25286']],
    ['chrome-json/gpu-only.json', 'trace', ['stream 0, pid 44077'], ['PyTorch profiler']],
  ]
  inParts(test).each(someOf(LOGS, 2, 1))('%s, as a %s: groups open, streams beside them', async (...the) => {
    const [name, as, streams, groups] = the
    const log = fixture(name)
    const options = { grouped: as === 'log' }
    const found = await view(log, options)
    await withTrace(await traceOf(log, options), (trace) => {
      const names = [...new Set([...trace.query('select name from track').rows.flat().map(String), ...OF_UI])]
      const matches = (id: string, texts: string[]) =>
        texts.filter((text) => new RegExp(argsOf(found, id)[0]!).test(text))
      const copied = matches('CopyTracksToWorkspaceByRegexWithAncestors', pathsIn(trace))
      const ofGpu = copied.filter((path) => path.startsWith('GPU > ')).map((path) => path.split(' > ')[2])
      expect(ofGpu.sort()).toEqual(streams)
      expect(copied.length).toBeGreaterThan(streams.length)
      expect(copied.filter((path) => copied.some((other) => path.startsWith(`${other} > `)))).toEqual([])
      expect(matches('ExpandTracksByRegex', names).sort()).toEqual([...OF_UI, ...groups].sort())
      const first = trace.query('select min(ts) from gpu_slice').rows[0]![0] as bigint
      const [start, end] = found.span!
      expect(start).toBeLessThanOrEqual(first)
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
    await withTrace(await traceOf(log), (trace) => {
      expect(callsIn(trace, found).length).toBeGreaterThan(0)
      // The first one begins with the trace: the UI ignores a span that begins before.
      const [first, last] = trace
        .query('select start_ts, end_ts from trace_bounds')
        .rows[0]!.map((ts) => BigInt(ts as bigint))
      expect([found.span![0], found.span![1] <= last!]).toEqual([first, true])
    })
    const [pattern] = argsOf(found, 'CopyTracksToWorkspaceByRegexWithAncestors')
    expect(pattern).toMatch(/\bTokens\b.*\btok\/s\b.*\bstream \d+/)
    expect(argsOf(found, 'ExpandTracksByRegex')[0]).toMatch(/\|GPU\|Hardware Queues\|/)
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
    const [pattern] = argsOf(found, 'CopyTracksToWorkspaceByRegexWithAncestors')
    expect(pattern).toMatch(/GPU\.\* > \(stream 7\b[^|]*\)/) // 8 has too little work
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

  test('carries all of it, is not cut by terminals, and less of it fits where URLs are limited to 2 040 characters', async () => {
    const found = await view(RECORDED, { findings: true })
    const short = viewerUrl(traceUrl, found, 2040)
    expect([short.length <= 2040, short.includes('AddDebugSliceTrack')]).toEqual([true, true])
    const url = viewerUrl(traceUrl, found)
    expect(url).toMatch(/^https:\/\/ui\.perfetto\.dev\/#!\/\?[\w%&=.,+-]+$/)
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
