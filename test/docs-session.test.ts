import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { beforeAll, expect, test } from '@jest/globals'
import { eventsOf, Names } from '../lib/index.ts'
import { inputOf } from '../lib/node.ts'
import { at, run, useFolder } from './cli/helpers.ts'
import { writeModel } from './llama/gguf.mjs'

/** Each command of the second table in docs/tasks.md runs, on files of the kinds that its row names, and prints what answers the row's question. */
const ROOT = fileURLToPath(new URL('..', import.meta.url))

useFolder()

/** The names in the commands, and what these files are here. */
const FILES = {
  'run.ggtrace': 'fixtures/session/run.ggtrace.gz',
  'run.sched.dat': 'fixtures/session/run.sched.dat.gz',
  'before.ggtrace': 'fixtures/session/run.ggtrace.gz',
  'after.ggtrace': 'recorded/preempted.ggtrace.gz',
  'trace.txt': 'fixtures/ftrace/trace-marks.txt',
  'report.sqlite': 'fixtures/nsys/one-gpu.sqlite.gz',
  'rocprof.json': 'fixtures/rocprofv3/mi350x.json',
  'trace.json.gz': 'fixtures/chrome-json/h100.json.gz',
  'blas.log': 'fixtures/onednn/v3.7.log',
  'kernels.csv': 'fixtures/ncu/details.csv',
  'perf-stat.csv': 'fixtures/perf-stat/program.csv',
  'timeline.csv': 'fixtures/streamline/timeline.csv',
  'server.log': 'fixtures/server/v0.7.0-lv4.log',
  'profile_export.jsonl': 'fixtures/aiperf/cut.jsonl',
  'bench.json': 'fixtures/llama-bench/tests.json',
}

/** What each command prints, in the order of the table. */
const PRINTS: readonly [command: string, prints: RegExp][] = [
  ['run.ggtrace -o run.pftrace', /: 7 calls: prefill 8 tokens, decode 6 tokens\n[\s\S]*wrote run\.pftrace/],
  [
    'why run.ggtrace run.sched.dat',
    /^decode 4 027 tok.*\n.*\n\n1\. worker 0 was preempted 52 % of prefill: decode \(of this program\) 47 %, node/,
  ],
  ['trace.txt', /wrote trace\.txt\.pftrace/],
  ['report.sqlite', /report\.sqlite: \d+ kernels, .*CUDA calls/],
  ['rocprof.json', /rocprof\.json: \d+ kernels/],
  ['trace.json.gz', /trace\.json\.gz: \d+ kernels, .*GPU API calls/],
  ['stats run.ggtrace', /^decode 4 027 tok\/s [\s\S]*\ntime of calls, TTFT 53\.8 ms, TPOT 248 µs \(p99 598 µs\)\n/],
  ['stats run.ggtrace --by op', /\n {2}MUL_MAT +56\.8 % +24\.4 % [\s\S]*\n {2}MUL_MAT_ID /],
  ['why run.ggtrace', /^decode 4 027 tok.*\n.*\n\n1\. /],
  ['compare before.ggtrace --with after.ggtrace', /\n {2}TPOT +248 µs +7\.24 ms /],
  ['stats model.gguf', /\n {2}weights read +\d[\s\S]*\n {2}KV cache read /],
  ['stats blas.log', /\n {2}matmul +32×1536×512 +NT +f32 f32 f32 /],
  ['stats kernels.csv --full', /\n {2}copy_blocked.* 1 +21\.1 ms +1\.3 % +61\.8 %/],
  ['perf-stat.csv', /: 150 counts, 53 intervals\n/],
  ['timeline.csv', /: 10 counters, 40 intervals\n/],
  [
    'stats run.ggtrace smi.csv --clock smi.csv=UTC --full',
    /\npower\n {2}GPU 0: power\.draw.*\n[\s\S]*\n {2}prefill +1 +8 /,
  ],
  ['stats server.log --by request', /\n +1 +0 +0 +295 ms +139 ms /],
  ['stats profile_export.jsonl --by request', /\n +4 +completion +complete +4\.36 ms +7\.94 s +1\.68 s /],
  ['stats bench.json', /\n {2}tg8 +3 +9\.86 /],
]

beforeAll(async () => {
  for (const [name, path] of Object.entries(FILES)) {
    const [from, isPacked] = [join(ROOT, 'test', path), path.endsWith('.gz') && !name.endsWith('.gz')]
    if (isPacked) writeFileSync(at(name), gunzipSync(readFileSync(from)))
    else copyFileSync(from, at(name))
  }
  const shape = { layers: 2, width: 64, feedForward: 96, heads: 4, kvHeads: 2, vocabulary: 300, context: 256 }
  await writeModel(shape, at('model.gguf'))
  writeFileSync(at('smi.csv'), await powerOf('run.ggtrace'))
})

/** The readings of nvidia-smi, of the time in which the log was recorded, one each 10 ms. */
async function powerOf(log: string): Promise<string> {
  for await (const batch of eventsOf(inputOf(at(log)), new Names())) {
    for (const event of batch) {
      if (event.kind !== 'clocks') continue
      const atNs = event.readings.find(({ clock }) => clock === 'REALTIME')!.ns
      const [head, ...rows] = readFileSync(join(ROOT, 'test/fixtures/power/nvidia-smi.csv'), 'utf8').split('\n')
      const stamps = rows.map((_, i) => new Date(Number(atNs / 1_000_000n) + 10 * i).toISOString().slice(0, -1))
      const moved = rows
        .filter(Boolean)
        .map((row, i) => row.replace(/^[^,]+/, stamps[i]!.replaceAll('-', '/').replace('T', ' ')))
      return [head, ...moved, ''].join('\n')
    }
  }
  throw new Error(`${log} has no reading of REALTIME`)
}

test('the table has these commands', () => {
  const [, table] = readFileSync(join(ROOT, 'docs/tasks.md'), 'utf8').split('## By what you have')
  const rows = table!.match(/^\| .*\|$/gm)!
  const commands = rows.flatMap((row) =>
    [...row.split(' | ')[2]!.matchAll(/`ggml2perfetto ([^`]+)`/g)].map(([, line]) => line),
  )
  expect(commands).toEqual(PRINTS.map(([command]) => command))
})

test.each(PRINTS)('ggml2perfetto %s', (command, prints) => {
  const { code, stdout, stderr } = run(command.split(' '))
  expect(stderr).toBe('')
  expect(stdout).toMatch(prints)
  expect(code).toBe(0)
})
