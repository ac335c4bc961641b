import { describe, expect, test } from '@jest/globals'
import { convert, type Summary, summarize } from '../../lib/index.ts'
import { openTrace } from '../../lib/node.ts'
import { FORMATS, sniffFormat } from '../../lib/read/index.ts'
import { findThreadIds } from '../../lib/read/profinfer/threads.ts'
import type { Cell } from '../../lib/sql.ts'
import { ktraceOf, openharmonyOf, type Row, rowsOf, textOf, without } from '../../scripts/profinfer-generations.mjs'
import { inLong } from '../long.ts'
import { drawn, type Shown } from '../printing-sink.ts'
import { converted, eventsIn, FIXTURE_NAMES, formatOf, joined, plainBytes } from './support.ts'

/** The generations of ProfInfer's logs: one run is the same in all of them, and each is told from the others. */

const text = (fixture: string) => new TextDecoder().decode(plainBytes(fixture))
const bytes = (lines: string) => new TextEncoder().encode(lines)
const summaryOf = (log: string | Uint8Array): Promise<Summary> =>
  summarize({ name: 'log', source: typeof log === 'string' ? bytes(log) : log })
const titles = ({ issues }: Summary) => issues.map(({ title, count }) => `${count} × ${title}`)

const linesOf = (log: string, shown: Shown): Promise<string[]> =>
  drawn({ name: 'log', source: bytes(log) }, { detail: 'full' }, { ...shown, isAbsolute: true })

async function queried(logs: readonly string[], sql: string): Promise<Cell[][]> {
  const inputs = logs.map((lines, i) => ({ name: `log ${i}`, source: bytes(lines) }))
  const trace = await openTrace(await joined(convert(inputs, { detail: 'full' })))
  try {
    expect(trace.problems()).toEqual([])
    return trace.query(sql).rows
  } finally {
    trace.close()
  }
}

