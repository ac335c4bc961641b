import { describe, expect, test } from '@jest/globals'
import { Names, summarize, type TraceEvent } from '../../lib/index.ts'
import { openTrace } from '../../lib/node.ts'
import { sniffFormat } from '../../lib/read/index.ts'
import { Marks } from '../../lib/read/kernel/tracepoints/marks.ts'
import { Tracepoints } from '../../lib/read/kernel/tracepoints/tracepoints.ts'
import { attempt, spread } from '../line/hostile.ts'
import { converted, cut, formatOf, OTHER_FIXTURES, plainBytes } from '../line/support.ts'
import { inParts, isLong, someOf } from '../long.ts'
import { drawn } from '../printing-sink.ts'
import { atraceOf, pageOf, streamedZipOf, zipOf } from './packed.ts'

/** Formats of other profilers without operators of ggml: what their files contain is in the trace, damaged or not. */

/** Places of each file at which it is cut, and at which a byte is changed. */
const PLACES = isLong ? 60 : 8

const linesOf = (fixture: string, args: readonly string[] = []) =>
  drawn({ name: 'log', source: plainBytes(fixture) }, {}, { args })
const summaryOf = (fixture: string) => summarize({ name: 'log', source: plainBytes(fixture) })
const rowsOf = async (fixture: string, query: string) => {
  const trace = await openTrace(await converted(plainBytes(fixture)))
  try {
    expect(trace.problems()).toEqual([])
    return trace.query(query).rows
  } finally {
    trace.close()
  }
}

describe.each(OTHER_FIXTURES)('%s', (fixture) => {
  const bytes = plainBytes(fixture)

  test('is of the format that its folder names; the same in pieces', async () => {
    expect(sniffFormat(bytes.subarray(0, 4096))?.name).toBe(formatOf(fixture))
    const whole = await converted(bytes)
    expect(Buffer.from(await converted(cut(bytes, 7))).equals(whole)).toBe(true)
  })

  inParts(test)('damaged, it ends in a sound trace or in a message', async () => {
    const places = spread(
      Array.from(bytes, (_, place) => place),
      PLACES,
    )
    for (const at of places) {
      await attempt(bytes.subarray(0, at), `${fixture}, cut to ${at} bytes`)
      const changed = bytes.slice()
      changed[at]! ^= at % 2 === 0 ? 0xff : 1 << (at % 8)
      await attempt(changed, `${fixture}, byte ${at} changed`)
    }
  })
})

describe('rocprofv3', () => {
  test('each dispatch is a piece of work with the times that the file has', async () => {
    const fixture = 'rocprofv3/mi350x.json'
    const document = JSON.parse(new TextDecoder().decode(plainBytes(fixture)))['rocprofiler-sdk-tool'][0]
    const names = new Map(
      document.kernel_symbols.map((kernel: Record<string, unknown>) => [
        kernel['kernel_id'],
        kernel['truncated_kernel_name'],
      ]),
    )
    type Dispatch = {
      start_timestamp: number
      end_timestamp: number
      dispatch_info: { kernel_id: number }
      stream_id: { handle: number }
    }
    const wanted = (document.buffer_records.kernel_dispatch as Dispatch[]).map((dispatch) =>
      [
        dispatch.start_timestamp,
        dispatch.end_timestamp - dispatch.start_timestamp,
        names.get(dispatch.dispatch_info.kernel_id),
        `stream ${dispatch.stream_id.handle}, pid 908`,
      ].join(' '),
    )
    const found = await rowsOf(
      fixture,
      'select s.ts, s.dur, s.name, t.name from gpu_slice s join track t on t.id = s.track_id',
    )
    expect(found.map((row) => row.join(' ')).sort()).toEqual(wanted.sort())
    expect((await summaryOf(fixture)).issues).toEqual([])
  })

  test('calls, copies and ranges; what is missing is reported', async () => {
    const fixture = 'rocprofv3/calls.json'
    expect(await linesOf(fixture, ['bytes', 'grid', 'block', 'from', 'to', 'gpu_work'])).toMatchInlineSnapshot(`
[
  "GPU 0: queue 2 | 400000–500000 mul_mat_q {grid: 128x1x1, block: 64x4x1}",
  "GPU 0: queue 2 | 550000–560000 kernel 77 {grid: 1x1x1, block: 64x1x1}",
  "Issues | 200000 damaged record",
  "Issues | 550000 event without a time",
  "GPU 0: copies | 200000–240000 MEMORY_COPY_HOST_TO_DEVICE {bytes: 1048576, from: host, to: device}",
  "thread 701: HIP API | 100000–150000 hipMemcpyAsync {gpu_work: 1}",
  "thread 701: HIP API | 300000–320000 hipLaunchKernel {gpu_work: 1}",
  "thread 701: HIP API | 570000–600000 hipStreamSynchronize",
  "ROCTx ranges of thread 701 | 50000–650000 decode token 7",
  "ROCTx ranges of thread 701 | 330000 mark {"}",
]
`)
    const { issues, left_out } = await summaryOf(fixture)
    expect(issues.map(({ title, count }) => [title, count])).toEqual([
      ['event without a time', 1],
      ['damaged record', 1],
    ])
    expect(left_out.map(({ what, count }) => [what, count])).toEqual([
      ['records of counter_collection', 1],
      ['records of memory_allocation', 1],
    ])
  })
})

