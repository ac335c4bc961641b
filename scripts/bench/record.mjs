/**
 * Measures the cost of recording: two processes, one of them recorded, decode the same tokens in turns, so that each call's time is
 * compared with that of the same call some milliseconds before or after. Some calls are decoded in sequence, while the other process
 * is stopped; which process begins is random each time.
 *   npm run bench:record [-- rounds, default 15 [model [threads [level]]]] [--counters page-faults,context-switches] [--functions] [--vulkan]
 *     [--llama 3.7.0 [--one-process]]
 * --functions: the cost of recording functions around calls. Both processes are recorded, one of them without functions; each call's
 * time includes a chain of six samplers, and the text of its token.
 * --vulkan: of operators of a GPU, by Mesa's driver for the CPU (mesa-vulkan-drivers). Each call waits for its work.
 * --llama: with the llama.cpp of that version of node-llama-cpp, or of Debian sid (`--llama debian`, as root); by another program.
 * --one-process: instead of two processes, one whose hooks are bypassed for each other group of calls. This leaves out what differs between
 * processes, such as their memory, and what threads of the recorder do.
 * A round is a pair of new processes and gives the median of its calls' ratios. Printed are the median of the rounds with
 * its 95 % confidence interval (order statistics of the sign test), the bytes per operator, and losses. A goal is met if the whole
 * interval is, and missed if none of it is.
 * Needs linux-x64 and cc; fetches llama.cpp, makes the models.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'
import { summarizeFile } from 'ggml2perfetto/node'
import { cachedModel, presets } from '../../test/llama/gguf.mjs'
import { assignments, buildAnyVersion, buildProgram, LIBS, ON_VULKAN, RECORDER } from './llama-program.mjs'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    counters: { type: 'string' },
    functions: { type: 'boolean' },
    vulkan: { type: 'boolean' },
    llama: { type: 'string' },
    'one-process': { type: 'boolean' },
  },
})
const [rounds = 15, onlyModel, onlyThreads, onlyLevel] = positionals.map((value, i) =>
  i === 0 ? Number(value) : value,
)
/** The goal for the cost of counting, in %: of the large model, with two software counters. */
const COUNTERS_GOAL = 3
/** The goal for the cost of functions around calls, in %. */
const FUNCTIONS_GOAL = 1
/** The goal for the cost of recording operators of a GPU, in %; the calls of a round: each takes some 100 ms. */
const VULKAN_GOAL = 2
const VULKAN_CALLS = 16
/** Calls in sequence before the other process decodes, where they are short. Workers wait actively in between, as is llama.cpp's default. */
const GROUP = 8
/** With --one-process: calls before the first pair of groups. */
const BEFORE = 8
/** Tokens of the prompt. */
const PROMPT = 8
/** The goal for other versions of llama.cpp, in %: of the tiny MoE model. */
const VERSION_GOAL = 3
const wanted = (only, value) => only === undefined || only === String(value)
const folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-bench-'))
const MODELS = [
  { preset: 'tinyDense', decode: 200, goals: { op: 3, graph: 3 } },
  { preset: 'tinyMoe', decode: 200, goals: { op: 2, graph: 2 } },
  { preset: 'big', decode: 100, group: 1, goals: { op: 0.5, graph: 0.2 } },
  // Four layers of it: with --vulkan, where a call of all takes many seconds.
  { preset: 'wide', spec: { ...presets.big, layers: 4, vocabulary: 2048 }, decode: 100, goals: { op: 1, graph: 0.2 } },
]

const median = (values) => {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}

/** Fewer have no 95 % interval: the median is between the least and the greatest of five with 94 %. */
const ROUNDS_MIN = 6

/** The median is between these ranks (from 0) with 95 % confidence, for any distribution. */
function medianRanks(n) {
  let below = 0
  let probability = 0.5 ** n
  let rank = 0
  while (below + probability <= 0.025) {
    below += probability
    probability *= (n - rank) / (rank + 1)
    rank++
  }
  return [rank - 1, n - rank]
}

const running = new Set()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL') // a stopped process does not see that this one ends
  rmSync(folder, { recursive: true })
})
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => process.exit(1))

/** A process that decodes on request; `step` returns the times of some calls in ns. */
function stepped(command, env) {
  const [program, ...args] = command(env)
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'ignore'] })
  running.add(child)
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const step = async (calls, first = '') => {
    const times = []
    child.stdin.write(first + '\n'.repeat(calls))
    while (times.length < calls) {
      const { value, done } = await lines.next()
      if (done) throw new Error('the program ended early')
      const { event, start, end } = JSON.parse(value)
      if (event === 'call') times.push(end - start)
    }
    return times
  }
  const ended = new Promise((resolve) => child.once('close', resolve)).then(() => running.delete(child))
  return { child, step, ended }
}

/** Two processes, the second of them with the recorder. One that waits is stopped, as are its workers. */
async function twoProcesses(command, { without, env }) {
  // The first process may get better memory.
  const isPlainFirst = Math.random() < 0.5
  const both = (isPlainFirst ? [without, env] : [env, without]).map((more) => stepped(command, more))
  const sides = (isPlainFirst ? both : both.reverse()).map(({ child, step }) => async (calls) => {
    child.kill('SIGCONT')
    const times = await step(calls)
    child.kill('SIGSTOP')
    return times
  })
  for (const side of sides) await side(1) // the prompt
  const end = () => Promise.all(both.map(({ child, ended }) => child.kill('SIGCONT') && ended))
  return { sides, end }
}

/** One process, in which the recorder's hooks are bypassed or not. */
async function oneProcess(command, { env }) {
  const { step, ended } = stepped(command, env)
  await step(BEFORE) // the dynamic linker finds functions when they are called first
  return { sides: [(calls) => step(calls, '-\n'), (calls) => step(calls, '+\n')], end: () => ended }
}

