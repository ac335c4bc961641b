import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { type Analysis, analyze, convert } from '../../lib/index.ts'
import { inputOf, openTrace } from '../../lib/node.ts'
import { counted } from '../read/ggtrace-logs.ts'
import { at, MOE, names, run, useFolder } from './helpers.ts'

/** `stats`: what it prints of logs and of a stored Analysis. */

useFolder()

const LOG = 'test/recorded/outside-graphs.ggtrace.gz'

beforeAll(() => {
  copyFileSync(LOG, at('run.ggtrace.gz'))
  writeFileSync(at('run.json'), run(['stats', 'run.ggtrace.gz', '--json']).stdout)
})

const stats = (...args: string[]) => {
  const { code, stdout, stderr } = run(['stats', '--full', ...args])
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return stdout
}

/** The error of a command that prints and writes nothing. */
const refused = (...args: string[]) => {
  const before = names()
  const { code, stdout, stderr } = run(args)
  expect([code, stdout, names()]).toEqual([1, '', before])
  return stderr
}

/** Rows of a CSV as objects; no field contains a comma. */
function parsed(csv: string): Record<string, string>[] {
  const [head, ...rows] = csv
    .trimEnd()
    .split('\n')
    .map((line) => line.split(','))
  return rows.map((row) => Object.fromEntries(row.map((cell, i) => [head![i]!, cell.replaceAll('"', '')])))
}