describe('one run in every generation', () => {
  const arg = (key: string) => `extract_arg(arg_set_id, 'debug.${key}')`
  const args = ['op', 'tensor', 'layer', 'shape', 'src0', 'src1', 'struct_address', 'src0_struct_address', 'tid', 'cpu']
  args.push('src1_struct_address', 'token', 'backend', 'n_tokens', 'phase')
  const slicesOf = async (log: string) =>
    (await linesOf(log, { args })).filter((line) => !/ = -?[\d.e+]+$/.test(line)).sort()

  test.each([
    ['profinfer-csv/moe-2threads.csv.gz', 2 * 1332],
    ['profinfer-csv/tiny.csv', 12],
    ['profinfer-csv/no-struct.csv', 12],
    ['profinfer-csv/unsorted.csv', 6],
  ])(
    '%s: the same slices by time, op, name, layer, worker, shapes, sources and addresses',
    async (fixture, operators) => {
      const csv = text(fixture)
      const rows = rowsOf(csv)
      const struct = 'parm_addr' in rows[0]!
      const slices = await slicesOf(csv)
      expect(slices.filter((line) => /^worker.*[{ ]tensor: /.test(line))).toHaveLength(operators)
      const generations = {
        text: textOf(rows),
        'first text': textOf(rows, { comma: false }),
        openharmony: openharmonyOf(rows, { tgid: 4242, struct }),
        'openharmony, ids straight': openharmonyOf(rows, { tgid: 4242, struct, straight: true }),
      }
      for (const [generation, log] of Object.entries(generations)) {
        const found = await slicesOf(log)
        expect(`${generation}: ${found.length}`).toBe(`${generation}: ${slices.length}`)
        expect(found).toEqual(slices)
        expect(titles(await summaryOf(log))).toEqual([])
      }
    },
  )

  test('counters are those of the CSV', async () => {
    const csv = text('profinfer-csv/pmc.csv')
    const samplesOf = async (log: string, counter: string) => {
      const lines = await linesOf(log, { rows: RegExp(`(^|/)${counter} of`) })
      return lines.map((line) => line.replace(/.* \| /, '')).sort()
    }
    const found = await samplesOf(textOf(rowsOf(csv)), 'pmc')
    expect(found).toHaveLength(24)
    expect(found).toEqual(await samplesOf(csv, 'pmc_0'))
  })

  test('beside the states of its threads: each operator ran where the scheduler says', async () => {
    const csv = text('profinfer-csv/moe-2threads.csv.gz')
    const ktrace = ktraceOf(rowsOf(csv))
    const [[total, outside, lanes]] = (await queried(
      [csv, ktrace],
      `WITH running AS (SELECT ts, dur, ${arg('cpu')} AS cpu, track.name AS thread FROM slice
          JOIN track ON track.id = track_id WHERE slice.name GLOB 'running on CPU *'),
        operators AS (SELECT ts, ${arg('tid')} AS tid, ${arg('cpu')} AS cpu FROM slice WHERE category = 'operator')
      SELECT count(*), sum(NOT EXISTS (SELECT 1 FROM running WHERE running.ts <= operators.ts AND
          operators.ts <= running.ts + running.dur AND thread IN ('llama-cli ' || tid, 'llama-cli ' || tid || ': state') AND running.cpu = operators.cpu)),
        (SELECT count(DISTINCT thread) FROM running) FROM operators`,
    )) as [Cell[]]
    expect([total, outside, lanes]).toEqual([2664, 0, 10])
  })
})

describe('detection', () => {
  test.each(FIXTURE_NAMES)('%s is claimed by its own format only', (fixture) => {
    const head = plainBytes(fixture).subarray(0, 4096)
    expect(FORMATS.filter((format) => format.sniff(head)).map(({ name }) => name)).toEqual([formatOf(fixture)])
  })

  test.each([
    ['ftrace', '# tracer: nop\n#\n <idle>-0 [001] d..2. 12.345678: sched_switch: prev_comm=swapper/1 prev_pid=0 ==>'],
    ['perf-script', 'ggml-w 0 16802 [001] 12.345678: sched:sched_switch: prev_comm=a prev_pid=1 prev_prio=120'],
    ['ftrace', 'cpus=2\n  a-12 [000] 3917.038898440: sched_switch: a:12 [120] S ==> swapper/0:0 [120]'],
  ])('%s is claimed by its own format only', (format, log) => {
    expect(FORMATS.filter(({ sniff }) => sniff(bytes(log))).map(({ name }) => name)).toEqual([format])
  })

  test.each([
    ['bpftrace', '{"type": "map", "data": {"@": {"ts": 12, "func": "llama_decode", "pos": "start"}}}'],
    ['nsys', 'Start (ns),Duration (ns),CorrId,Name\n12,5,1,gemm'],
    ['a CSV of processes', 'PID,TID,CPU,Name\n1,1,0,init'],
    ['another text of keys', 'ts:12,level:info,func:main,msg:started\nts:13,func:main'],
    ['numbers in brackets', '3917 [1] hello\n3918 [1] sched_switch happened'],
  ])('%s is claimed by none', (_, log) => {
    expect(sniffFormat(bytes(log))).toBeUndefined()
  })
})

describe('profinfer-text', () => {
  const log = textOf(rowsOf(text('profinfer-csv/tiny.csv')))
  const lines = log.split('\n')

  test('cells may come in any order, with others between; lines of either break, and after a byte order mark', async () => {
    const { events } = await eventsIn(bytes(log))
    const turned = lines.map((line) => `${line.slice(0, -1).split(',').toReversed().join(',')},host:a,b,`)
    const forms = [`\ufeff${log}`, lines.join('\r\n'), `${log}\n`, turned.join('\n')]
    const withoutPlaces = (all: typeof events) => all.map((event) => ({ ...event, at: undefined }))
    for (const form of forms) {
      expect(withoutPlaces((await eventsIn(bytes(form), { from: 'profinfer-text' })).events)).toEqual(
        withoutPlaces(events),
      )
    }
  })

  test('a name may hold commas and colons', async () => {
    const { names, events } = await eventsIn(bytes(log.replaceAll('name:embd', 'name:a, b:1,2')))
    const found = events.flatMap((event) => (event.kind === 'tensor' && event.op !== 0 ? names.text(event.name) : []))
    expect(found[0]).toBe('a, b:1,2')
  })

  test('a line torn anywhere is told, and nothing before it is lost', async () => {
    const last = lines.at(-1)!
    const whole = await summaryOf(log)
    const start = log.length - last.length
    for (let length = start + 1; length < log.length; length++) {
      const { issues, operators } = await summaryOf(log.slice(0, length))
      expect(`${length}: ${issues[0]?.title}`).toBe(`${length}: torn record`)
      expect(operators).toBe(whole.operators)
    }
    expect(titles(await summaryOf(log.slice(0, start)))).toEqual(['1 × log ends within a call'])
  })

  test('functions of accelerators are operators, unknown ones are told', async () => {
    const gpu = log.replaceAll('ggml_compute_forward', 'ggml_cl_compute_forward')
    expect(await summaryOf(gpu)).toMatchObject({ operators: 12, issues: [] })
    const unknown = log.replaceAll('ggml_backend_graph_compute_async', 'ggml_new_function')
    const summary = await summaryOf(unknown)
    expect(titles(summary)).toEqual(['4 × unreadable row'])
    expect(summary.issues[0]!.first.detail).toMatch(/^expected values for ts, func, pos and pid, found .*ggml_new_func/)
  })

  inLong(test)('what the logger says of losses is an issue; so is a log as long as the logger keeps', async () => {
    const summary = await summaryOf(plainBytes('profinfer-text/lost-ends.txt'))
    expect(titles(summary)).toEqual(['1 × lost records', '2 × range without an end'])
    expect(summary.issues[0]!.first.detail).toBe('the logger reports that 3 were lost')
    const row = (i: number) => `${i},${1e12 + i * 10},${i % 2 ? 15 : 10},7\n`
    const piece = (from: number) => bytes(Array.from({ length: 10_000 }, (_, i) => row(from + i)).join(''))
    const full = [bytes(',ts,type,pid\n'), ...Array.from({ length: 100 }, (_, i) => piece(i * 10_000))]
    const { issues } = await summarize({ name: 'log', source: full })
    expect(issues.map(({ first }) => first.detail)).toEqual([
      'the log has 1000000 rows, the most that the logger keeps: it drops the oldest rows without a message',
    ])
  })
})

describe('profinfer-openharmony', () => {
  const rows = rowsOf(text('profinfer-csv/tiny.csv'))
  const aboutIds = async (log: string | Uint8Array) => (await summaryOf(log)).attributes['thread_ids']

  test('says which column has the threads, and how that was come by', async () => {
    const counts = ', and a process (column TID) has many threads'
    expect(await aboutIds(plainBytes('profinfer-openharmony/tiny.csv'))).toBe(
      `column PID, inferred: PID has 3 values, TID 1${counts}`,
    )
    expect(await aboutIds(plainBytes('profinfer-openharmony/straight.csv'))).toMatch(/^column TID, inferred: PID has 1/)
    expect(await aboutIds(plainBytes('profinfer-openharmony/graph-only.csv'))).toMatch(/^column PID, assumed as/)
  })

  test('is not misled by a damaged id, nor by the logger seeing two processes', async () => {
    const damaged = openharmonyOf(rows, { tgid: 4242, straight: true }).replace(',4242,700,', ',4243,700,')
    expect(await aboutIds(damaged)).toMatch(/^column TID, inferred/)
    const ids = [1, 1, 2, 2, 3, 3, 4, 4].map((tid) => ({ tid, tgid: tid < 3 ? 10 : 11 }))
    expect(findThreadIds(ids, ['PID', 'TID'])).toMatchObject({ areSwapped: false })
    const turned = ids.map(({ tid, tgid }) => ({ tid: tgid, tgid: tid }))
    expect(findThreadIds(turned, ['PID', 'TID'])).toMatchObject({ areSwapped: true })
  })

  test('a thread id that is none is told, whichever column has them', async () => {
    for (const straight of [false, true]) {
      const log = openharmonyOf(rows, { tgid: 4242, straight }).split('\n')
      const cells = log[3]!.split(',')
      cells[straight ? 2 : 1] = 'x'
      const summary = await summaryOf(log.with(3, cells.join(',')).join('\n'))
      expect(titles(summary)).toEqual(['1 × unreadable row', '1 × end without a start'])
    }
  })

  test('a log of rows without structures is told from torn rows', async () => {
    const log = openharmonyOf(rows, { tgid: 700 })
    const lines = log.split('\n')
    const short = `${lines[4]!.split(',').slice(0, 9).join(',')},`
    expect(titles(await summaryOf(lines.with(4, short).join('\n')))).toContain('1 × unreadable row')
    const torn = [...lines.slice(0, -2), short].join('\n')
    expect(titles(await summaryOf(torn))).toContain('1 × torn record')
    expect(titles(await summaryOf(plainBytes('profinfer-openharmony/no-struct.csv')))).toEqual([])
  })

  test('tagged pointers of 64 bits lose their top byte', async () => {
    const log = openharmonyOf(rows, { tgid: 700 }).replaceAll('0x7f4e35b674e0', '0xb4007f4e35b674e0')
    const lines = await linesOf(log, { args: ['struct_address'] })
    expect(lines.find((line) => line.includes(' embd GET_ROWS '))).toMatch(/ {struct_address: 0x7f4e35b674e0}/)
  })
})

describe('profinfer-ktrace', () => {
  const states = (log: string) => linesOf(log, { rows: /: state$|states/ })

  test('a real log, of a decoding process that shared its CPU with a busy loop', async () => {
    const log = text('profinfer-ktrace/real.txt')
    const found = await states(log)
    expect(found.slice(-3)).toEqual([
      'decode 25479: state | 12886519874461–12886519908537 blocked',
      'decode 25479: state | 12886519908537–12886540043174 runnable (woken)',
      'decode 25479: state | 12886540043174–12886543951345 running on CPU 1',
    ])
    expect(titles(await summaryOf(log))).toEqual([])
    expect((await summaryOf(log)).duration_ns).toBe(12_886_543_951_345 - 12_886_518_778_998)
  })

  test('state 0 and R+ are preemption, and who took the CPU is told', async () => {
    const log = [
      'Children PIDs are: 7',
      '1000 [0] sched_switch: [swapper/0 0 120 0] => [a b 7 120]',
      '2000 [0] sched_switch: [a b 7 120 0] => [x => [y 9 120]',
      '3000 [0] sched_switch: [x => [y 9 120 1] => [a b 7 120]',
      '4000 [0] sched_switch: [a b 7 120 256] => [swapper/0 0 120]',
      '5000 [1] sched_switch: [swapper/1 0 120 0] => [a b 7 120]',
      '5500 [0] sched_wakeup: 7 a b',
      '6000 [1] sched_switch: [a b 7 120 2] => [z 10 120]',
      '7000 [1] sched_wakeup: 7 a b',
      '8000 [1] sched_switch: [z 10 120 0] => [a b 7 120]',
      '9000 [1] sched_switch: [a b 7 120 16] => [z 10 120]',
    ].join('\n')
    expect(await linesOf(log, { args: ['taken_first_by'] })).toEqual([
      'a b 7: state | 1000–2000 running on CPU 0',
      'a b 7: state | 2000–3000 runnable (preempted) {taken_first_by: x => [y 9}',
      'a b 7: state | 3000–4000 running on CPU 0',
      'a b 7: state | 4000–5000 runnable (preempted)',
      'a b 7: state | 5000–6000 running on CPU 1',
      'a b 7: state | 6000–7000 blocked',
      'a b 7: state | 7000–8000 runnable (woken)',
      'a b 7: state | 8000–9000 running on CPU 1',
    ])
  })

  test('with and without parents’ ids, listed or not, commands ending in numbers: the same states', async () => {
    const rows: readonly Row[] = rowsOf(text('profinfer-csv/tiny.csv'))
    const expected = await states(ktraceOf(rows, { command: 'ggml-w 0' }))
    expect(expected.length).toBeGreaterThan(30)
    for (const parents of [false, true]) {
      for (const list of [false, true]) {
        for (const batch of [1, 5, 1000]) {
          const log = ktraceOf(rows, { command: 'ggml-w 0', parents, list, batch })
          expect(await states(log)).toEqual(expected)
        }
      }
    }
  })

  test('a switch that is missing is told', async () => {
    const log = text('profinfer-ktrace/tiny.txt')
    const lost = log.split('\n').flatMap((line, i) => (/=> \[llama-cli/.test(line) ? [i] : []))
    for (const place of lost) {
      const summary = await summaryOf(without(log, [place]))
      expect(titles(summary)).toEqual(['1 × lost records'])
    }
    expect(titles(await summaryOf(plainBytes('profinfer-ktrace/lost.txt')))).toEqual(['3 × lost records'])
  })

  test('another one than the form of most lines, and lines of no form, are told', async () => {
    const lines = text('profinfer-ktrace/tiny.txt').split('\n')
    const bad = [
      ...lines,
      '3917039000000 [0] sched_switch: [a] => [b]',
      'Possibly lost 7 samples',
      'hello',
      '39170 [0] sch',
    ]
    expect(titles(await summaryOf(bad.join('\n')))).toEqual([
      '1 × lost records',
      '2 × unreadable row',
      '1 × torn record',
    ])
  })

  test('strict stops at the first issue', async () => {
    const failed = converted(plainBytes('profinfer-ktrace/lost.txt'), { strict: true })
    await expect(failed).rejects.toMatchObject({ name: 'FormatError', message: expect.stringMatching(/lost records/) })
  })
})
