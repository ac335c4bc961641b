import { describe, expect, test } from '@jest/globals'
import { summarize } from '../../lib/index.ts'
import { openTrace } from '../../lib/node.ts'
import { sniffFormat } from '../../lib/read/index.ts'
import { converted, cut, OTHER_FIXTURES, plainBytes, SCHEDULER_FIXTURES } from '../line/support.ts'

/** Forms in which files of other programs come, besides those that their formats describe: they are read, not refused. */

const encode = (text: string) => new TextEncoder().encode(text)
const textOf = (fixture: string) => new TextDecoder().decode(plainBytes(fixture))
const issuesOf = async (bytes: Uint8Array) =>
  (await summarize({ name: 'log', source: bytes })).issues.map(({ code, count }) => [code, count])

/** Names and times of all slices, without issues. */
async function slicesOf(bytes: Uint8Array) {
  const trace = await openTrace(await converted(bytes))
  try {
    expect(trace.problems()).toEqual([])
    const sql = "SELECT name, ts, dur FROM slice WHERE category IS NOT 'issue' ORDER BY ts, name"
    return trace.query(sql).rows
  } finally {
    trace.close()
  }
}

describe('events of Chrome, one per line', () => {
  test('are the same as in a list, with commas and blank lines too, however they are cut', async () => {
    const events = textOf('odd-forms/ndjson.json').trim().split('\n')
    const list = await converted(encode(`[${events.join(',')}]`))
    for (const text of [
      events.join('\n'),
      `${events.join('\r\n')}\r\n`,
      events.join(',\n'),
      `\n\n${events.join('\n\n')}`,
    ]) {
      expect(await converted(encode(text))).toEqual(list)
      expect(await converted(cut(encode(text), 3))).toEqual(list)
      expect(await issuesOf(encode(text))).toEqual([])
    }
    expect(await slicesOf(plainBytes('odd-forms/ndjson.json'))).toEqual([
      ['a', 1000, 2000],
      ['b', 5000, 2000],
    ])
  })

  test('a line that is damaged or cut is an issue, the others are read', async () => {
    const [first, second] = textOf('odd-forms/ndjson.json').trim().split('\n') as [string, string]
    const third = second.replace('"ts":5', '"ts":9')
    expect(await issuesOf(encode([first, `${second.slice(0, 20)}x`, third].join('\n')))).toEqual([['json-damaged', 1]])
    expect((await slicesOf(encode([first, second.slice(0, 30), third].join('\n')))).map(([name]) => name)).toEqual([
      'a',
      'b',
    ])
    expect(await issuesOf(encode([first, third.slice(0, 20)].join('\n')))).toEqual([['torn-record', 1]])
  })
})