describe('for people', () => {
  test('run, calls, time of calls, operators by phase, workers', () => {
    const text = stats('run.ggtrace.gz')
    expect(text.match(/^\S.*$/gm)).toEqual([
      'decode 1 588 tok/s; 23 % of decode computes no graph: outside graphs 23 %',
      'run',
      'calls',
      'time of calls, on the thread that makes them',
      'operators of prefill',
      'operators of decode',
      'workers',
      'threads of workers in calls',
      'experts',
      'memory',
      'model: from its recorded graph',
      'a token of decode, n positions in the context',
      'roofline',
      'findings',
      'not known',
      expect.stringMatching(
        /^columns left out at a width of 120 characters: .*read.* \(--csv and --json contain them\)$/,
      ),
    ])
    for (const line of [
      /^ {2}0 +1 449 +7\.77 ms +55\.6 % +32\.1 µs .*359 µs +2\.6 % +5\.81 ms +41\.6 % +57\.7 %$/m,
      /^ {2}Qcur ROPE +decode +95 µs +59\.5 µs +37\.4 % +1 in 68\.8 %$/m,
      /^ {2}0 +prefill +9\.04 ms +9\.01 ms +32\.1 µs$/m,
      /^ {2}CPU +AMD EPYC, 2 CPUs$/m,
      /^ {2}prefill +1 call, 16 tokens, 1 769 tok\/s$/m,
      /^ {2}TPOT +630 µs: p50 504 µs, p90 1\.18 ms, p99 1\.18 ms, max 1\.18 ms$/m,
      /^ {2}MoE +3\.03 ms +33\.5 % +2\.11 ms +42\.9 %$/m,
      /^ {2}all +9\.04 ms +1 call +4\.92 ms +8 calls$/m,
      /^ {2}compute buffer \(CPU\) +663 KiB +155 +3\.97 MiB +329 KiB +49\.6 % +97\.7 KiB +8 KiB +13\.1 ×$/m,
      /^ {2}decode +10\.8 MiB +10\.8 MiB +MoE 71\.1 %, attention 23\.4 %, /m,
      /^ {2}FLASH_ATTN_EXT +6\.7 % /m, // its role is empty
      /^ {2}10 more +3\.2 % +124 µs +91\.5 µs +736$/m,
      /^ {2}all +100\.0 % +3\.86 ms +6\.88 ms +2 576 +2\.67 µs +14\.9 µs +28\.1 +89\.1 +3\.17$/m,
    ])
      expect(text).toMatch(line)
    const tables = text.slice(0, text.indexOf('\nnot known\n'))
    expect(Math.max(...tables.split('\n').map((line) => line.length))).toBeLessThanOrEqual(120)
    expect(text).not.toMatch(/\bnull\b|undefined|NaN|Infinity| 1 calls| {2}0\.0 % +$/)
  })

  test('--by, --top and --sort', () => {
    const rows = (...args: string[]) => {
      const lines = stats('run.json', ...args).split('\n')
      const first = lines.indexOf('operators')
      return lines.slice(first + 1, lines.indexOf('', first)).map((line) => line.trim().split(/ {2,}/)[0])
    }
    expect(rows('--by', 'block', '--top', '2')).toEqual(['block', 'MoE', 'attention', '5 more', 'all'])
    expect(rows('--by', 'block', '--top', '2', '--sort', 'gb_per_s')).toEqual([
      'block',
      'other',
      'LM head',
      '5 more',
      'all',
    ])
    expect(rows('--by', 'layer', '--top', '9')).toEqual(['layer', '0', '1', '4', '3', '2', '5', 'none', 'all'])
    expect(rows('--by', 'worker')).toEqual(['worker', '0', '1', 'all'])
    // One row is not replaced by "1 more".
    expect(rows('--by', 'block', '--top', '6')).toHaveLength(9)
    expect(stats('run.json', '--by', 'role', '--top', '200')).toMatch(/^ {2}\(unnamed\) +6\.8 % /m)
    expect(stats('run.json', '--by', 'worker')).toMatch(
      /^not known\n(?: {2}\S.*\n)* {2}wall time, quantiles, bytes and FLOP by worker: /m,
    )
  })

  test('counters per operator and per byte', () => {
    writeFileSync(at('counted.ggtrace'), counted())
    expect(stats('counted.ggtrace', '--by', 'op')).toMatch(/^ {2}counters, per operator\n {2}op +\w.*per byte/m)
  })

  test('--markdown: the same as tables, without the name of the host', () => {
    const analysis: Analysis = JSON.parse(readFileSync(at('run.json'), 'utf8'))
    const secret = { ...analysis, run: { ...analysis.run, host: 'secret', command: 'a|b <img> @someone `x`' } }
    writeFileSync(
      at('host.json'),
      JSON.stringify({ ...secret, inputs: [{ ...analysis.inputs[0], name: '/home/me/a.ggtrace' }] }),
    )
    const text = stats('host.json', '--markdown')
    expect(text).toMatch(
      /^\*\*decode 1 588 tok\/s; .*\*\*\n\n- .* stats a\.ggtrace --peaks measure.*\n\n<details><summary>All figures<\/summary>\n\n\*\*run\*\*\n\n- command: a\\\|b \\<img\\> @&#8203;someone \\`x\\`\n- log: a\.ggtrace \(ggtrace\)\n/,
    )
    expect(text).toMatch(/^\| operator \| share \| wall \|.*\n\| --- \| ---: \| ---: \|.*\n\| ffn_moe_gate MUL\\?_MAT/m)
    expect(text).not.toMatch(/secret|\/home\/me/)
    expect(text.split('<details>')[0]!.split('\n').length).toBeLessThanOrEqual(20)
    expect(text.split('\n').length).toBeLessThan(220)
    expect(stats('host.json')).toContain('secret')
  })

  test('several contexts and sequences, and a growth with the context that is clear', () => {
    const analysis: Analysis = JSON.parse(readFileSync(at('run.json'), 'utf8'))
    const { calls } = analysis
    const [context] = calls.contexts
    const [sequence] = context!.by_sequence
    const fit = { ms_per_1000_tokens: 4.5, standard_error_ms: 0.2, at_0_ns: 1e6, mean_ns: 2e6, r_squared: 0.98 }
    const slope = {
      ...calls.slope!,
      is_clear: true,
      tpot: fit,
      operators: {
        points: 7,
        call: fit,
        parts: [{ ...fit, ms_per_1000_tokens: 2.25, what: 'role', role: 'kq', op: 'MUL_MAT', block: 'attention' }],
      },
    }
    const contexts = [
      { ...context, role: 'target', by_sequence: [sequence, { ...sequence, sequence: 7 }] },
      { ...context, role: 'draft' },
    ]
    writeFileSync(at('contexts.json'), JSON.stringify({ ...analysis, calls: { ...calls, contexts, slope } }))
    const text = stats('contexts.json')
    for (const line of [
      /^ {2}growth +4\.5 ms \(±0\.2\) of TPOT per 1 000 tokens of context, R² 0\.98; 7 calls at 17 to 23 tokens$/m,
      /^ {2}kq MUL_MAT +2\.25 ±0\.2 +50\.0 % +0\.98 +2 ms$/m,
      /^ {2}target +9 +9\.04 ms +1 769 +630 µs +1\.18 ms +1 588 +161 µs$/m,
      /^ {2}7 \(target\) +8 +630 µs +504 µs /m,
    ])
      expect(text).toMatch(line)
    expect(stats('run.json')).not.toContain('ms per 1 000 tokens')
  })

  test('--series: figures over time, of the call that --call names', () => {
    const of = (...args: string[]) => JSON.parse(stats('run.ggtrace.gz', '--json', ...args)).series
    const { graph, memory, ...others } = of('--series', 'graph,memory', '--call', '3')
    expect([graph.call, graph.nodes.length, memory.call, others]).toEqual([3, 288, 3, {}])
    expect(Object.keys(of('--series', 'offsets', '--calls')).sort()).toEqual(['calls', 'offsets'])
    const mistakes: Readonly<Record<string, readonly string[]>> = {
      '--series graph: no operators of call 99 were recorded': ['--json', '--series', 'graph', '--call', '99'],
      '--series is for --json; --calls prints a table of calls': ['--series', 'graph'],
      '--call is for --series graph and --series memory': ['--json', '--call', '1'],
      '--series "grap": no series is called "grap"; expected some of calls,requests,offsets,memory,graph,steps\nhint: did you mean graph?':
        [...['--json', '--series', 'grap']],
    }
    for (const [message, args] of Object.entries(mistakes))
      expect(refused('stats', 'run.ggtrace.gz', ...args)).toBe(`error: ${message}\n`)
    expect(refused('stats', 'run.json', '--json', '--series', 'graph')).toBe(
      'error: run.json: contains no series of graph\nhint: ggml2perfetto stats <logs> --series graph --json writes an Analysis with one\n',
    )
  })

  test('--calls shows the table that the Analysis contains', () => {
    const analysis: Analysis = JSON.parse(readFileSync(at('run.json'), 'utf8'))
    const { series } = JSON.parse(stats('run.ggtrace.gz', '--calls', '--json'))
    writeFileSync(at('calls.json'), JSON.stringify({ ...analysis, series }))
    const table = stats('calls.json', '--calls')
      .split('\n\n')
      .find((part) => part.startsWith('each call\n'))!
    expect(table.split('\n')).toHaveLength(2 + 9)
    expect(table).toMatch(/^ {2}call +phase +tokens .* tpot +operator time +wait$/m)
    expect(table).toMatch(/^ {2}0 +prefill +16 .* 9\.04 ms +8\.61 ms +\d+ µs$/m)
    expect(stats('run.ggtrace.gz', '--calls')).toContain(table)
    expect(refused('stats', 'run.json', '--calls')).toBe(
      'error: run.json: contains no table of calls\nhint: ggml2perfetto stats <logs> --calls --json writes an Analysis with one\n',
    )
  })
})

