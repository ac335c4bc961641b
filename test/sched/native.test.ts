import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import type { TraceEvent } from '../../lib/index.ts'
import type { Cell, OpenTrace } from '../../lib/sql.ts'
import { type Act, actsOf, eventsOf, expectedSlices, expectedStates } from './model.ts'
import { comm, input, inputEvent, ORIGIN_NS, switchOf, traceOf, wakingOf } from './schedule.ts'

const SLICES = `select ts - ${ORIGIN_NS}, dur, cpu, end_state, tid from sched_slice join thread using (utid) order by cpu, ts`

const STATES = `select ts - ${ORIGIN_NS}, dur, state, thread_state.cpu, thread.tid, waker.tid
  from thread_state join thread using (utid) left join thread waker on waker.utid = waker_utid
  where thread.tid != 0 order by thread.tid, ts`

const OVERLAPS = `select count(*) from sched_slice a join sched_slice b on a.cpu = b.cpu and a.id != b.id
  and a.ts < b.ts + b.dur and b.ts < a.ts + a.dur`

const rows = (trace: OpenTrace, sql: string) => trace.query(sql).rows

describe("what the scheduler did, in Perfetto's own tables", () => {
  test('are the slices, states and wakers that follow from the events, in whatever order CPUs come', async () => {
    const acts = actsOf({ cpus: 3, tids: 6, length: 120 })
    await fc.assert(
      fc.asyncProperty(acts, fc.boolean(), async (acts: Act[], cpuAfterCpu) => {
        const trace = await traceOf(input('switches', (names) => eventsOf(names, acts, cpuAfterCpu)))
        try {
          expect(rows(trace, SLICES)).toEqual(expectedSlices(acts))
          expect(rows(trace, STATES)).toEqual(expectedStates(acts))
          expect(rows(trace, OVERLAPS)).toEqual([[0]])
        } finally {
          trace.close()
        }
      }),
      { numRuns: 15 },
    )
  })

  test('hold across bundles, and cost about 8 bytes a switch', async () => {
    const count = 10_000
    const make = (names: Parameters<typeof eventsOf>[0]) =>
      Array.from({ length: count }, (_, i) =>
        switchOf(names, { cpu: 0, at: i * 5000, from: i % 2, left: 1, to: (i + 1) % 2 }),
      )
    const trace = await traceOf(input('switches', make))
    expect(rows(trace, 'select count(*), sum(dur) from sched_slice where dur >= 0')).toEqual([
      [count - 1, (count - 1) * 5000],
    ])
    const [[bytes]] = rows(trace, "select int_value from metadata where name = 'trace_size_bytes'") as [[number]]
    expect(bytes).toBeLessThan(8.5 * count)
    trace.close()
  })

  test('of one time stay in the order in which they came, nanoseconds apart where Perfetto would mix them up', async () => {
    const trace = await traceOf(
      input('s', (names) => [
        switchOf(names, { cpu: 0, at: 0, from: 0, to: 1 }),
        switchOf(names, { cpu: 1, at: 10, from: 0, to: 2 }),
        switchOf(names, { cpu: 1, at: 1000, from: 2, left: 1, to: 4 }),
        switchOf(names, { cpu: 1, at: 1000, from: 4, to: 3 }),
        wakingOf(names, 0, 1000, 1, 2),
        switchOf(names, { cpu: 0, at: 1000, from: 1, left: 1, to: 2 }),
        switchOf(names, { cpu: 0, at: 2000, from: 2, left: 1, to: 3 }),
        wakingOf(names, 0, 2000, 3, 2),
      ]),
    )
    expect(rows(trace, STATES).filter(([, , , , tid]) => tid === 2)).toEqual([
      [10, 990, 'Running', 1, 2, null],
      [1000, 1, 'S', null, 2, null],
      [1001, 1, 'R', null, 2, 1],
      [1002, 998, 'Running', 0, 2, null],
      [2000, 1, 'S', null, 2, null],
      [2001, -1, 'R', null, 2, 3],
    ])
    trace.close()
  })

  test('are the same for any schedule of a clock that is coarse', async () => {
    const coarse = (acts: Act[]) => acts.map((act) => ({ ...act, at: act.at - (act.at % 1_000_000) }))
    await fc.assert(
      fc.asyncProperty(actsOf({ cpus: 3, tids: 6, length: 120 }), async (acts: Act[]) => {
        const trace = await traceOf(input('switches', (names) => eventsOf(names, coarse(acts))))
        // Some nanoseconds later than they were: as far as they go is left away.
        const round = (found: readonly Cell[][]) =>
          found.map(([ts, dur, ...rest]) => [micro(ts!), dur === -1 ? -1 : micro(Number(ts) + Number(dur)), ...rest])
        const micro = (ns: Cell) => Math.floor(Number(ns) / 1000)
        try {
          expect(round(rows(trace, STATES))).toEqual(round(expectedStates(coarse(acts)) as Cell[][]))
        } finally {
          trace.close()
        }
      }),
      { numRuns: 15 },
    )
  })

  test('have every end state that the kernel has, and priorities', async () => {
    const letters = ['S', 'D', 'T', 't', 'X', 'Z', 'P', 'I', 'R', 'R+']
    const bits = [1, 2, 4, 8, 0x10, 0x20, 0x40, 0x80, 0, 0x100]
    const make = (names: Parameters<typeof eventsOf>[0]) => [
      switchOf(names, { cpu: 0, at: 0, from: 0, to: 100 }),
      ...bits.map((left, i) => switchOf(names, { cpu: 0, at: (i + 1) * 10, from: 100 + i, left, to: 101 + i })),
    ]
    const trace = await traceOf(input('switches', make))
    expect(rows(trace, 'select end_state from sched_slice where dur > 0 order by ts').flat()).toEqual(letters)
    expect(rows(trace, 'select distinct priority from sched_slice').flat()).toEqual([120])
    expect(rows(trace, 'select distinct name from thread where tid = 105').flat()).toEqual([comm(105)])
    trace.close()
  })

  test('are on the clock of the trace, though packets are in BOOTTIME', async () => {
    const clocks: TraceEvent = {
      kind: 'clocks',
      readings: [
        { clock: 'MONOTONIC', ns: ORIGIN_NS },
        { clock: 'BOOTTIME', ns: ORIGIN_NS + 7_777_777_777n },
        { clock: 'REALTIME', ns: 1_700_000_000_000_000_000n },
      ],
    }
    const late = clocks.readings.map(({ clock, ns }, i) => ({ clock, ns: ns + 1_000_000_000n + BigInt(i * 50) }))
    const trace = await traceOf(
      input('switches', (names) => [
        clocks,
        { kind: 'counter', name: names.id('mark'), unit: 'count', atNs: 2_000_000_000, value: 1 },
        { kind: 'clocks', readings: late },
        switchOf(names, { cpu: 0, at: 10, from: 0, to: 11 }),
        switchOf(names, { cpu: 0, at: 2_000_000_000, from: 11, left: 1, to: 0 }),
      ]),
    )
    expect(rows(trace, `select ts - ${ORIGIN_NS}, dur from sched_slice`)).toEqual([
      [10, 1_999_999_990],
      [2_000_000_000, -1],
    ])
    expect(rows(trace, `select ts - ${ORIGIN_NS} from counter`)).toEqual([[2_000_000_000]])
    trace.close()
  })

  test('name the kernel, and decode states as of 4.14 where it is older or not told', async () => {
    const release = async (kernel?: string) => {
      const first = inputEvent(kernel === undefined ? {} : { attributes: { kernel } })
      const trace = await traceOf(
        input(
          's',
          (names) => [
            switchOf(names, { cpu: 0, at: 0, from: 0, to: 1 }),
            switchOf(names, { cpu: 0, at: 5, from: 1, left: 0x100, to: 2 }),
          ],
          first,
        ),
      )
      const [found] = rows(trace, "select str_value from metadata where name = 'system_release'").flat()
      expect(rows(trace, 'select end_state from sched_slice where dur > 0 order by ts').flat()).toContain('R+')
      trace.close()
      return found
    }
    expect(await release('6.18.44-fc')).toBe('6.18.44-fc')
    expect(await release('3.10.0')).toBe('4.14.0')
    expect(await release()).toBe('4.14.0')
  })

  test('say which process a thread is of', async () => {
    const thread =
      (tid: number, tgid: number, name: string) =>
      (names: Parameters<typeof eventsOf>[0]): TraceEvent => ({
        kind: 'thread',
        what: 'known',
        atNs: 0,
        tid,
        tgid,
        comm: names.id(name),
        parentTid: -1,
      })
    const trace = await traceOf(
      input('s', (names) => [
        thread(10, 10, 'llama-cli')(names),
        switchOf(names, { cpu: 0, at: 0, from: 0, to: 11 }),
        thread(11, 10, 'worker')(names),
        thread(50, 50, 'never seen')(names),
        switchOf(names, { cpu: 0, at: 10, from: 11, left: 1, to: 10 }),
        wakingOf(names, 0, 15, 10, 11),
      ]),
    )
    const sql =
      'select tid, process.pid, process.name from thread left join process using (upid) where tid > 0 order by tid'
    expect(rows(trace, sql)).toEqual([
      [10, 10, 'llama-cli'],
      [11, 10, 'llama-cli'],
    ])
    trace.close()
  })
})