describe('Streamline', () => {
  const text = new TextDecoder().decode(plainBytes('streamline/timeline.csv'))
  const [head, ...rows] = text
    .trimEnd()
    .split('\n')
    .slice(4)
    .map((line) => line.split(','))
  const bytesOf = (changed: string) => ({ name: 'log', source: new TextEncoder().encode(changed) })

  test('sums over the time of each counter are those of an independent reading', async () => {
    const wanted = head!.slice(1).map((name, i) => [name, rows.reduce((sum, row) => sum + Number(row[i + 1]), 0)])
    const found = await rowsOf(
      'streamline/timeline.csv',
      `select name, sum(value * dur) / 1e6 from (select t.name as name, value,
         lead(ts, 1, ts) over (partition by track_id order by ts) - ts as dur from counter join track t on t.id = track_id)
       group by name`,
    )
    const byName = new Map(found.map(([name, sum]) => [name, sum]))
    expect(wanted.map(([name, sum]) => [name, expect.closeTo(Number(sum), 3)])).toEqual(
      wanted.map(([name]) => [name, byName.get(name!)]),
    )
    const { contents, issues, left_out } = await summaryOf('streamline/timeline.csv')
    expect([contents, issues]).toEqual(['10 counters, 40 intervals', []])
    expect(left_out.map(({ what, count }) => [what, count])).toEqual([['values of Memory:Free: no number', 1]])
  })

  test('times in minutes and as other programs write numbers; rows of other forms are issues', async () => {
    const made =
      'a\n"Index (s)","Cycles:CPU Cycles [0]"\n59.999,1\n1:00.000,2.5E+3\n1:00.001,3\n1:00.001,4\nx,5\n60.002,1,2\n'
    const lines = await drawn(bytesOf(made), {}, { args: [] })
    expect(lines.filter((line) => line.startsWith('Cycles'))).toEqual([
      'Cycles:CPU Cycles [0] | 59999000000 = 1',
      'Cycles:CPU Cycles [0] | 60000000000 = 2500',
      'Cycles:CPU Cycles [0] | 60001000000 = 3',
      'Cycles:CPU Cycles [0] | 60002000000 = 0',
    ])
    const { issues } = await summarize(bytesOf(made))
    expect(issues.map(({ code, count }) => [code, count])).toEqual([
      ['impossible-time', 1],
      ['unreadable-row', 2],
    ])
  })
})