describe('--csv', () => {
  test('equals SQL over the converted trace', async () => {
    const trace = await openTrace(convert(inputOf(LOG)))
    const { rows } = trace.query(
      `select name, count(*), sum(dur), min(dur), max(dur) from slice where category = 'operator' and name not glob '*+*' group by 1 order by 1`,
    )
    trace.close()
    const csv = parsed(stats('run.ggtrace.gz', '--csv', '--by', 'role,op'))
    const found = csv
      .filter(({ op }) => !op!.includes('+'))
      .map(({ role, op, executions, operator_time_ns, min_ns, max_ns }) => [
        `${role} ${op}`.trim(),
        ...[executions, operator_time_ns, min_ns, max_ns].map(Number),
      ])
      .sort(([a], [b]) => (a! < b! ? -1 : 1))
    expect(found.length).toBeGreaterThan(20)
    expect(found).toEqual(rows.map(([name, ...figures]) => [String(name), ...figures.map(Number)]))
    for (const phase of ['prefill', 'decode'])
      for (const kind of ['wall', 'operator_time'])
        expect(csv.reduce((sum, row) => sum + Number(row[`${kind}_share_of_${phase}`]), 0)).toBeCloseTo(1, 9)
  })

  test('has the rows of the Analysis, from a log, from the stored Analysis, compressed, and from stdin', () => {
    const csv = stats('run.ggtrace.gz', '--csv')
    const analysis: Analysis = JSON.parse(readFileSync(at('run.json'), 'utf8'))
    const rows = parsed(csv)
    expect(rows).toHaveLength(analysis.operators.rows.length)
    expect(rows[0]).toMatchObject({ phase: 'prefill', shape: expect.stringMatching(/×/), preempted_ns: '0', last: '' })
    writeFileSync(at('run.json.gz'), gzipSync(readFileSync(at('run.json'))))
    expect(stats('run.json', '--csv')).toBe(csv)
    expect(stats('run.json.gz', '--csv')).toBe(csv)
    expect(run(['stats', '-', '--csv'], { input: readFileSync(at('run.json')) }).stdout).toBe(csv)
    expect(stats('run.json', '--csv', '--top', '3').split('\n')).toHaveLength(5)
  })
})

