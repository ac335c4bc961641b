/**
 * How near `what-if` comes to runs that are measured afterwards, on this machine. Draws runs and changes by a seed; records both by turns, measures products
 * (`peaks --types`), predicts the changed one from each recording of the other, and compares the medians of the turns: what the machine does otherwise from one
 * minute to the next is in both. Both are without preemption by other programs (--without preempted). Prints a line for each trial, and for a miss
 * the parts of calls that differ most; then errors, coverage of the intervals and each miss. FILE gets a line of JSON for each trial: figures by turn, parts of calls
 * as predicted and as measured (evidence.mjs), and how the runs were disturbed; table.mjs makes the table of the docs of it. FOLDER keeps the recordings and the measured
 * products of each trial; what it has already is not recorded again: another model is compared on the same runs, which are no unseen ones then.
 *   node scripts/what-if/trial.mjs --seed N [--trials 60] [--first 0] [--turns 3] [--json FILE] [--keep FOLDER] [--kernels no]
 * Needs dist (npm run build), cc, and llama.cpp in vendor/ (scripts/fetch-llama.mjs). Nothing else should
 * run meanwhile.
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { analyze } from 'ggml2perfetto'
import { parseKernelFile, WHAT_IF_SERIES, whatIf } from 'ggml2perfetto/analysis'
import { inputOf } from 'ggml2perfetto/node'
import { cachedModel } from '../../test/llama/gguf.mjs'
import { draw, modelOf, nameOf, sideText } from './draw.mjs'
import { disturbanceOf, explained, partsOf, turnsOf } from './evidence.mjs'
import { compared, isMiss, medianOf, scoreText } from './score.mjs'

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    trials: { type: 'string', default: '60' },
    first: { type: 'string', default: '0' },
    turns: { type: 'string', default: '3' },
    json: { type: 'string' },
    keep: { type: 'string' },
    kernels: { type: 'string', default: 'yes' },
  },
})
if (!/^\d+$/.test(values.seed ?? '')) throw new Error('--seed: expected a number')

const at = (path) => fileURLToPath(new URL(`../../${path}`, import.meta.url))
const CLI = at('dist/ggml2perfetto.js')
const LIBS = at('vendor/llama/lib')
/** Recordings of each side, by turns. */
const TURNS = Number(values.turns)
/** A program that computes on the first CPU that the runs may use, until it is ended. */
const [, CPU] = /^Cpus_allowed_list:\s*(\d+)/m.exec(readFileSync('/proc/self/status', 'utf8'))
const HOG = ['-c', CPU, process.execPath, '-e', 'for (;;);']

const folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-what-if-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1))
/** Where recordings and measured products are; without --keep, the next trial writes over them. */
const kept = (number, name) => join(values.keep ?? folder, values.keep ? `${values.seed}-${number}-${name}` : name)
if (values.keep) mkdirSync(values.keep, { recursive: true })
const env = { ...process.env, XDG_CACHE_HOME: join(folder, 'cache') }
mkdirSync(env.XDG_CACHE_HOME)

const program = join(folder, 'run')
const linked = [`-L${LIBS}`, `-Wl,-rpath,${LIBS}`, '-lllama', '-lggml', '-lggml-base', '-lpthread']
execFileSync('cc', [
  '-std=gnu11',
  '-O2',
  `-I${at('vendor/llama/include')}`,
  at('test/llama/run.c'),
  '-o',
  program,
  ...linked,
])

const analysisOf = async (log) => analyze(await inputOf(log), { series: WHAT_IF_SERIES })

/** Records a side; returns its Analysis. */
async function record(side, log) {
  if (values.keep && existsSync(log)) return await analysisOf(log)
  const { path } = await cachedModel(modelOf(side), join(folder, 'models'))
  const part = `${log}.part`
  rmSync(part, { force: true })
  const numbers = { threads: side.threads, prompt: side.prompt, decode: side.decode, parallel: side.parallel }
  const options = Object.entries(numbers).flatMap(([name, value]) => [`--${name}`, `${value}`])
  const run = [program, '--lib', LIBS, '--model', path, '--threadpool', '--warmup', '--batch', '8192', ...options]
  const hog = side.hog ? spawn('taskset', HOG, { stdio: 'ignore' }) : undefined
  try {
    const args = [CLI, 'record', '-o', part, '--', ...run]
    const { status, stderr } = spawnSync(process.execPath, args, { env, encoding: 'utf8' })
    if (status !== 0) throw new Error(`${run.join(' ')}: exit code ${status}\n${stderr}`)
  } finally {
    hog?.kill('SIGKILL')
  }
  renameSync(part, log)
  return await analysisOf(log)
}