describe('control characters in texts of JSON', () => {
  test('each but 0 is a part of the text', async () => {
    const names = (await slicesOf(plainBytes('odd-forms/ctrl-torch.json'))).map(([name]) => name)
    expect(names).toEqual(['op0', 'op1', 'frame <a\x01b>', 'op3', 'multi\nline', 'op5'])
    const event = (name: string, ts: number) => `{"ph":"X","pid":1,"tid":1,"ts":${ts},"dur":1,"name":"${name}"}`
    // As they are, beside an escape, at the end, several.
    const odd = Array.from({ length: 31 }, (_, i) => String.fromCharCode(i + 1)).flatMap((control) => [
      `a${control}b`,
      `a\\"${control}b`,
      `${control}b${control}`,
      control.repeat(3),
    ])
    const bytes = encode(`[${odd.map((name, i) => event(name, 10 * i)).join()}]`)
    expect(await issuesOf(bytes)).toEqual([])
    expect((await slicesOf(bytes)).map(([text]) => text)).toEqual(odd.map((name) => name.replace('\\"', '"')))
    expect(await issuesOf(encode(`[${event('a\0b', 1)},${event('next', 5)}]`))).toEqual([['json-damaged', 1]])
  })

  test.each([
    ['tensor-trace-json/tiny.json', /("tensor_name"|"dst_name"|"name"|"op")\s*:\s*"/],
    ['rocprofv3/calls.json', /("truncated_kernel_name"|"formatted_kernel_name"|"kernel_name")\s*:\s*"/],
    ['otlp/vllm.jsonl', /("stringValue")\s*:\s*"/],
    ['power/amd-smi.json', /("unit")\s*:\s*"(?=W)/],
  ])('%s: does not end the reading', async (fixture, place) => {
    const text = textOf(fixture)
    expect(text).toMatch(place)
    const { issues: _, ...expected } = await summarize({
      name: 'log',
      source: encode(text.replace(place, '$&\\u0001')),
    })
    const { issues, ...found } = await summarize({ name: 'log', source: encode(text.replace(place, '$&\x01')) })
    expect({ found, losses: issues.length }).toEqual({ found: expected, losses: _.length })
  })
})

describe('times before 0', () => {
  const event = (ts: number | string) => `{"ph":"X","pid":1,"tid":1,"ts":${ts},"dur":1,"name":"e"}`
  const timesOf = async (...times: readonly (number | string)[]) =>
    (await slicesOf(encode(`[${times.map(event).join(',')}]`))).map(([, ts]) => ts)

  test('all are moved, so that the first one is at 0; the trace says by how much', async () => {
    const bytes = plainBytes('odd-forms/neg-trigger.json')
    const slices = await slicesOf(bytes)
    expect(slices).toEqual(Array.from({ length: 20 }, (_, i) => [`e${i}`, i * 100_000, 50_000]))
    const { issues, attributes } = await summarize({ name: 'log', source: bytes })
    expect({ issues, attributes }).toMatchObject({ issues: [], attributes: { times_shifted_ns: 1_000_000 } })
    expect(await converted(cut(bytes, 7))).toEqual(await converted(bytes))
  })

  test('in any order, with fractions, where the first event is after 0', async () => {
    expect(await timesOf(5, 7, 9, -3, '-3.5')).toEqual([0, 500, 8500, 10_500, 12_500])
    expect(await timesOf('-0.25', 1, 2)).toEqual([0, 1250, 2250])
    expect(await timesOf(-1, -2, -3)).toEqual([0, 1000, 2000])
  })

  test('a damaged one moves nothing; times from 0 on stay', async () => {
    const bytes = encode(`[${[100, 200, 300, -99_999_999_999_999].map(event).join(',')}]`)
    expect(await issuesOf(bytes)).toEqual([['impossible-time', 1]])
    expect((await slicesOf(bytes)).map(([, ts]) => ts)).toEqual([100_000, 200_000, 300_000])
    expect(await timesOf(0, 1, 2)).toEqual([0, 1000, 2000])
  })

  test('of PyTorch are since its base time', async () => {
    const text = `{"baseTimeNanoseconds":1751410836000000000,"traceEvents":[${[-2, 3, 4].map(event).join(',')}]}`
    const { start_ns, duration_ns, issues } = await summarize({ name: 'log', source: encode(text) })
    expect({ start_ns, duration_ns, issues }).toEqual({
      start_ns: '1751410835999998000',
      duration_ns: 7000,
      issues: [],
    })
  })
})

test('the text of a log in Chrome JSON, at the begin of a line, does not hide it', async () => {
  const events = textOf('odd-forms/ndjson.json').trim().split('\n').join(',')
  for (const fixture of [...SCHEDULER_FIXTURES, ...OTHER_FIXTURES]) {
    const log = textOf(fixture).slice(0, 3000).replaceAll('\0', '')
    const text = JSON.stringify(log)
    for (const member of [text, text.replaceAll('\\n', '\n')]) {
      for (const json of [
        `{\n"systemTraceEvents": ${member},\n"traceEvents":[${events}]}`,
        `{"traceEvents":[${events}],\n"systemTraceEvents": ${member}}`,
      ])
        expect([fixture, sniffFormat(encode(json.slice(0, 4096)))?.name]).toEqual([fixture, 'chrome-json'])
    }
    const json = encode(`{\n"systemTraceEvents":${text},\n"traceEvents":[${events}]}`)
    const { contents, left_out, issues } = await summarize({ name: 'log', source: json })
    expect({ contents, left_out, issues }).toMatchObject({ contents: '2 slices', left_out: [{ count: 1 }], issues: [] })
  }
})

describe('a page of systrace with several sections', () => {
  const section = (text: string) => `<script class="trace-data" type="application/text">\n${text}\n</script>\n`
  const page = (...texts: readonly string[]) =>
    encode(`<!DOCTYPE html>\n<html><body>\n${texts.map(section).join('')}</body></html>\n`)
  const [, FTRACE, CHROME] = textOf('odd-forms/systrace2.html')
    .split(/<script class="trace-data" type="application\/text">\n/)
    .map((text) => text.replace(/\n<\/script>.*/s, '')) as [string, string, string]
  const PROCESSES = 'PROCESS DUMP\nUSER PID PPID VSZ RSS\nroot 1 0 10 10\n'
  const LARGE = `{"traceEvents":[${'{"ph":"X","pid":1,"tid":1,"ts":1,"dur":1,"name":"e"},'.repeat(30_000)}{}]}`

  test('is read as its trace of ftrace, wherever it is; the others are counted', async () => {
    const alone = await converted(encode(FTRACE))
    const { left_out: none, ...expected } = await summarize({ name: 'log', source: encode(FTRACE) })
    for (const texts of [
      [FTRACE, CHROME],
      [CHROME, FTRACE],
      [PROCESSES, FTRACE],
      [CHROME, PROCESSES, FTRACE, CHROME],
    ]) {
      const { left_out, ...found } = await summarize({ name: 'log', source: page(...texts) })
      expect(left_out).toMatchObject([{ what: 'other sections of the page', count: texts.length - 1 }, ...none])
      expect({ ...found, issues: found.issues.length }).toEqual({ ...expected, issues: expected.issues.length })
      expect((await converted(cut(page(...texts), 11))).length).toBeGreaterThan(alone.length)
    }
    expect(await issuesOf(plainBytes('odd-forms/systrace2.html'))).toEqual([])
  })

  test("without one, as the first of Chrome's; so is a large one", async () => {
    const events = `[${textOf('odd-forms/ndjson.json').trim().split('\n').join(',')}]`
    const { contents, left_out } = await summarize({ name: 'log', source: page(events, CHROME) })
    expect({ contents, left_out }).toMatchObject({ contents: '2 slices', left_out: [{ count: 1 }] })
    const large = await summarize({ name: 'log', source: cut(page(LARGE, FTRACE), 1 << 16) })
    expect(large).toMatchObject({ contents: '30 000 slices', left_out: [{ count: 1 }] })
  })
})

test('a table of llama-bench that is quoted or indented is the same', async () => {
  for (const fixture of ['llama-bench/tests.md', 'llama-bench/two-builds.md', 'llama-bench/others.md']) {
    const text = textOf(fixture)
    const expected = await summarize({ name: 'log', source: encode(text) })
    expect(expected.drawn).toBeGreaterThan(0)
    for (const before of ['> ', '>', '> > ', '  > ']) {
      const quoted = await summarize({ name: 'log', source: encode(text.replace(/^/gm, before)) })
      expect([before, quoted]).toEqual([before, expected])
    }
    const indented = await summarize({ name: 'log', source: encode(text.replace(/^\|/gm, '   |')) })
    expect(indented).toEqual(expected)
  }
})

describe('ftrace with whole numbers as times', () => {
  const text = textOf('ftrace/trace.txt')
  const TIME = /(\d+)\.(\d{6})(?=: \w)/g
  const ticks = (unit: number) =>
    text.replace(TIME, (_, seconds, micros) => `${(Number(seconds) * 1e6 + Number(micros)) * unit}`)

  test('all events are drawn in their order; no duration is known', async () => {
    const { issues: known, ...expected } = await summarize({ name: 'log', source: encode(text) })
    for (const unit of [1, 3000]) {
      const { issues, attributes, ...found } = await summarize({ name: 'log', source: encode(ticks(unit)) })
      expect(found).toMatchObject({
        clock: 'unknown',
        times: 'order',
        duration_ns: null,
        scheduler: expected.scheduler,
      })
      expect({ leftOut: found.left_out, issues: issues.length }).toEqual({
        leftOut: expected.left_out,
        issues: known.length,
      })
      expect(attributes['times']).toMatch(/^whole numbers /)
      expect(await converted(cut(encode(ticks(unit)), 1000))).toEqual(await converted(encode(ticks(unit))))
    }
  })

  test('a time in seconds among them is an issue', async () => {
    const lines = ticks(1).split('\n')
    const odd = text.split('\n').at(-2)!
    const issues = await issuesOf(encode([...lines.slice(0, -3), odd, ...lines.slice(-3)].join('\n')))
    expect(issues).toContainEqual(['impossible-time', 1])
  })
})

describe('a text of perf with samples of code', () => {
  const SAMPLES = [
    'perf 1234 [000] 123.456789:     250000 cycles:  ffffffff8104f45a native_write_msr+0xa ([kernel.kallsyms])',
    'swapper     0 [001] 123.456999: cycles:ppp:  ffffffff8104f45a native_write_msr ([kernel.kallsyms])',
    'llama-cli  77/78 [003] 124.000001:          1 cpu/cycles/u:      7f1234567890 foo(int, char*)+0x10 (/usr/lib/libx.so)',
    'llama-cli  77/78 [003] 124.000002:          1 instructions:u:      7f1234567890 [unknown] (/usr/lib/libx.so)',
  ]

  test.each([
    [SAMPLES[0], 'cycles'],
    [SAMPLES[1], 'cycles:ppp'],
    [SAMPLES[2], 'cpu/cycles/u'],
    [SAMPLES[3], 'instructions:u'],
  ])('of one line is known, and its event is counted by its name: %s', async (line, what) => {
    for (const end of ['', '\n', '\r\n']) {
      const { format, left_out, drawn, issues } = await summarize({ name: 'log', source: encode(`${line}${end}`) })
      expect({ format, left_out, drawn, issues }).toMatchObject({
        format: 'perf-script',
        left_out: [{ what, count: 1 }],
        drawn: 0,
        issues: [],
      })
    }
  })

  test('any single line of the scheduler is a log', () => {
    for (const fixture of SCHEDULER_FIXTURES.filter((name) => name.startsWith('perf-script/'))) {
      const rows = textOf(fixture)
        .split('\n')
        .filter((line) => /sched:sched_\w+: /.test(line) && !line.startsWith('#'))
      expect(rows.length).toBeGreaterThan(0)
      for (const row of rows.slice(0, 20)) expect([row, sniffFormat(encode(row))?.name]).toEqual([row, 'perf-script'])
    }
  })
})
