import { spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { eventsOf, Names } from '../../lib/index.ts'
import { inputOf } from '../../lib/node.ts'
import { at, CLI, run } from '../cli/helpers.ts'
import { writeModel } from '../llama/gguf.mjs'
import { ensureLlama, hasLlama, LIB, runner } from '../llama/testbed.ts'
import { NANO, NANO_MOE } from '../native/recording.ts'
import { ROOT } from '../root.ts'
import { exchange } from '../rpc/exchange.ts'

/** The files that printed command lines name, and the programs that they start. */

/** What files of these names are here, below test/; those with .gz are unpacked. */
const FILES: Readonly<Record<string, string>> = {
  'run.ggtrace': 'fixtures/session/run.ggtrace.gz',
  'run.sched.dat': 'fixtures/session/run.sched.dat.gz',
  'llama-cli-20261121-101500.ggtrace': 'fixtures/session/run.ggtrace.gz',
  'server.ggtrace': 'printed/logs/server.ggtrace.gz',
  'server.log': 'fixtures/server/v0.7.0-lv4.log',
  'nano.ggtrace': 'fixtures/memory-samples/nano.ggtrace.gz',
  'run.faults.data': 'fixtures/memory-samples/nano.data.gz',
  'llama.ggtrace': '../examples/llama.ggtrace.gz',
  'qwen2.ggtrace': '../examples/qwen2.ggtrace.gz',
  'before.ggtrace': 'printed/logs/before.ggtrace.gz',
  'before.sched.dat': 'printed/logs/before.sched.dat.gz',
  'after.ggtrace': 'printed/logs/after.ggtrace.gz',
  'long.ggtrace': 'printed/logs/long.ggtrace.gz',
  'big.ggtrace': 'printed/logs/big.ggtrace.gz',
  'first.ggtrace': 'printed/logs/first.ggtrace.gz',
  'peaks.json': 'printed/logs/peaks.json',
  'run.csv': '../examples/moe.csv',
  'run.bin': 'fixtures/tensor-trace/moe-2threads.bin.gz',
  'tensor_trace.bin': 'fixtures/tensor-trace/warm-up.bin',
  'run.log': 'fixtures/llama-log/vulkan.log',
  'trace.txt': 'fixtures/ftrace/trace-marks.txt',
  'token.g2p': 'fixtures/bpftrace/token.txt',
  'run.sqlite': 'fixtures/nsys/one-gpu.sqlite.gz',
  'report.sqlite': 'fixtures/nsys/one-gpu.sqlite.gz',
  'rocprof.json': 'fixtures/rocprofv3/mi350x.json',
  'trace.json': 'fixtures/chrome-json/h100.json.gz',
  'cublas.log': 'fixtures/blas-log/cublas.log',
  'onednn.log': 'fixtures/onednn/v3.7.log',
  'blas.log': 'fixtures/onednn/v3.7.log',
  'kernels.csv': 'fixtures/ncu/details.csv',
  'perf-stat.csv': 'fixtures/perf-stat/program.csv',
  'timeline.csv': 'fixtures/streamline/timeline.csv',
  'profile_export.jsonl': 'fixtures/aiperf/cut.jsonl',
  'traces.json': 'fixtures/otlp/vllm.jsonl',
  'bench.json': 'fixtures/llama-bench/tests.json',
  'before.json': 'fixtures/llama-bench/tests.json',
  'after.json': 'fixtures/llama-bench/tests.json',
}

/** Texts of files. */
const TEXTS: Readonly<Record<string, string>> = {
  'waits.sql': 'select name, dur from slice limit 10',
  'config.json': JSON.stringify({
    ...{ model_type: 'llama', architectures: ['LlamaForCausalLM'], hidden_size: 64, intermediate_size: 96 },
    ...{
      num_hidden_layers: 2,
      num_attention_heads: 4,
      num_key_value_heads: 2,
      vocab_size: 300,
      torch_dtype: 'bfloat16',
    },
  }),
  'buffer_stats.jsonl': `{"timestamp_ms":600604880.5,"event":"alloc","buffer_id":93901530271744,"size":4096,"name":"CPU_Compute","usage":2}\n`,
  'memory-map.json': JSON.stringify({
    ...{ model_name: 'tiny', total_size_bytes: 1114112 },
    tensors: [{ name: 'output.weight', offset_start: 1048576, offset_end: 1114112, shape: [64, 1024] }],
  }),
  'kernels.json': JSON.stringify({
    ...{ schema: 'ggml2perfetto.kernels/1', cpu: 'a CPU', cpus: 2, build: 'a build' },
    products: [
      { type: 'q8_0', columns: 64, rows: 64, copies: 9, buffer: 'CPU', tokens: 1, threads: 1, ns: 2, best_ns: 1 },
    ],
    nodes: [{ threads: 1, ns: 100, best_ns: 90 }],
  }),
  'train.py': 'print("step 1")\n',
  'app.js': "require('child_process').execFileSync('llama-cli')",
}

/** Runs that are recorded here, with their threads: two sides, and the same with several numbers of threads. */
const RECORDED: Readonly<Record<string, number>> = {
  'now.ggtrace': 1,
  ...{ 'old/1.ggtrace': 1, 'old/2.ggtrace': 1, 'new/1.ggtrace': 1, 'new/2.ggtrace': 1 },
  ...{ 't1.ggtrace': 1, 't2.ggtrace': 2, 't4.ggtrace': 2 },
}

/**
 * Programs of llama.cpp, and some that use it: a real one of the same libraries, which takes the model from `-m`, and one or two threads from `-t`:
 * of more than there are CPUs, most wait for their turn at each barrier.
 */
const PROGRAMS = ['llama-cli', 'llama-bench', 'llama-server', 'rpc-server', 'ollama', 'python']

/** What a browser does with the URL of the UI that it gets: fetches the trace. */
const BROWSER = `const url = new URLSearchParams(process.argv[2].split('#!/?')[1] ?? '').get('url')
if (url) await fetch(url, { headers: { origin: 'https://ui.perfetto.dev' } }).then((trace) => trace.arrayBuffer())`

/** Where the programs are. */
export const bin = (name = '') => at(join('bin', name))

/** Where the files are. */
export const file = (name = '') => at(join('files', name))

function program(name: string, text: string): void {
  writeFileSync(bin(name), `#!/bin/bash\n${text}\n`)
  chmodSync(bin(name), 0o755)
}

/** Makes the programs and the files, once for a test file. */
export async function makeFiles(): Promise<void> {
  for (const folder of [bin(), file('old'), file('new/models'), file('logs')]) mkdirSync(folder, { recursive: true })
  const node = `exec '${process.execPath}' --no-opt`
  program('ggml2perfetto', `${node} '${CLI}' "$@"`)
  for (const name of ['sudo', 'npx']) program(name, 'exec "$@"')
  writeFileSync(bin('browser.mjs'), BROWSER)
  program('xdg-open', `${node} '${bin('browser.mjs')}' "$1"`)
  for (const [name, path] of Object.entries(FILES)) {
    const from = join(ROOT, 'test', path)
    if (path.endsWith('.gz')) writeFileSync(file(name), gunzipSync(readFileSync(from)))
    else copyFileSync(from, file(name))
  }
  for (const [name, text] of Object.entries(TEXTS)) writeFileSync(file(name), text)
  for (const name of ['examples', 'native', 'test', 'scripts']) symlinkSync(join(ROOT, name), file(name))
  copyFileSync(join(ROOT, 'test/fixtures/chrome-json/h100.json.gz'), file('trace.json.gz'))
  for (const name of ['logs/1.ggtrace', 'logs/run.ggtrace']) copyFileSync(file('run.ggtrace'), file(name))
  await writeModel(NANO_MOE, file('model.gguf'))
  for (const name of ['a.gguf', 'b.gguf', 'new/models/small.gguf']) copyFileSync(file('model.gguf'), file(name))
  if (hasLlama()) await addLlama()
  await addTimed()
  addDerived()
}

async function addLlama(): Promise<void> {
  await ensureLlama()
  const options = `model=model.gguf threads=1
while [ $# -gt 0 ]; do
  case "$1 $2" in '-m '*.gguf) model=$2 ;; '-t '*) threads=\${2%%,*} ;; esac
  shift
done
[ $threads -le 2 ] || threads=2
exec '${await runner()}' --lib '${LIB}' --model "$model" --threads $threads --prompt 4 --decode 3`
  for (const name of PROGRAMS) program(name, options)
  for (const folder of ['.', 'old', 'new']) copyFileSync(bin('llama-cli'), file(join(folder, 'llama-cli')))
  // Small: threads that share a CPU with other programs wait at each barrier for their turn.
  await writeModel(NANO, file('nano.gguf'))
  for (const [name, threads] of Object.entries(RECORDED))
    run(['record', '-q', '-o', file(name), '--', bin('llama-cli'), '-t', `${threads}`, '-m', file('nano.gguf')])
  for (const i of [1, 2])
    for (const [from, to] of [
      ['old/', 'a'],
      ['new/', 'b'],
      ['old/', 'compared/a-'],
      ['new/', 'compared/b-'],
    ] as const) {
      mkdirSync(file('compared'), { recursive: true })
      copyFileSync(file(`${from}${i}.ggtrace`), file(`${to}${i}.ggtrace`))
    }
  const events = ['-a', '-k', 'mono', '-e', 'sched:sched_switch,sched:sched_waking']
  spawnSync('perf', ['record', ...events, '-o', file('perf.data'), 'true'], { stdio: 'ignore' })
}

/** Readings of other clocks, moved to the time in which a log was recorded. */
async function addTimed(): Promise<void> {
  writeFileSync(file('smi.csv'), await powerOf('run.ggtrace'))
  const clocks = await clocksOf('run.ggtrace')
  const [head, ...rows] = readFileSync(join(ROOT, 'test/fixtures/power/power.csv'), 'utf8').split('\n')
  const at0 = clocks['MONOTONIC']! - 5_000_000_000n
  const { boot_id: _, ...meters } = {
    ...JSON.parse(head!),
    monotonic_ns: `${clocks['MONOTONIC']}`,
    realtime_ns: `${clocks['REALTIME']}`,
  }
  const moved = rows.map((row) => row.replace(/^\d+/, (ns) => `${BigInt(ns) + at0}`))
  writeFileSync(file('run.power.csv'), [JSON.stringify(meters), ...moved].join('\n'))
  const { REALTIME } = await clocksOf('server.ggtrace')
  const requests = readFileSync(file('profile_export.jsonl'), 'utf8')
  const first = BigInt(/_ns":(\d{19})/.exec(requests)![1]!)
  writeFileSync(
    file('client.jsonl'),
    requests.replaceAll(/(?<=_ns":)\d{19}/g, (ns) => `${BigInt(ns) - first + REALTIME!}`),
  )
}

/** The first reading of each clock in a log of the recorder. */
async function clocksOf(log: string): Promise<Record<string, bigint>> {
  for await (const batch of eventsOf(inputOf(file(log)), new Names()))
    for (const event of batch)
      if (event.kind === 'clocks') return Object.fromEntries(event.readings.map(({ clock, ns }) => [clock, ns]))
  throw new Error(`${log} has no reading of clocks`)
}

/** Readings of nvidia-smi, in UTC, of the time in which a log was recorded, one each 10 ms. */
async function powerOf(log: string): Promise<string> {
  const { REALTIME } = await clocksOf(log)
  const [head, ...rows] = readFileSync(join(ROOT, 'test/fixtures/power/nvidia-smi.csv'), 'utf8').split('\n')
  const stamps = rows.map((_, i) => new Date(Number(REALTIME! / 1_000_000n) + 10 * i).toISOString().slice(0, -1))
  const moved = rows
    .filter(Boolean)
    .map((row, i) => row.replace(/^[^,]+/, stamps[i]!.replaceAll('-', '/').replace('T', ' ')))
  return [head, ...moved, ''].join('\n')
}

/** What other lines write. */
function addDerived(): void {
  const cwd = file()
  const { client, server } = exchange()
  writeFileSync(file('client.ggtrace'), client)
  writeFileSync(file('rpc.ggtrace'), server)
  const stored = run(['stats', 'run.ggtrace', '--json'], { cwd }).bytes
  for (const name of ['run.json', 'run.json.gz']) writeFileSync(file(name), stored)
  run(['run.ggtrace', '-o', 'run.pftrace', '-q'], { cwd })
  for (const name of ['run.csv.pftrace', 'trace.pftrace', 'jobs.pftrace', 'moe.ggtrace.pftrace'])
    copyFileSync(file('run.pftrace'), file(name))
  run(['export', 'run.ggtrace', '-o', 'dataset'], { cwd })
}