/** Measures the products of a run, whose log is this, as the change needs them. */
function kernelsFor({ number, changes, before }, log) {
  if (values.kernels === 'no') return undefined
  const file = kept(number, 'kernels.json')
  if (values.keep && existsSync(file)) return parseKernelFile(readFileSync(file, 'utf8'))
  const { threads, type, batch, context, experts } = changes
  const options = [
    ...['--types', type ?? nameOf(before.type)],
    ...(threads === undefined ? [] : ['--threads', `${threads}`]),
    ...(batch === undefined ? [] : ['--batch', `${batch}`]),
    ...(context === undefined ? [] : ['--context', `${context}`]),
    ...(experts === undefined ? [] : ['--experts', `${experts}`]),
  ]
  const args = [CLI, 'peaks', log, ...options, '--json']
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { env, encoding: 'utf8', maxBuffer: 1 << 26 })
  if (status !== 0) throw new Error(`peaks ${options.join(' ')}: exit code ${status}\n${stderr}`)
  writeFileSync(file, stdout)
  return parseKernelFile(stdout)
}

const QUIET = { without: ['preempted'] }

async function run(trial) {
  const { number, before, after, changes } = trial
  const sides = { before: [], after: [] }
  let kernels
  for (let turn = 0; turn < TURNS; turn++) {
    const log = kept(number, `before-${turn}.ggtrace`)
    sides.before.push(await record(before, log))
    kernels ??= kernelsFor(trial, log)
    sides.after.push(await record(after, kept(number, `after-${turn}.ggtrace`)))
  }
  const made = { now: [], predictions: [], quiet: [] }
  for (const from of sides.before) {
    made.now.push(await whatIf(from, QUIET, { kernels }))
    made.predictions.push(await whatIf(from, { ...changes, ...QUIET }, { kernels }))
  }
  // What a hog costs in addition to CPUs is predicted, and measured without any model.
  for (const from of sides.after) made.quiet.push(await whatIf(from, QUIET, changes.without ? {} : { kernels }))
  const saidOf = (key) => made.predictions.filter((predicted) => predicted[key].expected !== null)
  /** Refused where most recordings do not suffice. */
  const predicted = (key) => {
    const said = saidOf(key)
    if (2 * said.length <= made.predictions.length)
      return made.predictions.find((predicted) => predicted[key].expected === null)[key]
    return Object.fromEntries(
      ['expected', 'low', 'high'].map((bound) => [bound, medianOf(said.map((one) => one[key][bound]))]),
    )
  }
  const measured = (key) => medianOf(turnsOf(key, made).measured)
  const own = sides.before.map(({ calls }) => calls.tpot_ns)
  const drift = Math.max(...own) / Math.min(...own) - 1
  const keys = changes.batch === undefined ? ['tpot_ns', 'ttft_ns'] : ['tpot_ns']
  const figures = keys.map((key) => ({
    ...compared(key.slice(0, 4).toUpperCase(), predicted(key), measured(key)),
    turns: turnsOf(key, made),
  }))
  const disturbed = { before: sides.before.map(disturbanceOf), after: sides.after.map(disturbanceOf) }
  return { ...trial, figures, drift, basis: made.predictions[0].basis, parts: partsOf(made), disturbed }
}

const percent = (share) => `${(100 * share).toFixed(1)} %`
const figureText = ({ what, measured, expected, low, high, error, isWithin, why }) => {
  const ms = (ns) => (ns / 1e6).toPrecision(3)
  if (expected === undefined) return `${what} refused (${why})`
  return `${what} ${ms(expected)} ms (${ms(low)} to ${ms(high)}), measured ${ms(measured)}: ${percent(error)}${isWithin ? '' : ' OUTSIDE'}`
}

const trials = []
const [seed, first, count] = [values.seed, values.first, values.trials].map(Number)
for (let number = first; number < first + count; number++) {
  const trial = draw(seed, number)
  const done = await run(trial).catch(({ message }) => console.log(`NOT MEASURED ${number}: ${message}`))
  if (!done) continue
  trials.push(done)
  console.log(
    `${number} ${sideText(trial.before)} ${JSON.stringify(trial.changes)}: ${done.figures.map(figureText).join('; ')} (drift ${percent(done.drift)})`,
  )
  for (const figure of done.figures.filter((figure) => figure.expected !== undefined && isMiss(figure)))
    for (const line of explained(figure, done.parts)) console.log(line)
  if (values.json !== undefined) appendFileSync(values.json, `${JSON.stringify(done)}\n`)
}
console.log(`\n${scoreText(trials)}`)