describe('perf stat', () => {
  test('sums and numbers of counts of each event are those of an independent reading', async () => {
    const wanted = new Map<string, [number, number]>()
    const text = new TextDecoder().decode(plainBytes('perf-stat/program.csv'))
    for (const [, value, unit, event] of text.matchAll(/^ +[\d.]+,([\d.]+),(\w*),([\w-]+),/gm)) {
      const name = unit === '' ? event! : `${event} (${unit})`
      const [sum, count] = wanted.get(name) ?? [0, 0]
      wanted.set(name, [sum + Number(value), count + 1])
    }
    const found = await rowsOf(
      'perf-stat/program.csv',
      `select t.name, sum(value), sum(value > 0 or t.name like 'c%') from counter join track t on t.id = track_id
       where t.name not like '%: %' and ts < (select max(ts) from counter) group by 1 order by 1`,
    )
    expect(wanted.size).toBe(3)
    const sums = [...wanted].map(([name, [sum]]) => [name, expect.closeTo(sum, 6)])
    expect(found.map(([name, sum]) => [name, sum])).toEqual(sums.sort(([a], [b]) => (a! < b! ? -1 : 1)))
    const counts = [...wanted.values()].reduce((all, [, count]) => all + count, 0)
    expect((await summaryOf('perf-stat/program.csv')).contents).toBe(`${counts} counts, 53 intervals`)
  })

  test.each([
    [
      'program.jsonl',
      ['task-clock (msec) | 0 = 1.058479', 'task-clock (msec) | 135750843 = 0', 'context-switches | 0 = 2'],
    ],
    ['program.txt', ['task-clock (msec) | 231680938 = 0.07', 'task-clock: CPUs utilized | 131348408 = 0']],
    ['cpus.csv', ['context-switches, CPU1 | 125945753 = 52', 'context-switches: per second, CPU0 | 125945753 = 1344']],
    ['socket.csv', ['context-switches, S0 | 0 = 193', 'context-switches, S0 | 194239815 = 0']],
  ])('%s: each value from the start of its interval', async (file, lines) => {
    expect(await linesOf(`perf-stat/${file}`)).toEqual(expect.arrayContaining(lines))
    expect((await summaryOf(`perf-stat/${file}`)).issues).toEqual([])
  })

  test.each([
    ['German', ['1.234.567', '12.345', '1.034,56', '1,234', '50,12']],
    ['English', ['1,234,567', '12,345', '1,034.56', '1.234', '50.12']],
    ['French', ['1\u202f234\u202f567', '12\u202f345', '1\u202f034,56', '1,234', '50,12']],
  ])('numbers of the table as a %s locale writes them', async (_, [many, few, ms, metric, share]) => {
    const lines = [
      `     1.000123456 ${many!.padStart(18)}      instructions`,
      `     1.000123456 ${few!.padStart(18)}      cycles                           #    ${metric} GHz   (${share}%)`,
      `     1.000123456 ${ms!.padStart(18)} msec task-clock                       #    ${metric} CPUs utilized`,
    ]
    const log = {
      name: 'log',
      source: new TextEncoder().encode(`#           time             counts unit events\n${lines.join('\n')}\n`),
    }
    const found = (await drawn(log)).filter((line) => line.includes('| 0 = '))
    expect(found).toEqual([
      'instructions | 0 = 1234567',
      'cycles | 0 = 12345',
      'cycles: GHz | 0 = 1.234',
      'task-clock (msec) | 0 = 1034.56',
      'task-clock: CPUs utilized | 0 = 1.234',
    ])
    expect((await summarize(log)).attributes?.['multiplexed']).toMatch(/^1 counts: /)
  })

  test('names of events with the separator, metrics alone, ids of aggregates', async () => {
    const lines = [
      '     1.000000001,12,,cpu/event=0x3c,umask=0/,900,50.00,1.5,K/sec',
      '     1.000000001,,,,900,100.00,0.9,insn per cycle',
      '     2.000000001,S0-D0-C1,2,7,Joules,power/energy-pkg/,900,100.00,,',
      'something else',
    ]
    const source = new TextEncoder().encode(lines.join('\n'))
    expect(await drawn({ name: 'log', source })).toMatchInlineSnapshot(`
[
  "cpu/event=0x3c,umask=0/ | 0 = 12",
  "cpu/event=0x3c,umask=0/ | 2000000001 = 0",
  "cpu/event=0x3c,umask=0/: per second | 0 = 1500",
  "cpu/event=0x3c,umask=0/: per second | 2000000001 = 0",
  "insn per cycle | 0 = 0.9",
  "insn per cycle | 2000000001 = 0",
  "power/energy-pkg/ (Joules), S0-D0-C1 | 1000000001 = 7",
  "power/energy-pkg/ (Joules), S0-D0-C1 | 2000000001 = 0",
  "Issues | 2000000001 torn record",
]
`)
  })
})