describe('what is wrong with switches', () => {
  test('one that is missing is an issue; what follows is right', async () => {
    const trace = await traceOf(
      input('s', (names) => [
        switchOf(names, { cpu: 0, at: 0, from: 0, to: 1 }),
        switchOf(names, { cpu: 0, at: 10, from: 2, left: 1, to: 3 }),
        switchOf(names, { cpu: 0, at: 20, from: 3, left: 1, to: 0 }),
      ]),
    )
    expect(rows(trace, SLICES)).toEqual([
      [0, 10, 0, 'R', 1],
      [10, 0, 0, 'S', 2],
      [10, 10, 0, 'S', 3],
      [20, -1, 0, null, 0],
    ])
    expect(
      rows(trace, "select name, extract_arg(arg_set_id, 'debug.detail') from slice where category = 'issue'"),
    ).toEqual([['lost switches', 'CPU 0: expected a switch from thread 1, found one from 2: others are missing']])
    trace.close()
  })

  test('one that comes too late is an issue, and left out', async () => {
    const trace = await traceOf(
      input('s', (names) => [
        switchOf(names, { cpu: 0, at: 10, from: 0, to: 1 }),
        switchOf(names, { cpu: 1, at: 5, from: 0, to: 2 }),
        switchOf(names, { cpu: 0, at: 5, from: 7, to: 8 }),
        switchOf(names, { cpu: 0, at: 20, from: 1, left: 1, to: 0 }),
      ]),
    )
    expect(rows(trace, SLICES).map(([ts, , cpu]) => [ts, cpu])).toEqual([
      [10, 0],
      [20, 0],
      [5, 1],
    ])
    expect(rows(trace, "select name from slice where category = 'issue'")).toEqual([['late switch']])
    trace.close()
  })
})
