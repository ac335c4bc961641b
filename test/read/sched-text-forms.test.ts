import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { TaskState } from '../../lib/core.ts'
import type { TraceEvent } from '../../lib/index.ts'
import { sniffFormat } from '../../lib/read/index.ts'
import { eventsIn } from '../line/support.ts'
import { inParts, someOf } from '../long.ts'
import { inputOf } from './sched-text.ts'

/** What no capture shows: names made to be misread, clocks, losses, disorder, older and newer tools. */

const encode = (text: string) => new TextEncoder().encode(text)
const read = (text: string | Uint8Array) => eventsIn(typeof text === 'string' ? encode(text) : text)
/** Of the reader: switches that do not follow from each other are told by whoever puts them together. */
const issuesOf = (events: readonly TraceEvent[]) =>
  events.flatMap((event) =>
    event.kind === 'issue' && event.title !== 'lost switches' ? [`${event.title}: ${event.detail}`] : [],
  )
const switchesOf = (events: readonly TraceEvent[]) => events.filter((event) => event.kind === 'switch')

interface Told {
  readonly prev: string
  readonly next: string
  readonly prevTid: number
  readonly nextTid: number
  readonly prio: number
}

const pad = (text: string, bytes: number) => ' '.repeat(Math.max(0, bytes - encode(text).length)) + text
const padEnd = (text: string, bytes: number) => text + ' '.repeat(Math.max(0, bytes - encode(text).length))
const fields = ({ prev, next, prevTid, nextTid, prio }: Told, state = 'S', arrow = ' ==>') =>
  `prev_comm=${prev} prev_pid=${prevTid} prev_prio=${prio} prev_state=${state}${arrow} next_comm=${next} next_pid=${nextTid} next_prio=${prio}`
const short = ({ prev, next, prevTid, nextTid, prio }: Told) =>
  `${prev}:${prevTid} [${prio}] S ==> ${next}:${nextTid} [${prio}]`

const both = (value: number) => `0x${value.toString(16)} (${value})`
const named = ({ prev, next, prevTid, nextTid, prio }: Told) =>
  `prev_comm=${prev} prev_pid=${both(prevTid)} prev_prio=${both(prio)} prev_state=0x1 (1) next_comm=${next} next_pid=${both(nextTid)} next_prio=${both(prio)}`

