import { describe, expect, test } from '@jest/globals'
import { type Analysis, analyze } from '../../lib/index.ts'
import { openTrace } from '../../lib/node.ts'
import { converted, plainBytes } from '../line/support.ts'
import { documentOf, type JsonEvent } from './chrome-json/documents.ts'

/** Several ranks of PyTorch's profiler in one file, as programs merge them: each process keeps its number, its name and its work. */

const ONE = JSON.parse(new TextDecoder().decode(plainBytes('chrome-json/communication.json.gz'))) as {
  traceEvents: JsonEvent[]
}
const HOST = 2910249
/** The events of a rank with other processes; the profiler's own have no number. */
const rank = (of: (pid: number) => unknown, name = 'python3'): JsonEvent[] =>
  ONE.traceEvents.map((event) => ({
    ...event,
    ...(typeof event['pid'] === 'number' && { pid: of(event['pid']) }),
    ...(event['name'] === 'process_name' && typeof event['pid'] === 'number' && { args: { name } }),
  }))
const inTurn = (a: readonly JsonEvent[], b: readonly JsonEvent[]) => a.flatMap((event, i) => [event, b[i]!])

const alone = analyze({ name: 'one', source: documentOf(ONE.traceEvents) })
const devicesOf = ({ gpu }: Analysis) =>
  gpu!.devices.map(({ device, pid, work, work_ns, launch_latency }) => ({
    ...{ device, pid, work, work_ns, launches: launch_latency?.count },
  }))
const callsOf = ({ gpu }: Analysis) => gpu!.processes.map(({ pid, ...of }) => ({ pid, ...of }))

const LARGE = 10_000_000_000
const MERGED: [string, (number: number) => (pid: number) => unknown, number[]][] = [
  ['a large number before each process', (n) => (pid) => n * LARGE + pid, [LARGE + HOST, 2 * LARGE + HOST]],
  ['a number below 2^31', (n) => (pid) => n * 100_000_000 + pid, [100_000_000 + HOST, 200_000_000 + HOST]],
  [
    'a text before each process',
    (n) => (pid) => (pid === 0 ? `[TP0${n}] 0` : `[TP0${n}] ${pid + n}`),
    [HOST + 1, HOST + 2],
  ],
]

describe.each(MERGED)('%s', (_, of, pids) => {
  test.each([
    ['one after the other', (a: readonly JsonEvent[], b: readonly JsonEvent[]) => [...a, ...b]],
    ['in turn', inTurn],
  ])('%s', async (_, merge) => {
    const events = merge(rank(of(1)), rank(of(2)))
    const analysis = await analyze({ name: 'ranks', source: documentOf(events) })
    const [device] = devicesOf(await alone)
    expect(devicesOf(analysis)).toEqual(pids.map((pid) => ({ ...device, pid })))
    const [calls] = callsOf(await alone)
    expect(callsOf(analysis)).toEqual(pids.map((pid) => ({ ...calls, pid })))
    expect(analysis.inputs[0]!.issues).toEqual({})
  })
})

test('queues name their process, rows of threads are in its group', async () => {
  const events = [...rank((pid) => LARGE + pid, 'rank 1'), ...rank((pid) => 2 * LARGE + pid, 'rank 2')]
  const trace = await openTrace(await converted(documentOf(events), { grouped: true }))
  try {
    expect(trace.problems()).toEqual([])
    const rows = trace.query(`select distinct p.name || ' / ' || t.name from track t join slice s on s.track_id = t.id
      join track p on p.id = t.parent_id where s.category = 'cpu_op' order by 1`)
    const threads = [...new Set(ONE.traceEvents.filter((event) => event['cat'] === 'cpu_op').map(({ tid }) => tid))]
    const names = [1, 2].flatMap((n) =>
      threads.map((tid) => expect.stringMatching(new RegExp(`^rank ${n} ${n * LARGE + HOST} / .*${tid}$`))),
    )
    expect(rows.rows.length).toBe(2 * threads.length)
    expect(rows.rows.map(([name]) => name)).toEqual(expect.arrayContaining(names))
    const queues = trace.query(`select distinct t.name from gpu_slice s join track t on t.id = s.track_id`)
    const processes = new Set(queues.rows.map(([name]) => /pid (\d+)$/.exec(`${name}`)![1]))
    expect(processes).toEqual(new Set([`${LARGE + HOST}`, `${2 * LARGE + HOST}`]))
  } finally {
    trace.close()
  }
})

test('the checks of findings select the work of a process above 2^31', async () => {
  const source = documentOf(
    Array.from({ length: 200 }, (_, i) => [
      {
        ...{ ph: 'X', cat: 'cuda_runtime', name: 'cudaLaunchKernel', pid: LARGE, tid: 1, ts: 100 * i, dur: 5 },
        args: { correlation: i },
      },
      {
        ...{ ph: 'X', cat: 'kernel', name: 'k', pid: 0, tid: 7, ts: 100 * i + 6, dur: 2 },
        args: { device: 0, stream: 7, correlation: i },
      },
    ]).flat(),
  )
  const { findings } = await analyze({ name: 'launches', source })
  const [launches] = findings.filter(({ rule }) => rule === 'gpu-launches')
  const { evidence, check } = launches!
  expect(evidence).toMatchObject({ pid: LARGE, gaps: 199 })
  const trace = await openTrace(await converted(source))
  const { rows } = trace.query(check.sql!)
  trace.close()
  expect(rows).toEqual([[evidence['host_wait_ns']]])
})

test('operators belong to launches of their own process, though threads of two containers have one number', async () => {
  const of = (pid: number, operator: string, correlation: number) => (ts: number, i: number) => [
    { ph: 'X', cat: 'cpu_op', name: operator, pid, tid: 7, ts, dur: 50 },
    {
      ...{ ph: 'X', cat: 'cuda_runtime', name: 'cudaLaunchKernel', pid, tid: 7, ts: ts + 20, dur: 5 },
      args: { correlation: correlation + i },
    },
    {
      ...{ ph: 'X', cat: 'kernel', name: 'k', pid: pid / LARGE - 1, tid: 3, ts: ts + 60, dur: 2 },
      args: { device: pid / LARGE - 1, stream: 3, correlation: correlation + i },
    },
  ]
  const times = Array.from({ length: 20 }, (_, i) => 100 * i)
  const [first, second] = [of(LARGE, 'aten::first', 0), of(2 * LARGE, 'aten::second', 1000)]
  // Each operator of the second process is open when one of the first launches.
  const source = documentOf(times.flatMap((ts, i) => [...first(ts, i), ...second(ts + 10, i)]))
  const { gpu } = await analyze({ name: 'containers', source })
  const launchers = gpu!.devices.map(({ launchers }) =>
    launchers
      .filter(({ kind }) => kind === 'operator')
      .map(({ level, rows }) => [level, rows.map(({ name, launches }) => [name, launches])]),
  )
  const expected = (name: string) => ['innermost', 'outermost'].map((level) => [level, [[name, 20]]])
  expect(launchers).toEqual([expected('aten::first'), expected('aten::second')])
})
