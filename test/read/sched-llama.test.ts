import { describe, expect, test } from '@jest/globals'
import { convert, summarize } from '../../lib/index.ts'
import { Inferred } from '../../lib/model/events.ts'
import { openTrace } from '../../lib/node.ts'
import { eventsIn, plainBytes } from '../line/support.ts'
import { ZERO_NS } from '../origin.ts'
import { inputOf } from './sched-text.ts'

/** What our bpftrace scripts tell of llama.cpp: read, and drawn as any other log. */

const rowsOf = (fixture: string, type: string) =>
  Buffer.from(plainBytes(fixture))
    .toString()
    .split('\n')
    .filter((line) => line.startsWith(`g2p ${type} `))
    .map((line) => line.split(' ').slice(2))

async function query(fixture: string, sql: string) {
  const trace = await openTrace(convert({ name: 'log', source: plainBytes(fixture) }, { barriers: 'all' }))
  try {
    expect(trace.problems()).toEqual([])
    return trace.query(sql).rows
  } finally {
    trace.close()
  }
}

describe('operators', () => {
  const rows = rowsOf('bpftrace/op.txt', 'op')

  test('each is a slice on its worker, and a wait after it', async () => {
    const found = await query(
      'bpftrace/op.txt',
      `select ts + ${ZERO_NS}, dur, category, track.name from slice join track on slice.track_id = track.id
       where category in ('operator', 'barrier') order by ts, dur desc`,
    )
    const expected = rows.flatMap(([start, , , worker, end, waitEnd]) => [
      [Number(start), Number(end) - Number(start), 'operator', `worker ${worker}`],
      [Number(end), Number(waitEnd) - Number(end), 'barrier', `worker ${worker}`],
    ])
    expect(found).toEqual(expected)
    expect(rows).toHaveLength(80)
  })

  test('is called by its role and its op, which is inferred from how the numbers are used', async () => {
    const { events, names } = await eventsIn(plainBytes('bpftrace/op.txt'))
    const tensors = events.filter((event) => event.kind === 'tensor')
    const named = (name: string) => tensors.find((tensor) => names.text(tensor.name) === name)
    expect(names.text(named('Qcur-0')!.op)).toBe('MUL_MAT')
    expect(named('Qcur-0')).toMatchObject({ layer: 0, ne: [64, 8, 1, 1], structAddress: 139_761_425_233_264 })
    expect(inputOf(events).attributes['op_numbers']).toMatch(/^llama\.cpp v.*, inferred from \d+ uses of named tensors/)
    const distinct = new Set(rows.map((row) => row.slice(6).join(' ')))
    expect(tensors).toHaveLength(distinct.size)
  })

  test('a table that is told comes first', async () => {
    const { events, names } = await eventsIn(plainBytes('bpftrace/op.txt'), { opTable: Array(200).fill('MINE') })
    const ops = new Set(events.flatMap((event) => (event.kind === 'tensor' ? [names.text(event.op)] : [])))
    expect([...ops]).toEqual(['MINE'])
  })
})

test('calls have their phase from their tokens, and their result', async () => {
  const rows = rowsOf('bpftrace/token.txt', 'token')
  const { calls, clock, issues } = await summarize({ name: 'log', source: plainBytes('bpftrace/token.txt') })
  expect(clock).toBe('BOOTTIME')
  expect(issues).toEqual([])
  expect(calls.by_phase).toEqual({ prefill: { calls: 1, tokens: 8 }, decode: { calls: 5, tokens: 5 } })
  const found = await query(
    'bpftrace/token.txt',
    `select ts + ${ZERO_NS}, dur from slice where category = 'token' order by ts`,
  )
  expect(found).toEqual(rows.map(([start, , , end]) => [Number(start), Number(end) - Number(start)]))
})

test('calls that encode are named so', async () => {
  const text = 'g2p clock boot\ng2p encode 5 1 7 9 12 0\ng2p token 15 1 7 19 1 0\n'
  const { events } = await eventsIn(new TextEncoder().encode(text))
  const calls = events.flatMap((event) => (event.kind === 'token' ? [event] : []))
  expect(calls.map(({ phase, tokens, batch }) => [phase, tokens, batch?.function])).toEqual([
    ['encode', 12, 'llama_encode'],
    ['decode', 1, 'llama_decode'],
  ])
})

