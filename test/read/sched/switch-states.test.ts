import { describe, expect, test } from '@jest/globals'
import { convert, type TraceEvent } from '../../../lib/index.ts'
import { TaskState } from '../../../lib/model/events.ts'
import { openTrace } from '../../../lib/node.ts'
import { eventsIn, plainBytes } from '../../line/support.ts'

/** The bits of `prev_state` differ between kernels: a recording carries the text by which its kernel prints them. */

/** Linux 4.14.0 to 4.14.x: letters by bits, though what is recorded is the number of the state (8: I, printed as `t`). */
const LINUX_4_14 = `(REC->prev_state & ((((0x0000 | 0x0001 | 0x0002 | 0x0004 | 0x0008 | 0x0010 | 0x0020 | 0x0040) + 1) << 1) - 1)) ? __print_flags(REC->prev_state & ((((0x0000 | 0x0001 | 0x0002 | 0x0004 | 0x0008 | 0x0010 | 0x0020 | 0x0040) + 1) << 1) - 1), "|", { 0x01, "S" }, { 0x02, "D" }, { 0x04, "T" }, { 0x08, "t" }, { 0x10, "X" }, { 0x20, "Z" }, { 0x40, "P" }, { 0x80, "I" }) : "R", REC->prev_state & 0x1000 ? "+" : ""`
/** Linux 4.4: X and Z the other way round, `x`, and states that are no letter of today's. */
const LINUX_4_4 = `REC->prev_state & (2048-1) ? __print_flags(REC->prev_state & (2048-1), "|", { 1, "S"} , { 2, "D" }, { 4, "T" }, { 8, "t" }, { 16, "Z" }, { 32, "X" }, { 64, "x" }, { 128, "K"}, { 256, "W" }, { 512, "P" }, { 1024, "N" }) : "R", REC->prev_state & 2048 ? "+" : ""`

const SWITCH_BYTES = 64
const HEAD = { prevTid: 24, prevState: 32 }

/**
 * A recording whose kernel prints states by another text, and records what `encode` makes of today's bits. Its own kernel does
 * not preempt: of threads that left while they could run, those with odd ids are now said to be preempted.
 */
function recordedBy(print: string, encode: (bits: number) => number): Buffer {
  const bytes = Buffer.from(plainBytes('trace-dat/local-v6.dat.gz'))
  const text = bytes.indexOf('name: sched_switch\n')
  const start = bytes.indexOf('(REC->prev_state', text)
  const end = bytes.indexOf(', REC->next_comm', start)
  expect(print.length).toBeLessThanOrEqual(end - start)
  bytes.fill(' ', start, end).write(print, start)
  const id = Number(/\d+/.exec(bytes.toString('latin1', bytes.indexOf('ID: ', text)))![0])
  const typeLength = SWITCH_BYTES / 4
  let switches = 0
  for (let at = bytes.indexOf('flyrecord\0') & ~3; at + SWITCH_BYTES < bytes.length; at += 4) {
    if ((bytes.readUInt32LE(at) & 31) !== typeLength || bytes.readUInt16LE(at + 4) !== id) continue
    const place = at + 4 + HEAD.prevState
    const bits = bytes.readUInt32LE(place)
    const isPreempted = bits === 0 && bytes.readUInt32LE(at + 4 + HEAD.prevTid) % 2 !== 0
    bytes.writeUInt32LE(encode(isPreempted ? TaskState['+'] : bits), place)
    switches++
  }
  expect(switches).toBe(54)
  return bytes
}

const today = (bits: number) => bits
const numbered = (bits: number) => (bits === TaskState['+'] ? 0x1000 : 32 - Math.clz32(bits))
/** A thread that is no more is X of Linux 4.4 in one recording, `x` in another. */
const old = (dead: number) => (bits: number) =>
  new Map<number, number>([
    [TaskState['+'], 2048],
    [TaskState.X, dead],
    [TaskState.Z, 16],
    [TaskState.P, 512],
    [TaskState.I, 2 | 1024],
  ]).get(bits) ?? bits

const TODAYS = plainBytes('trace-dat/local-v6.dat.gz')
const OWN_PRINT = /\(REC->prev_state.*?(?=, REC->next_comm)/.exec(Buffer.from(TODAYS).toString('latin1'))![0]
const statesOf = (events: readonly TraceEvent[]) =>
  events.flatMap((event) => (event.kind === 'switch' ? [event.prevState] : []))

describe.each([
  ['4.14', LINUX_4_14, numbered, today],
  ['4.4, X', LINUX_4_4, old(32), (bits: number) => (bits === TaskState.I ? TaskState.D : bits)],
  ['4.4, x', LINUX_4_4, old(64), (bits: number) => (bits === TaskState.I ? TaskState.D : bits)],
] as const)('a recording of Linux %s', (_release, print, encode, expected) => {
  test('has the states that the same recording has by the bits of today', async () => {
    const now = await eventsIn(recordedBy(OWN_PRINT, today))
    const { events } = await eventsIn(recordedBy(print, encode))
    const states = statesOf(now.events)
    for (const bits of [0, TaskState['+'], TaskState.S, TaskState.X, TaskState.Z, TaskState.I]) {
      expect(states).toContain(bits)
    }
    expect(statesOf(events)).toEqual(states.map(expected))
  })

  test('is imported without errors, and each slice ends in the same state', async () => {
    const slices = async (source: Uint8Array) => {
      const trace = await openTrace(convert({ name: 'trace.dat', source }))
      expect(trace.problems()).toEqual([])
      expect(trace.query('select count(*) from thread_state where state is null').rows).toEqual([[0]])
      const { rows } = trace.query('select end_state from sched_slice order by ts, cpu')
      trace.close()
      return rows.flat()
    }
    const now = await slices(recordedBy(OWN_PRINT, today))
    for (const letter of ['R', 'R+', 'S', 'X', 'Z', 'I']) expect(now).toContain(letter)
    const isIdleKnown = expected(TaskState.I) === TaskState.I
    expect(await slices(recordedBy(print, encode))).toEqual(now.map((end) => (end === 'I' && !isIdleKnown ? 'D' : end)))
  })
})

test('letters of a perf.data are those of its own format', async () => {
  const bytes = Buffer.from(plainBytes('perf-data/mono.data.gz'))
  const before = statesOf((await eventsIn(bytes)).events)
  const asD = Buffer.from(bytes)
  for (const [bit, letter] of [
    ['1', 'D'],
    ['2', 'S'],
  ]) {
    const at = asD.indexOf(`{ 0x0000000${bit}, "`, asD.indexOf('name: sched_switch\n'))
    asD.write(letter!, at + '{ 0x00000001, "'.length)
  }
  const swapped = (bits: number) => (bits & ~3) | ((bits & 1) << 1) | ((bits & 2) >> 1)
  expect(before).toContain(TaskState.S)
  expect(statesOf((await eventsIn(asD)).events)).toEqual(before.map(swapped))
})