test('--json of a stored Analysis is the same document', () => {
  expect(stats('run.json', '--json')).toBe(readFileSync(at('run.json'), 'utf8'))
})

describe('mistakes', () => {
  test.each<[string[], string]>([
    [
      ['--by', 'rloe'],
      '--by "rloe": no key is called "rloe"; expected some of op,role,layer,block,type,backend,phase,shape,worker,request,slot\nhint: did you mean role?',
    ],
    [['--by', ''], '--by "": no key is called ""'],
    [['--sort', 'p98'], '--sort "p98": expected wall, computing, '],
    [['--json', '--csv'], '--json and --csv: expected one of them'],
    [['--json', '--top', '3'], '--top is for tables; --json is the whole Analysis\nhint: --csv is a table'],
    [['--clock', 'run.json=mono'], '--clock is for logs; run.json is an Analysis'],
    [[MOE], 'run.json: is an Analysis, of a whole run already; found 2 inputs'],
  ])('%j', (args, message) => {
    expect(refused('stats', 'run.json', ...args)).toContain(`error: ${message}`)
  })

  test('a trace, several runs, and logs without calls and operators', () => {
    run([MOE, '-o', 'moe.pftrace'])
    expect(refused('stats', 'moe.pftrace')).toMatch(/^error: moe\.pftrace: is a trace, not a log\nhint: /)
    copyFileSync(at('run.ggtrace.gz'), at('again.ggtrace.gz'))
    expect(refused('stats', 'run.ggtrace.gz', 'again.ggtrace.gz')).toMatch(
      /^error: again\.ggtrace\.gz and run\.ggtrace\.gz both contain operators: they are of two processes or runs\nhint: /,
    )
    copyFileSync('test/fixtures/perf-script/default.txt', at('sched.txt'))
    expect(refused('stats', 'sched.txt')).toBe(
      'error: nothing to analyse: no calls, no graphs, no operators, no GPU work (sched.txt: perf-script)\nhint: what it contains: ggml2perfetto stats --contents sched.txt\n',
    )
  })

  test('a log of which only losses are known: the command that the conversion names shows them', () => {
    const event = (ts: number | string) => ({ ph: 'X', name: 'work', pid: 1, tid: 1, ts, dur: 5 })
    writeFileSync(at('lost.json'), JSON.stringify({ traceEvents: [event('then'), event(100), event(200)] }))
    const { stdout: lines } = run(['lost.json', '-o', 'lost.pftrace'])
    expect(lines).toMatch(/why: (.*)\n {5}evidence and checks: ggml2perfetto why lost\.json\n/)
    const { code, stdout } = run(['why', 'lost.json'])
    expect([code, stdout]).toEqual([0, expect.stringContaining(`1. ${/why: (.*)/.exec(lines)![1]}\n`)])
  })

  test.each([
    ['run.json'],
    ['convert', 'run.json'],
    ['info', 'run.json'],
    ['open', 'run.json'],
    ['check', 'run.json'],
    ['query', 'run.json', 'select 1 as one'],
  ])('%s %s of an Analysis: what to use instead', (...args) => {
    expect(refused(...args)).toBe(
      'error: run.json: is an Analysis, not a log or a trace\nhint: ggml2perfetto stats run.json prints its tables; a trace is made from the log\n',
    )
  })

  test('an Analysis is not replaced by a trace', () => {
    expect(refused('run.ggtrace.gz', '-o', 'run.json')).toContain('run.json: is an Analysis, which would be lost')
  })
})

test('the first token: in one line, and in full as a table with stages and what is unusual', async () => {
  copyFileSync('test/fixtures/session/run.ggtrace.gz', at('session.ggtrace.gz'))
  const { first_token } = await analyze(inputOf(at('session.ggtrace.gz')))
  const brief = run(['stats', 'session.ggtrace.gz']).stdout
  expect(brief).toMatch(/^ {2}first token {2}59.2 ms: load 2.8 %, context 5.2 %, prefill 91.0 %$/m)
  expect(brief.trimEnd().split('\n').length).toBeLessThanOrEqual(25)
  const [, section] = run(['stats', '--full', 'session.ggtrace.gz']).stdout.split('\nfirst token\n')
  const stages = first_token!.parts.flatMap(({ stages }) => stages.map(({ stage }) => stage))
  for (const name of ['load', 'context', 'prefill', 'first decode', ...stages]) expect(section).toContain(name)
  expect(section).toMatch(/warm-up +not recorded/)
  expect(section).toMatch(/prefill: worker 0 was preempted/)
  expect(run(['stats', '--full', MOE]).stdout).not.toContain('\nfirst token\n')
})