describe('sequences of calls', () => {
  const callsIn = async (...lines: string[]) => {
    const { events } = await eventsIn(new TextEncoder().encode(['g2p clock boot', ...lines, ''].join('\n')))
    return events.flatMap((event) => (event.kind === 'token' ? [event] : []))
  }
  const PROMPT = ['g2p span 5 1 7 9 0 0 12', 'g2p token 5 1 7 9 12 0']

  test('give phases: several tokens may be those of several texts', async () => {
    const tokens = ['g2p span 10 1 7 14 3 40 1', 'g2p span 10 1 7 14 0 12 1', 'g2p token 10 1 7 14 2 0']
    const drafts = ['g2p span 15 1 7 19 0 13 1', 'g2p span 15 1 7 19 0 14 1', 'g2p token 15 1 7 19 2 0']
    const calls = await callsIn(...PROMPT, ...tokens, ...drafts)
    expect(calls.map(({ phase, inferred }) => [phase, inferred])).toEqual([
      ['prefill', 0],
      ['decode', 0],
      ['prefill', Inferred.Phase],
    ])
    expect(calls.map(({ batch }) => batch!.spans)).toEqual([
      [{ sequence: 0, position: 0, tokens: 12 }],
      [
        { sequence: 3, position: 40, tokens: 1 },
        { sequence: 0, position: 12, tokens: 1 },
      ],
      [{ sequence: 0, position: 13, tokens: 2 }],
    ])
  })

  test.each([
    ['of other tokens than the call has', ['g2p span 10 1 7 14 0 12 1', 'g2p token 10 1 7 14 2 0']],
    ['of another call', ['g2p span 9 1 7 14 0 12 1', 'g2p token 10 1 7 14 2 0']],
    ['of another thread', ['g2p span 10 1 8 14 0 12 2', 'g2p token 10 1 7 14 2 0']],
    ['of no place', ['g2p span 10 1 7 14 0 -1 2', 'g2p token 10 1 7 14 2 0']],
    ['of no tokens', ['g2p span 10 1 7 14 0 3 0', 'g2p span 10 1 7 14 1 3 2', 'g2p token 10 1 7 14 2 0']],
    [
      'that are too many',
      [...Array.from({ length: 66 }, (_, i) => `g2p span 10 1 7 14 ${i} 3 1`), 'g2p token 10 1 7 14 66 0'],
    ],
  ])('%s are not known', async (_, lines) => {
    const [, call] = await callsIn(...PROMPT, ...lines)
    expect(call).toMatchObject({ phase: 'prefill', inferred: Inferred.Phase, batch: { spans: [] } })
  })

  test('of more threads than can wait for their calls are not known', async () => {
    const spanOf = (tid: number) => `g2p span 10 1 ${tid} 14 0 12 2`
    const spans = Array.from({ length: 1025 }, (_, i) => spanOf(100 + i))
    const calls = await callsIn(...PROMPT, ...spans, 'g2p token 10 1 100 14 2 0', 'g2p token 10 1 101 15 2 0')
    expect(calls.map(({ batch }) => batch!.spans.length)).toEqual([1, 0, 1])
  })

  test('and what is removed of them: the time before a prompt of one token is of no token', async () => {
    const lines = [
      ...['g2p clock boot', ...PROMPT, 'g2p span 10 1 7 19 0 12 1', 'g2p token 10 1 7 19 1 0'],
      ...['g2p remove 5000 1 7 0 11 -1', 'g2p span 5001 1 7 5011 0 11 1', 'g2p token 5001 1 7 5011 1 0', ''],
    ]
    const { decoding } = await summarize({ name: 'log', source: new TextEncoder().encode(lines.join('\n')) })
    expect(decoding).toMatchObject({ calls: 2, time_ns: 20 })
  })
})

const NOTHING = 'g2p clock boot\ng2p fact script '
test.each([
  [
    `Attaching 2 probes...\n${NOTHING}token\ng2p fact traced /a b`,
    'llama_decode in /a b, found no such function there',
  ],
  [
    `Attached 2 probes\n${NOTHING}op\n`,
    'ggml_cpu_extra_compute_forward in the file that was traced, found no such function there',
  ],
  [
    `{"type": "attached_probes", "data": {"probes": 2}}\n${NOTHING}token`,
    'llama_decode in the file that was traced, found no such function there',
  ],
  [
    `Attaching 4 probes...\n${NOTHING}graph\n`,
    'ggml_backend_graph_compute_async in the file that was traced, found none',
  ],
  [`Attaching 2 probes...\n${NOTHING}sched\n`, undefined],
  [`Attaching 4 probes...\n${NOTHING}token\ng2p token 15 1 7 19 1 0\n`, undefined],
])('a script that saw nothing of llama.cpp: %j', async (text, wanted) => {
  const { events } = await eventsIn(new TextEncoder().encode(text))
  const found = events.flatMap((event) => (event.kind === 'issue' ? [[event.code, event.detail]] : []))
  expect(found).toEqual(wanted === undefined ? [] : [['nothing-traced', `expected calls of ${wanted}`]])
})

test('graphs', async () => {
  const rows = rowsOf('bpftrace/graph.txt', 'graph')
  const found = await query(
    'bpftrace/graph.txt',
    `select ts + ${ZERO_NS}, dur from slice where category = 'graph' order by ts`,
  )
  expect(found).toEqual(rows.map(([start, , , end]) => [Number(start), Number(end) - Number(start)]))
  expect(found).toHaveLength(6)
})

test('page faults and reads are counted up', async () => {
  const faults = rowsOf('bpftrace/fault.txt', 'fault')
  const sums =
    'select track.name, count(*), max(value) from counter join track on counter.track_id = track.id group by 1'
  expect(await query('bpftrace/fault.txt', sums)).toEqual([['page faults, minor', faults.length, faults.length]])
  const major = new TextEncoder().encode(
    'g2p clock boot\ng2p fault 5 0 7 1 -1\ng2p fault 6 0 7 0 4096\ng2p fault 9 0 7 1 8192\n',
  )
  const { events, names } = await eventsIn(major)
  const counted = events.flatMap((event) =>
    event.kind === 'counter' ? [[names.text(event.name), event.atNs, event.value]] : [],
  )
  expect(counted).toEqual([
    ['page faults, major', 0, 1],
    ['page faults, minor', 1, 1],
    ['page faults, major', 4, 2],
  ])
  const read = await query('bpftrace/block.txt', `select ts + ${ZERO_NS}, value from counter`)
  const [[, , , end, , bytes] = []] = rowsOf('bpftrace/block.txt', 'io')
  expect(read).toEqual([[Number(end), Number(bytes)]])
})

test('a line that lacks a field is told', async () => {
  const { events } = await eventsIn(
    new TextEncoder().encode('g2p clock boot\ng2p token 5 1 7 9 1\ng2p token 15 1 7 19 1 0\n'),
  )
  expect(events.filter(({ kind }) => kind === 'token')).toHaveLength(1)
  expect(events.flatMap((event) => (event.kind === 'issue' ? [event.title] : []))).toEqual(['unreadable row'])
})
