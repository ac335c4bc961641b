import { describe, expect, test } from '@jest/globals'
import { convert, type Input, type Names, type Summary, type TraceEvent } from '../../lib/index.ts'
import { plural } from '../../lib/model/units.ts'
import { openTrace } from '../../lib/node.ts'
import type { Cell } from '../../lib/sql.ts'
import { plainBytes } from '../line/support.ts'
import { drawn } from '../printing-sink.ts'
import { input, inputEvent, ORIGIN_NS, switchOf, wakingOf } from './schedule.ts'

/** Two inputs that both tell of the scheduler. */

const SLICES = `select ts - ${ORIGIN_NS}, dur, cpu, tid from sched join thread using (utid) where tid != 0 order by ts`
const OVERLAPS = `select count(*) from sched a join sched b on a.cpu = b.cpu and b.ts >= a.ts and b.ts < a.ts + a.dur and a.id != b.id`
const ISSUES =
  "select name, extract_arg(arg_set_id, 'debug.detail') from slice where category = 'issue' and name like '%twice%'"

/** A thread on a CPU from `from` to `to`, again and again. */
const turns = (names: Names, cpu: number, tid: number, times: readonly [number, number][]): TraceEvent[] =>
  times.flatMap(([from, to]) => [
    switchOf(names, { cpu, at: from, from: 0, to: tid }),
    switchOf(names, { cpu, at: to, from: tid, left: 1, to: 0 }),
  ])

const MS = 1e6

async function both(
  inputs: Input[],
): Promise<{ slices: Cell[][]; overlaps: Cell; issues: Cell[][]; summaries: Summary[] }> {
  const pieces = convert(inputs)
  const all: Uint8Array[] = []
  let next = await pieces.next()
  for (; !next.done; next = await pieces.next()) all.push(next.value)
  const trace = await openTrace(Buffer.concat(all))
  const ask = (sql: string) => trace.query(sql).rows
  const found = { slices: ask(SLICES), overlaps: ask(OVERLAPS)[0]![0]!, issues: ask(ISSUES) }
  expect(trace.problems()).toEqual([])
  trace.close()
  return { ...found, summaries: next.value }
}

describe('of two inputs that tell of the same CPU', () => {
  const first = input('a.dat', (names) => [
    ...turns(names, 0, 5, [
      [10 * MS, 12 * MS],
      [14 * MS, 20 * MS],
    ]),
    wakingOf(names, 0, 19 * MS, 5, 6),
  ])

  test('the first one is drawn, the other where and when it tells more', async () => {
    const second = input('b.data', (names) => [
      ...turns(names, 0, 5, [
        [10 * MS + 900, 12 * MS + 900], // the same, a little off
        [14 * MS, 20 * MS + 900],
        [30 * MS, 31 * MS], // the first has ended
      ]),
      wakingOf(names, 0, 19 * MS, 5, 6),
      ...turns(names, 1, 7, [[11 * MS, 13 * MS]]), // a CPU that the first does not tell of
    ])
    const { slices, overlaps, issues, summaries } = await both([first, second])
    expect(slices).toEqual([
      [10 * MS, 2 * MS, 0, 5],
      [11 * MS, 2 * MS, 1, 7],
      [14 * MS, 6 * MS, 0, 5],
      [30 * MS, 1 * MS, 0, 5],
    ])
    expect(overlaps).toBe(0)
    const detail = '4 switches and 1 waking (CPU 0): another input records the same'
    expect(issues).toEqual([['left out, recorded twice', detail]])
    expect(summaries[0]!.issues).toEqual([])
    expect(summaries[1]!.issues).toMatchObject([{ title: 'left out, recorded twice', count: 1, first: { detail } }])
  })

  test('switch records, which tell less, come after tracepoints, in whatever order they are given', async () => {
    const records = input(
      'perf.data',
      (names) => turns(names, 0, 5, [[10 * MS, 12 * MS]]),
      inputEvent({ capabilities: { waitStates: false } }),
    )
    for (const inputs of [
      [records, first],
      [first, records],
    ]) {
      const { slices, summaries } = await both(inputs)
      expect(slices).toHaveLength(2)
      expect(summaries[inputs.indexOf(records)]!.issues[0]!.first.detail).toMatch(/^2 switches and 0 wakings \(CPU 0\)/)
    }
  })

  test('a third is drawn where neither tells, and texts without CPUs tell of states but once', async () => {
    const noCpu = (name: string) => input(name, (names) => turns(names, -1, 5, [[10 * MS, 12 * MS]]))
    const third = input('c', (names) => turns(names, 2, 9, [[10 * MS, 12 * MS]]))
    const issue = (at: number) =>
      `Issues | ${at} left out, recorded twice {detail: 2 switches and 0 wakings (CPU unknown): another input records the same}`
    expect(await drawn([first, noCpu('b'), third, noCpu('d')], {}, { args: ['detail'] })).toEqual([
      'CPUs/CPU 0 | 10000000–12000000 task 5',
      'CPUs/CPU 0 | 14000000–20000000 task 5',
      issue(10_000_000),
      issue(10_000_001),
      'CPUs/CPU 2 | 10000000–12000000 task 9',
    ])
  })
})

test('a recording of trace-cmd beside itself is drawn once', async () => {
  const source = plainBytes('trace-dat/mono-v6.dat.gz')
  const alone = await both([{ name: 'a.dat', source }])
  const twice = await both([
    { name: 'a.dat', source },
    { name: 'b.dat', source },
  ])
  expect(twice.slices).toEqual(alone.slices)
  expect(twice.overlaps).toBe(0)
  const { switches, wakings } = alone.summaries[0]!.scheduler!
  expect(twice.issues).toEqual([
    [
      'left out, recorded twice',
      `${plural(switches, 'switch')} and ${plural(wakings, 'waking')} (CPU 0, 1): another input records the same`,
    ],
  ])
})

test('states that perf tells of single threads leave those of the log where they are', async () => {
  const state = (tid: number, atNs: number, kind: 'running' | 'ended', thread?: number): TraceEvent => ({
    kind: 'state',
    tid,
    cpu: 0,
    state: kind,
    atNs,
    ...(thread === undefined ? {} : { thread }),
  })
  const log = input('run.ggtrace', (names) => [
    state(5, 10, 'running', names.id('worker')),
    state(5, 20, 'ended', names.id('worker')),
  ])
  const perf = input('perf.data', (names) => [
    { kind: 'thread', what: 'known', atNs: 0, tid: 5, tgid: 5, comm: names.id('llama'), parentTid: -1 },
    state(5, 10, 'running', names.id('llama')),
    state(5, 20, 'ended', names.id('llama')),
  ])
  expect(await drawn([log, perf])).toEqual([
    'worker: state | 10–20 running on CPU 0',
    'llama: state | 10–20 running on CPU 0',
  ])
})

test('a CPU whose first switch does not tell who leaves is drawn from there on', async () => {
  const records = input('perf.data', (names) => [
    { ...switchOf(names, { cpu: 0, at: 10, from: 0, to: 5 }), prevTid: -1, prevComm: 0, prevPrio: -1 },
    switchOf(names, { cpu: 0, at: 20, from: 5, left: 1, to: 6 }),
    switchOf(names, { cpu: 0, at: 35, from: 6, left: 1, to: 0 }),
  ])
  const { slices } = await both([records])
  expect(slices).toEqual([
    [10, 10, 0, 5],
    [20, 15, 0, 6],
  ])
})