describe('marks of trace_marker', () => {
  test('ranges, values, asynchronous slices and instants, and values of CPUs, in a text of ftrace', async () => {
    expect(await linesOf('ftrace/trace-marks.txt')).toMatchInlineSnapshot(`
[
  "asynchronous slices of process 25340 | 22188000–23788000 request",
  "asynchronous slices of process 25340 | 23792000–25358000 request",
  "asynchronous slices of process 25340 (2) | 22992000–24574000 request",
  "asynchronous slices of process 25340 (2) | 24578000–25359000 request",
  "Ranges/thread 25381 | 6310000–10156000 worker op 0",
  "Ranges/thread 25381 | 10173000–10791000 worker op 1",
  "Ranges/thread 25381 | 10799000–11421000 worker op 2",
  "Ranges/thread 25340 | 22182000–22986000 decode|token 0",
  "Ranges/thread 25340 | 22189000–22984000 decode|token 0 > inner",
  "Ranges/thread 25340 | 22988000–23787000 decode|token 1",
  "Ranges/thread 25340 | 22993000–23784000 decode|token 1 > inner",
  "Ranges/thread 25340 | 23790000–24572000 decode|token 2",
  "Ranges/thread 25340 | 23793000–24571000 decode|token 2 > inner",
  "Ranges/thread 25340 | 24575000–25356000 decode|token 3",
  "Ranges/thread 25340 | 24579000–25354000 decode|token 3 > inner",
  "tokens (process 25340) | 22187000 = 0",
  "tokens (process 25340) | 22990000 = 5",
  "tokens (process 25340) | 23791000 = 10",
  "tokens (process 25340) | 24577000 = 15",
  "CPUs/CPU 1 | 22969000–23003000 python3",
  "CPUs/CPU 1 | 23773000–23803000 python3",
  "CPUs/CPU 1 | 24573000–24589000 python3",
  "CPUs/CPU 1 | 25359000–25359000 python3",
  "instants of process 25340 | 25359000 checkpoint",
  "trace_marker | 25360000 free text of a program",
  "CPU 0: idle state (-1 = it runs) | 25460000 = 1",
  "CPU 0: idle state (-1 = it runs) | 25560000 = -1",
  "CPU 1: frequency (kHz) | 25660000 = 2400000",
  "CPU 1: frequency (kHz) | 25760000 = 800000",
]
`)
    expect(await summaryOf('ftrace/trace-marks.txt')).toMatchObject({
      issues: [],
      scheduler: { switches: 8 },
      attributes: { marks: '36 marks, 4 CPU values' },
    })
  })

  test('texts of trace_printk, as each event that has them; those under the name of a function are counted', async () => {
    const lines = [
      'bprint:               my_func: step one',
      'bputs:                my_func: step two',
      'my_func: step three',
    ]
    const text = [...lines, 'print: my_func: step four', 'bpf_trace_printk: step five'].map(
      (line, i) => `             wrk-11      [000] ....   10.000${i + 1}00: ${line}\n`,
    )
    const input = { name: 'log', source: new TextEncoder().encode(`# tracer: nop\n#\n${text.join('')}`) }
    expect(await drawn(input)).toEqual([
      'trace_marker | 0 my_func: step one',
      'trace_marker | 100000 my_func: step two',
      'trace_marker | 300000 my_func: step four',
      'trace_marker | 400000 step five',
    ])
    expect(await summarize(input)).toMatchObject({ issues: [], left_out: [{ what: 'my_func', count: 1 }] })
  })

  test('texts of BPF programs in a recording are where their field says', () => {
    const [names, emitted] = [new Names(), [] as TraceEvent[]]
    const tracepoints = new Tracepoints(names, new Marks(names, (event) => emitted.push(event), true))
    tracepoints.define(
      'name: bpf_trace_printk\nID: 6\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n' +
        '\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n' +
        '\tfield:__data_loc char[] bpf_string;\toffset:8;\tsize:4;\tsigned:0;\n\nprint fmt: "%s", __get_str(bpf_string)\n',
    )
    const record = Buffer.alloc(20)
    record.writeUInt16LE(6, 0)
    record.writeInt32LE(7, 4)
    record.writeUInt32LE((8 << 16) | 12, 8)
    record.write('step six', 12)
    const view = new DataView(record.buffer, record.byteOffset, record.length)
    const event = tracepoints.decode(view, 0, record.length, 0, 5)
    expect(event).toMatchObject({ kind: 'own-instant', atNs: 5 })
    expect(names.text((event as { name: number }).name)).toBe('step six')
  })

  /** Two CPUs, one after the other, as in a trace.dat. */
  test('marks of a recording without an order are paired in order of time', () => {
    const [names, emitted] = [new Names(), [] as TraceEvent[]]
    const marks = new Marks(names, (event) => emitted.push(event), false)
    const tracepoints = new Tracepoints(names, marks)
    const field = (what: string, offset: number, size: number) =>
      `\tfield:${what};\toffset:${offset};\tsize:${size};\tsigned:1;\n`
    tracepoints.define(
      `name: print\nID: 5\nformat:\n${field('unsigned short common_type', 0, 2)}${field('int common_pid', 4, 4)}` +
        `${field('unsigned long ip', 8, 8)}${field('char buf[]', 16, 0)}\nprint fmt: "%ps: %s", (void *)REC->ip, REC->buf\n`,
    )
    const decode = (atNs: number, text: string) => {
      const view = new DataView(new ArrayBuffer(16 + 24))
      view.setUint16(0, 5, true)
      view.setInt32(4, 7, true)
      new Uint8Array(view.buffer).set(new TextEncoder().encode(text), 16)
      return tracepoints.decode(view, 0, view.byteLength, 0, atNs)
    }
    const found = [
      [30, 'E|7\n'],
      [40, 'F|7|request|1'],
      [20, 'C|7|tokens|3'],
      [10, 'B|7|decode'],
      [15, 'S|7|request|1'],
    ].map(([atNs, text]) => decode(Number(atNs), String(text)))
    expect(found.filter(Boolean)).toMatchObject([{ kind: 'counter', value: 3, atNs: 20 }])
    expect([...marks.rest()].flat()).toMatchObject([
      { kind: 'range', edge: 'begin', tid: 7, atNs: 10 },
      { kind: 'range', edge: 'end', tid: 7, atNs: 30 },
    ])
    expect(emitted.at(-1)).toMatchObject({ kind: 'own-slice', startNs: 15, endNs: 40 })
  })
})

