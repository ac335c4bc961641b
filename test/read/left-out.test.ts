import { readFileSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import { convert, type Summary, summarize } from '../../lib/index.ts'
import { openTrace } from '../../lib/node.ts'
import { joined, pathOf, plainBytes } from '../line/support.ts'
import { reportOf, rows } from './reports.ts'

/** What inputs contain and is not drawn, by design: it is counted in the summary and in the trace's attributes. */

const encode = (text: string) => new TextEncoder().encode(text)
const summaryOf = (source: Uint8Array): Promise<Summary> => summarize({ name: 'input', source })
const countsOf = ({ left_out }: Summary) => left_out.map(({ what, count }) => [what, count])

const INTERRUPTS = `# tracer: nop
#
           <...>-1234  [000] d.h. 100.000001: irq_handler_entry: irq=1 name=timer
           <...>-1234  [000] d.h. 100.000101: irq_handler_entry: irq=2 name=keyboard
          <idle>-0     [001] d.h. 100.000201: softirq_entry: vec=1 [action=TIMER]
`

describe('texts of the kernel', () => {
  test('of which nothing is drawn contain something all the same', async () => {
    const summary = await summaryOf(encode(INTERRUPTS))
    expect(summary).toMatchObject({ format: 'ftrace', drawn: 0, issues: [] })
    expect(countsOf(summary)).toEqual([
      ['irq_handler_entry', 2],
      ['softirq_entry', 1],
    ])
    expect(summary.left_out[0]!.hint).toContain('https://ui.perfetto.dev')
  })

  test('markers that name the clock are read, others are drawn; frames of call stacks are counted', async () => {
    const marker = '     bash-7 [000] .... 100.000001: tracing_mark_write: '
    const text = `# tracer: nop\n${marker}g2p clock mono\n${marker}hello\n${marker}trace_event_clock_sync: parent_ts=100.0\n`
    expect(await summaryOf(encode(text))).toMatchObject({ clock: 'MONOTONIC', drawn: 1, left_out: [] })
    const frames = readFileSync(pathOf('perf-script/callgraph.txt'), 'utf8').match(/^\t/gm)!.length
    const summary = await summaryOf(plainBytes('perf-script/callgraph.txt'))
    expect(countsOf(summary)).toContainEqual(['frames of call stacks', frames])
  })

  test('very many names are counted as one', async () => {
    const lines = Array.from({ length: 1000 }, (_, i) => `  a-1  [000] .... 100.${100_000 + i}: event_${i}: x=1\n`)
    const summary = await summaryOf(encode(`# tracer: nop\n${lines.join('')}`))
    expect(summary.left_out.length).toBeLessThan(300)
    expect(summary.left_out.reduce((sum, { count }) => sum + count, 0)).toBe(1000)
  })

  test('of threads that were not traced', async () => {
    const switched = (ns: number, a: number, b: number) => `${ns} [0] sched_switch: [a ${a} 120 1] => [b ${b} 120]\n`
    const text = `Children PIDs are: 7\n${switched(1e9, 0, 7)}${switched(1e9 + 5, 7, 9)}${switched(1e9 + 9, 9, 10)}`
    const summary = await summarize({ name: 'k', source: encode(text) }, { from: 'profinfer-ktrace' })
    expect([summary.drawn, countsOf(summary)]).toEqual([2, [['switches between threads that were not traced', 1]]])
  })
})

describe('recordings of the kernel', () => {
  test('samples of perf, by what they are of', async () => {
    const bytes = plainBytes('perf-data/own-clock.data.gz').slice()
    const view = new DataView(bytes.buffer)
    const [each, place, size] = [16, 24, 32].map((at) => Number(view.getBigUint64(at, true))) as [
      number,
      number,
      number,
    ]
    for (let at = place; at < place + size; at += each) {
      if (view.getUint32(at, true) !== 2) continue
      view.setUint32(at, 1, true) // cpu-clock, without the raw data of a tracepoint
      view.setBigUint64(at + 8, 0n, true)
      view.setUint32(at + 24, view.getUint32(at + 24, true) & ~(1 << 10), true)
    }
    const whole = await summaryOf(plainBytes('perf-data/own-clock.data.gz'))
    const summary = await summaryOf(bytes)
    expect(countsOf(whole)).toEqual([])
    expect(summary.scheduler).toBeUndefined()
    expect(summary.left_out).toMatchObject([
      { what: 'samples of cpu-clock', hint: expect.stringContaining('--bundle') },
    ])
    const { switches, wakings } = whole.scheduler!
    expect(summary.left_out[0]!.count).toBeGreaterThanOrEqual(switches + wakings)
  })

  test('events of trace-cmd that are not of the scheduler', async () => {
    const bytes = plainBytes('trace-dat/mono-v6.dat.gz').slice()
    const whole = await summaryOf(bytes)
    const name = encode('name: sched_waking\n')
    const at = Buffer.from(bytes).indexOf(name)
    bytes.set(encode('name: other_waking\n'), at)
    const summary = await summaryOf(bytes)
    expect(countsOf(whole)).toEqual([])
    expect(countsOf(summary)).toContainEqual(['other_waking', expect.any(Number)])
    expect(summary.left_out[0]!.count).toBeGreaterThan(0)
  })
})

describe('Chrome JSON', () => {
  test('samples, objects, memory dumps, contexts, and what is beside the events', async () => {
    const event = (ph: string, more = {}) => ({ ph, pid: 1, tid: 1, name: 'x', ts: 5, ...more })
    const document = {
      traceEvents: [
        ...['N', 'O', 'O', 'D', 'v', 'V', '(', ')', 'P', '?', 's'].map((ph) => event(ph)),
        event('C', { args: { text: 'no number' } }),
      ],
      stackFrames: { 1: { name: 'f' } },
      samples: [{ cpu: 0, sf: 1 }, { cpu: 0, sf: 1, args: {} }, { cpu: 1 }],
      systemTraceEvents: INTERRUPTS,
      otherData: { a: [{}] },
    }
    const summary = await summaryOf(encode(JSON.stringify(document)))
    expect([summary.drawn, summary.issues]).toEqual([0, []])
    expect(new Map(countsOf(summary) as [string, number][])).toEqual(
      new Map([
        ['object events (N, O, D)', 4],
        ['memory dumps (v, V)', 2],
        ['context events', 2],
        ['samples (P)', 1],
        ['events of phase "?"', 1],
        ['arrows without an id', 1],
        ['counters without a number', 1],
        ['samples with stackFrames', 3],
        ['systemTraceEvents (a trace of ftrace as a text)', 1],
      ]),
    )
  })
})

describe('reports of Nsight Systems', () => {
  test('composite events and calls of the OS runtime, which --osrt draws', async () => {
    const bytes = reportOf({ COMPOSITE_EVENTS: [1, 2, 3].map((start) => ({ id: start, start, cpu: 0 })) })
    const summary = await summaryOf(bytes)
    expect(countsOf(summary)).toEqual([
      ['COMPOSITE_EVENTS', 3],
      ['OSRT_API', 1],
    ])
    const drawn = await summarize({ name: 'r', source: bytes }, { osRuntime: true })
    expect([countsOf(drawn), drawn.drawn - summary.drawn]).toEqual([[['COMPOSITE_EVENTS', 3]], 1])
  })

  test('the attributes of a trace list it', async () => {
    const conversion = convert({
      name: 'r',
      source: reportOf({ NVTX_EVENTS: [rows.nvtx({ start: 5, eventType: 76 })] }),
    })
    const trace = await openTrace(await joined(conversion))
    try {
      const sql = "SELECT str_value FROM metadata WHERE name LIKE '%not_drawn%'"
      expect([...trace.query(sql).rows]).toEqual([['1 NVTX rows of type 76, 1 OSRT_API']])
    } finally {
      trace.close()
    }
  })
})

test('a recording that ended at once contains nothing to draw', async () => {
  const run = plainBytes('ggtrace/tiny.ggtrace')
  const first = new DataView(run.buffer).getUint32(4, true)
  const summary = await summaryOf(run.slice(0, first))
  expect(summary).toMatchObject({ drawn: 0, left_out: [], operators: 0 })
  expect(summary.issues.map(({ title }) => title)).toContain('run did not end')
})