/** Median over the calls of the recorded process's time divided by the plain one's. */
async function round(command, environments, calls, group) {
  const { sides, end } = await (values['one-process'] ? oneProcess : twoProcesses)(command, environments)
  const [plain, recorded] = sides
  const ratios = []
  for (let done = 0; done < calls; done += group) {
    const order = Math.random() < 0.5 ? [recorded, plain] : [plain, recorded]
    const count = Math.min(group, calls - done)
    const times = new Map()
    for (const side of order) times.set(side, await side(count))
    // The first call after a stop, or a switch, waits for workers and caches.
    for (let i = count > 1 ? 1 : 0; i < count; i++) ratios.push(times.get(recorded)[i] / times.get(plain)[i])
  }
  await end()
  return median(ratios)
}

/** The program of the tests. */
function testHost() {
  const program = buildProgram(folder, values)
  const more = [
    ...(values.functions ? ['--sample'] : []),
    ...(values.vulkan ? ['--gpu-layers', '99', '--synchronize'] : []),
  ]
  const commandFor = ({ path, threads, prompt, calls }) => {
    const sizes = ['--threads', threads, '--prompt', prompt, '--decode', calls].map(String)
    const pool = threads > 1 ? ['--threadpool'] : []
    const args = ['--lib', LIBS, '--model', path, ...sizes, '--times', '--step', ...more, ...pool]
    return (env) => ['env', ...assignments(env), program, ...args]
  }
  return { folder, recorder: RECORDER, inside: (path) => path, commandFor }
}

async function measure(host, { preset, spec = preset, decode, group = GROUP, goals }, threads, level) {
  const { path } = await cachedModel(spec)
  const calls = values.vulkan ? VULKAN_CALLS : decode
  const calledInAll = values['one-process'] ? BEFORE + 2 * calls - 1 : calls
  const command = host.commandFor({ path, threads, prompt: PROMPT, calls: calledInAll })
  const log = join(host.folder, 'run.ggtrace')
  const { counters } = values
  const around = values.vulkan ? ON_VULKAN : {}
  const recorded = {
    ...around,
    LD_PRELOAD: host.recorder,
    GGML2PERFETTO_OUT: host.inside(log),
    GGML2PERFETTO_LEVEL: level,
  }
  if (counters) recorded.GGML2PERFETTO_COUNTERS = counters
  const other = join(host.folder, 'other.ggtrace')
  const without = values.functions
    ? { ...recorded, GGML2PERFETTO_OUT: host.inside(other), GGML2PERFETTO_FUNCTIONS: '0' }
    : around
  const goal = values.llama
    ? VERSION_GOAL
    : values.vulkan
      ? VULKAN_GOAL
      : values.functions
        ? FUNCTIONS_GOAL
        : counters
          ? COUNTERS_GOAL
          : goals[level]
  const ratios = []
  for (let i = 0; i < rounds; i++) {
    for (const path of [log, other]) rmSync(path, { force: true }) // an existing log is not overwritten
    ratios.push(await round(command, { without, env: recorded }, calls, group))
  }
  ratios.sort((a, b) => a - b)
  const [low, high] = medianRanks(rounds).map((rank) => percent(ratios[rank]))
  const summary = await summarizeFile(log)
  const losses = summary.issues.reduce((sum, { count }) => sum + count, 0)
  const operators = summary.operators + summary.gpu_operators
  const bytes = level === 'op' ? `${(statSync(log).size / operators).toFixed(1)} B/operator` : ''
  const missing = summary.attributes['counters.missing']
  if (counters && missing) console.log(`not counted: ${missing}`)
  const verdict = high <= goal ? 'met' : low > goal ? 'MISSED' : 'not certain'
  console.log(
    `${preset.padEnd(9)} ${threads} thread${threads > 1 ? 's' : ' '} ${level.padEnd(5)}  ${signed(percent(median(ratios)))} %  [${signed(low)} … ${signed(high)}]  ` +
      `goal ≤ ${goal} %: ${verdict}  ${bytes}  ${losses} issues`,
  )
}

const percent = (ratio) => (ratio - 1) * 100
const signed = (value) => `${value < 0 ? '' : '+'}${value.toFixed(2)}`.padStart(6)

if (!(rounds >= ROUNDS_MIN)) {
  console.error(`${rounds} rounds have no 95 % interval; expected ${ROUNDS_MIN} or more`)
  process.exit(1)
}
if (values.llama && (values.functions || values.vulkan)) {
  console.error('--llama decodes only: it goes with neither --functions nor --vulkan')
  process.exit(1)
}
if (values['one-process'] && !values.llama) {
  console.error(
    '--one-process needs --llama, whose program can bypass hooks (3.22.1 is the version of the other measurements)',
  )
  process.exit(1)
}
const host = values.llama ? await buildAnyVersion(values.llama) : testHost()
process.on('exit', () => rmSync(host.folder, { recursive: true, force: true }))
const of = values.functions ? 'time with functions around calls, to that without' : 'decode time'
const counting = values.counters ? `, counting ${values.counters}` : ''
console.log(`median of ${rounds} rounds' paired ratios of ${of}, 95 % confidence interval${counting}`)
for (const model of MODELS.filter(({ preset }) =>
  onlyModel === undefined ? preset !== 'wide' : onlyModel === preset,
)) {
  for (const threads of [1, 2].filter((value) => wanted(onlyThreads, value))) {
    for (const level of ['graph', 'op'].filter(
      (value) => wanted(onlyLevel, value) && (value === 'op' || !values.counters),
    )) {
      await measure(host, model, threads, level)
    }
  }
}