describe('packed', () => {
  const text = plainBytes('ftrace/trace-marks.txt')
  const json = plainBytes('chrome-json/gpu-only.json')
  const cases: readonly (readonly [string, Uint8Array, () => Uint8Array | Promise<Uint8Array>])[] = [
    ['the page of systrace', text, () => pageOf(text)],
    ['the output of atrace -z', text, () => atraceOf(text)],
    ['Chrome JSON in a ZIP', json, () => zipOf(json, 8)],
    ['Chrome JSON in a ZIP, stored', json, () => zipOf(json, 0)],
    ['Chrome JSON in a ZIP that was written to a pipe', json, () => streamedZipOf(json)],
  ]

  inParts(test).each(cases)('%s is read as what is in it, damaged or not', async (what, plain, pack) => {
    const packed = await pack()
    const wanted = await converted(plain)
    expect(Buffer.from(await converted(packed)).equals(wanted)).toBe(true)
    const ofPieces = Buffer.from(await converted(cut(plain, 11)))
    expect(ofPieces.equals(await converted(cut(packed, 11)))).toBe(true)
    for (const at of someOf(spread([...packed.keys()], 20), 10)) {
      await attempt(packed.subarray(0, at), `${what}, cut to ${at} bytes`)
      const changed = packed.slice()
      changed[at]! ^= 0xff
      await attempt(changed, `${what}, byte ${at} inverted`)
    }
  })

  test('a page without a trace, and an archive without a file, are refused', async () => {
    const page = new TextEncoder().encode('<html><body>hello</body></html>')
    await expect(converted(page)).rejects.toThrow('found no trace data in the page')
    await expect(converted(zipOf(new Uint8Array(0), 0))).rejects.toThrow('the archive has no file that is not empty')
  })
})