/** Every form that a switch is printed in. */
const FORMS: Readonly<Record<string, (told: Told) => string>> = {
  trace: (told) =>
    `${pad(told.prev, 16)}-${`${told.prevTid}`.padEnd(7)} [001] d..2. 12.000005: sched_switch: ${fields(told)}`,
  'trace of Linux 4': (told) =>
    `${pad(told.prev, 16)}-${told.prevTid}  [001] d..2    12.000005: sched_switch: ${fields(told)}`,
  'with tgid': (told) =>
    `${pad(told.prev, 16)}-${told.prevTid} (-------) [001] d..2. 12.000005: sched_switch: ${fields(told)}`,
  'no flags': (told) => `${pad(told.prev, 16)}-${told.prevTid} [001]  12.000005: sched_switch: ${fields(told)}`,
  fields: (told) => `${pad(told.prev, 16)}-${told.prevTid} [001] d..2. 12.000005: sched_switch: ${named(told)}`,
  report: (told) => `${pad(told.prev, 16)}-${told.prevTid} [001] 12.000005: sched_switch:         ${short(told)}`,
  'report -t --ts-diff': (told) =>
    `${pad(told.prev, 16)}-${told.prevTid} [001] 12.000005000: (+4)     sched_switch: ${short(told)}`,
  'report -R': (told) =>
    `${pad(told.prev, 16)}-${told.prevTid} [001] 12.000005: sched_switch:  ${fields(told, '1', '')}`,
  perf: (told) =>
    `${pad(told.prev, 16)} ${`${told.prevTid}`.padStart(7)} [001]    12.000005:       sched:sched_switch: ${fields(told)}`,
  'perf, all fields': (told) =>
    `${pad(told.prev, 16)} ${told.prevTid}/${told.prevTid}   [001] K     12.000005000:          1       sched:sched_switch: ${fields(told)} ffffffff821f8298 __schedule`,
  bpftrace: ({ prev, next, prevTid, nextTid, prio }) =>
    `g2p switch 12000005000 1 ${prevTid} ${prio} 1 ${nextTid} ${prio} ${padEnd(prev, 16)}|${next}`,
  'bpftrace -f json': (told) =>
    JSON.stringify({ type: 'printf', data: `${FORMS['bpftrace']!(told)}\n` })
      .replace(/:"/g, ': "')
      .replace(',"data', ', "data'),
}

/** What may stand in names, and what is made to be taken for something else; at most 15 bytes of it. */
const piece = fc.constantFrom(
  ...['a', '7', ' ', ':', '-', '=', '[', ']', '(', ')', '|', '"', '\\', '/', '>', 'ö', '.', '+', '#', '\t'],
  ...[' pid=1', ' prev_pid=2', ' next_pid=3', ' prio=4', ':1 [2]', ' S ==> ', '[001]', ' 12.3: ', '-5 [001] ', 'comm='],
)
const name = fc
  .array(piece, { minLength: 1, maxLength: 15 })
  .map((pieces) => {
    let text = ''
    for (const part of pieces) if (encode(text + part).length <= 15) text += part
    return text
  })
  .filter((text) => text.trim() === text && text !== '')
const tid = fc.integer({ min: 1, max: 4_194_304 })
const told = fc.record({ prev: name, next: name, prevTid: tid, nextTid: tid, prio: fc.integer({ min: 0, max: 139 }) })

describe('a switch', () => {
  inParts(test).each(someOf(Object.keys(FORMS), 4))('%s: whatever the threads are called', async (form) => {
    await fc.assert(
      fc.asyncProperty(told, async (switched) => {
        const { events, names } = await readAs(form, `${FORMS[form]!(switched)}\n`)
        const found = switchesOf(events).map(({ prevComm, nextComm, ...event }) => ({
          ...event,
          prev: names.text(prevComm),
          next: names.text(nextComm),
        }))
        const { prev, next, prevTid, nextTid, prio } = switched
        const expected = {
          kind: 'switch',
          cpu: 1,
          atNs: 0,
          prevTid,
          prevPrio: prio,
          prevState: TaskState.S,
          nextTid,
          nextPrio: prio,
          prev,
          next,
        }
        expect(found).toEqual([expected])
        expect(inputOf(events).originNs).toBe(12_000_005_000n)
        expect(issuesOf(events)).toEqual([])
      }),
      { numRuns: 300 },
    )
  })

  /** Detection has seen a text before; names alone are no test of it. */
  const readAs = (form: string, text: string) => {
    const from = form.startsWith('perf') ? 'perf-script' : form.startsWith('bpf') ? 'bpftrace' : 'ftrace'
    return eventsIn(encode(text), { from } as object)
  }
})

describe('the state of who leaves', () => {
  const one = async (row: string) => switchesOf((await read(`${row}\n`)).events)[0]?.prevState
  const TOLD: Told = { prev: 'a', next: 'b', prevTid: 5, nextTid: 6, prio: 120 }
  const at = '               a-5 [000] 1.000000: sched_switch: '

  test.each([
    ['R', 0],
    ['R+', TaskState['+']],
    ['S', TaskState.S],
    ['D', TaskState.D],
    ['T', TaskState.T],
    ['t', TaskState.t],
    ['X', TaskState.X],
    ['Z', TaskState.Z],
    ['P', TaskState.P],
    ['I', TaskState.I],
    ['D|K', TaskState.D],
    ['x', TaskState.X],
    ['S|D', TaskState.S | TaskState.D],
    ['0', 0],
    ['256', TaskState['+']],
    ['130', TaskState.D | TaskState.I],
  ])('%s', async (state, bits) => expect(await one(at + fields(TOLD, state))).toBe(bits))

  test.each([
    ['Z', TaskState.X],
    ['X', TaskState.Z],
    ['W', TaskState.I],
    ['I', TaskState.I],
    ['R+', TaskState['+']],
  ])("trace-cmd's %s", async (state, bits) => expect(await one(`${at}a:5 [120] ${state} ==> b:6 [120]`)).toBe(bits))

  test.each([
    ['4096', TaskState['+']],
    ['0x1000', TaskState['+']],
    ['2048', TaskState['+']],
    ['1026', TaskState.D],
  ])('number %s of an older kernel', async (state, bits) => {
    const back = { ...TOLD, prev: 'b', next: 'a', prevTid: 6, nextTid: 5 }
    const { events } = await read(`${at}${fields(TOLD, state)}\n${at}${fields(back, state)}\n`)
    expect(switchesOf(events).map(({ prevState }) => prevState)).toEqual([bits, bits])
    const issues = events.flatMap((event) => (event.kind === 'issue' ? [[event.code, event.detail]] : []))
    const hex = Number(state).toString(16)
    expect(issues).toEqual([['old-thread-states', `expected at most 0x1ff, found 0x${hex}`]])
  })

  test('another one is told', async () => {
    const { events } = await read(`${at}${fields(TOLD)}\n${at}${fields(TOLD, 'Q')}\n`)
    expect(switchesOf(events)).toHaveLength(1)
    expect(issuesOf(events)[0]).toMatch(/^unreadable row: expected the fields of sched_switch, found " +a-5 \[000\]/)
  })
})

const ROW = (ns: number, cpu = 0) =>
  `          thread-5     [00${cpu}] d..2. ${(ns / 1e9).toFixed(6)}: sched_switch: prev_comm=a prev_pid=5 prev_prio=120 prev_state=S ==> next_comm=b next_pid=6 next_prio=120\n`
const WAKING = (seconds: string, event = 'waking') =>
  `          thread-5     [000] d.h2. ${seconds}: sched_${event}: comm=b pid=6 prio=120 target_cpu=001\n`
const MARK = (seconds: string, text: string) =>
  `            bash-9       [001] ...1. ${seconds}: tracing_mark_write: ${text}\n`

describe('the clock of ftrace', () => {
  const clockOf = async (text: string) => {
    const { events } = await read(text)
    const { clock, originNs, attributes } = inputOf(events)
    return { clock, originNs, from: attributes['clock_from'], issues: issuesOf(events), events }
  }

  test('is not told', async () => {
    const { clock, originNs, from } = await clockOf(ROW(5e9))
    expect([clock, originNs, from]).toEqual(['unknown', 5_000_000_000n, undefined])
  })

  test.each([
    ['mono', 'MONOTONIC'],
    ['boot', 'BOOTTIME'],
    ['mono_raw', 'MONOTONIC_RAW'],
  ])('is named by a marker: %s', async (name, clock) => {
    const found = await clockOf(ROW(5e9) + MARK('5.000010', `g2p clock ${name}`) + MARK('5.1', 'clock_sync: mono=9'))
    expect([found.clock, found.originNs]).toEqual([clock, 5_000_000_000n])
    expect(found.from).toContain('names it')
  })

  test('is moved by a marker that holds readings, which also join the clocks', async () => {
    const mark = MARK('5.000010', 'clock_sync: mono=7000010000 boot=8000010000 real=1700000000000000000')
    const { clock, originNs, from, events } = await clockOf(ROW(5e9) + mark)
    expect([clock, originNs]).toEqual(['MONOTONIC', 7_000_000_000n])
    expect(from).toMatch(/^inferred: the marker clock_sync moves all times by 2000 ms/)
    const clocks = events.flatMap((event) =>
      event.kind === 'clocks' ? [event.readings.map(({ clock: c, ns }) => [c, ns])] : [],
    )
    expect(clocks).toEqual([
      [
        ['MONOTONIC', 7_000_010_000n],
        ['BOOTTIME', 8_000_010_000n],
        ['REALTIME', 1_700_000_000_000_000_000n],
      ],
    ])
  })

  test("is moved by Android's markers", async () => {
    const marks =
      MARK('5.000010', 'trace_event_clock_sync: parent_ts=7.00001') +
      MARK('5.000012', 'trace_event_clock_sync: realtime_ts=1700000000000')
    const { clock, originNs, events } = await clockOf(ROW(5e9) + marks)
    expect([clock, originNs]).toEqual(['MONOTONIC', 7_000_000_000n])
    const [joined] = events.filter((event) => event.kind === 'clocks')
    expect(joined!.readings).toEqual([
      { clock: 'MONOTONIC', ns: 7_000_012_000n },
      { clock: 'REALTIME', ns: 1_700_000_000_000_000_000n },
    ])
  })

  test('that a marker tells too late is not used, and that is told', async () => {
    const rows = Array.from({ length: 9000 }, (_, i) => ROW(5e9 + i * 1000)).join('')
    const { clock, issues } = await clockOf(rows + MARK('6.000000', 'g2p clock mono'))
    expect(clock).toBe('unknown')
    expect(issues).toEqual([
      'late clock marker: expected the marker that names the clock near the start, found it later; not used',
    ])
  })

  test('may be missing on a damaged line, which is told', async () => {
    const { issues, events } = await clockOf(ROW(5e9) + ROW(5e9).replace('5.000000', '123456789').repeat(4) + ROW(6e9))
    expect(issues).toEqual(Array(4).fill('impossible time: expected a time in seconds, found a whole number'))
    expect(switchesOf(events)).toHaveLength(2)
  })

  test('that is a counter is an error that says what to do', async () => {
    const ticks = ROW(5e9).replace('5.000000', '123456789')
    await expect(read(ticks + ticks + ticks + ROW(5e9))).rejects.toThrow(
      /ftrace: line 3, byte \d+.*: expected times in seconds, found whole numbers\nhint: .*echo mono > trace_clock/,
    )
  })
})

describe('the clock of perf', () => {
  const row = (seconds: string) =>
    `            bash     9 [000] ${seconds}:       sched:sched_waking: comm=b pid=6 prio=120 target_cpu=001\n`
  const header = '# ========\n# captured on    : Sat Nov 21 16:13:51 2026\n'

  test.each([
    ['monotonic', 'MONOTONIC'],
    ['monotonic_raw', 'MONOTONIC_RAW'],
    ['boottime', 'BOOTTIME'],
    ['tai', 'unknown'],
  ])('%s', async (name, clock) => {
    const { events } = await read(`${header}# clockid: ${name} (1)\n${row('77.000001')}`)
    expect(inputOf(events)).toMatchObject({ clock, originNs: 77_000_001_000n })
  })

  test('is joined with the wall clock by the header', async () => {
    const reference =
      '# reference time: 2026-11-21 16:13:51.384101 = 1795277631.384101 (TOD) = 16528.456065734 (monotonic)\n'
    const { events } = await read(`${header}# clockid: monotonic (1)\n${reference}${row('77.000001')}`)
    expect(events.find(({ kind }) => kind === 'clocks')).toEqual({
      kind: 'clocks',
      readings: [
        { clock: 'MONOTONIC', ns: 16_528_456_065_734n },
        { clock: 'REALTIME', ns: 1_795_277_631_384_101_000n },
      ],
    })
  })

  test('is none where times count from the first event, and an error where each counts from the one before', async () => {
    const { events } = await read(
      `# ========\n# captured on    : x\n# clockid: monotonic (1)\n${row('0.000000')}${row('0.000003')}`,
    )
    expect(inputOf(events)).toMatchObject({
      clock: 'unknown',
      attributes: { times: 'since the first event (--reltime)' },
    })
    const deltas = Array.from({ length: 40 }, (_, i) => row(i === 0 ? '0.000000' : `0.00000${1 + (i % 3)}`)).join('')
    await expect(read(deltas)).rejects.toThrow(
      /expected absolute times, found times that go back 13 times.*\nhint: .*--deltatime/,
    )
  })
})

describe('order and losses', () => {
  test('lines that come late are put in order, as far as 8 192 events', async () => {
    const times = Array.from({ length: 20_000 }, (_, i) => 5e9 + (i % 2 === 0 ? i : i - 6000) * 1000)
    const { events } = await read(times.map((ns, i) => ROW(ns, i % 2)).join(''))
    const found = switchesOf(events).map(({ atNs }) => 5_000_000_000 + atNs)
    expect(found).toEqual([...times].sort((a, b) => a - b))
    expect(issuesOf(events)).toEqual([])
  })

  test('later ones are left out, and told', async () => {
    const rows = Array.from({ length: 9000 }, (_, i) => ROW(5e9 + i * 1000)).join('')
    const { events } = await read(rows + ROW(5e9) + ROW(6e9))
    expect(switchesOf(events)).toHaveLength(9001)
    expect(issuesOf(events)).toEqual([
      'late record: expected at most 8192 events out of order, found one 807000 ns late; left out',
    ])
  })

  test('wakeups count where there are no wakings, and have no waker', async () => {
    const wakings = async (text: string) => (await read(text)).events.filter((event) => event.kind === 'waking')
    expect(await wakings(WAKING('5.000001', 'wakeup') + ROW(5e9))).toMatchObject([
      { wakerTid: -1, tid: 6, isIrq: true },
    ])
    const both = WAKING('5.000001', 'wakeup') + WAKING('5.000002') + WAKING('5.000003', 'wakeup')
    expect(await wakings(both)).toMatchObject([{ wakerTid: 5, tid: 6 }])
  })

  test('a torn last line is told, one that lacks its line break is read', async () => {
    const torn = await read(ROW(5e9) + ROW(6e9).slice(0, -40))
    expect(switchesOf(torn.events)).toHaveLength(1)
    expect(issuesOf(torn.events)).toHaveLength(1)
    expect(issuesOf(torn.events)[0]).toMatch(/^torn record/)
    expect(issuesOf((await read(ROW(5e9) + ROW(6e9).trimEnd())).events)).toEqual([])
  })

  test('what is no event is told, with its place', async () => {
    const { events } = await read(`${ROW(5e9)}what is this?\n\n${ROW(6e9)}`)
    const [issue] = events.filter((event) => event.kind === 'issue')
    expect(issue).toMatchObject({ title: 'unreadable row', at: { line: 2, byte: ROW(5e9).length }, atNs: 0 })
    expect(switchesOf(events)).toHaveLength(2)
  })

  test("perf's and bpftrace's own words on losses", async () => {
    const perf =
      '            bash     9 [000] 5.000000: PERF_RECORD_LOST lost 31\n            bash     9 [000] 5.000000: sched:sched_waking: comm=b pid=6 prio=120 target_cpu=001\n'
    expect(issuesOf((await read(perf)).events)).toEqual(['lost records: perf reports that 31 were lost'])
    const json =
      '{"type": "attached_probes", "data": {"probes": 6}}\n{"type": "lost_events", "data": {"events": 12}}\n{"type": "printf", "data": "g2p clock mono\\n"}\n'
    const { events } = await read(json)
    expect(issuesOf(events)).toEqual(['lost records: bpftrace reports that 12 were lost'])
    expect(inputOf(events).clock).toBe('MONOTONIC')
  })

  test('two lines of one printf, which JSON has as one, are both read', async () => {
    const both = { type: 'printf', data: 'g2p clock boot\ng2p fact script sched\n' }
    const { events } = await read(`${JSON.stringify(both)}\n${'g2p waking 5 0 1 2 120 0 -1 x\n'.repeat(3)}`)
    expect(issuesOf(events)).toEqual([])
    expect(inputOf(events)).toMatchObject({ clock: 'BOOTTIME', attributes: { script: 'sched' } })
  })

  test('a bpftrace log of another script is an error that says where to look', async () => {
    const json = '{"type": "attached_probes", "data": {"probes": 6}}\n{"type": "map", "data": {"@": 5}}\n'
    await expect(read(json)).rejects.toThrow(
      /expected lines that begin with "g2p", found none\nhint: .*docs\/reference\/ebpf-format.md/,
    )
  })

  test('types of lines that are not known are counted', async () => {
    const { events } = await read('g2p clock boot\ng2p newer 5 0 1 2 3\ng2p switch x\n')
    expect(events.find(({ kind }) => kind === 'left-out')).toMatchObject({ what: 'newer', count: 1 })
    expect(issuesOf(events)).toHaveLength(1)
  })
})

test('times stay exact for a machine that is up for years', async () => {
  const { events } = await read(
    'g2p clock boot\ng2p exit 94608000123456789 3 7 7 a\ng2p exit 94608000123456790 3 8 8 a\n',
  )
  expect(inputOf(events).originNs).toBe(94_608_000_123_456_789n)
  expect(events.flatMap((event) => (event.kind === 'thread' ? [event.atNs] : []))).toEqual([0, 1])
})

test('texts of other kinds are not taken for ours', () => {
  const TEXTS = [
    '2026-11-21 16:13:51 [001] info: started',
    'a-b [12] 3: x',
    '# tracer',
    'g2p',
    '{"type": "map"}',
    'total 12 [000] 1.5: x',
  ]
  for (const text of TEXTS) expect(sniffFormat(encode(`${text}\n`))).toBeUndefined()
})
