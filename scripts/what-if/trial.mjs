/**
 * How near `what-if` comes to runs that are measured afterwards, on this machine. Draws runs and changes by a seed; records both by turns, measures products
 * (`peaks --types`), predicts the changed one from the fastest recording of the other, and compares it with the fastest one of the changed run: what other guests of the
 * host take only makes them slower. When a recording counts and how many turns there are is in steady.mjs (`--steady no`: each counts, and there are --turns of
 * them). Both are without preemption by other programs (--without preempted). Prints a line for each trial, and for a miss
 * the parts of calls that differ most; then errors, coverage of the intervals and each miss. FILE gets a line of JSON for each trial: figures by turn, parts of calls
 * as predicted and as measured (evidence.mjs), and how the runs were disturbed; table.mjs makes the table of the docs of it. FOLDER keeps the recordings and the measured
 * products of each trial; what it has already is not recorded again: another model is compared on the same runs, which are no unseen ones then.
 * All models are made first, in the folder of --models, where they remain.
 *   node scripts/what-if/trial.mjs --seed N [--trials 60] [--first 0] [--turns 3] [--most 8] [--steady no] [--json FILE] [--keep FOLDER] [--models FOLDER]
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
import { compared, isMiss, scoreText } from './score.mjs'
import { ATTEMPTS, allowedCpus, areAlike, leastAt, lookBy, Steady } from './steady.mjs'

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    trials: { type: 'string', default: '60' },
    first: { type: 'string', default: '0' },
    turns: { type: 'string', default: '3' },
    most: { type: 'string', default: '8' },
    steady: { type: 'string', default: 'yes' },
    models: { type: 'string' },
    json: { type: 'string' },
    keep: { type: 'string' },
  },
})
if (!/^\d+$/.test(values.seed ?? '')) throw new Error('--seed: expected a number')

const at = (path) => fileURLToPath(new URL(`../../${path}`, import.meta.url))
const CLI = at('dist/ggml2perfetto.js')
const LIBS = at('vendor/llama/lib')
const IS_STEADY = values.steady !== 'no'
/** Recordings of each side, by turns: at least, and at most. */
const TURNS = Number(values.turns)
const TURNS_MAX = IS_STEADY ? Math.max(Number(values.most), TURNS) : TURNS
/** A program that computes on the first CPU that the runs may use, until it is ended. */
const HOG = ['-c', `${allowedCpus()[0]}`, process.execPath, '-e', 'for (;;);']

const folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-what-if-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1))
/** Where recordings and measured products are; without --keep, the next trial writes over them. */
const kept = (number, name) => join(values.keep ?? folder, values.keep ? `${values.seed}-${number}-${name}` : name)
if (values.keep) mkdirSync(values.keep, { recursive: true })
const env = { ...process.env, XDG_CACHE_HOME: join(folder, 'cache') }
mkdirSync(env.XDG_CACHE_HOME)

const models = values.models ?? join(folder, 'models')

const program = join(folder, 'run')
const compile = (...args) => execFileSync('cc', ['-std=gnu11', ...args])
compile(
  ...['-O2', `-I${at('vendor/llama/include')}`, at('test/llama/run.c'), '-o', program],
  ...[`-L${LIBS}`, `-Wl,-rpath,${LIBS}`, '-lllama', '-lggml', '-lggml-base', '-lpthread'],
)
const reference = join(folder, 'reference')
compile('-O3', at('scripts/what-if/reference.c'), '-o', reference, '-lpthread')
const steady = new Steady(lookBy(reference))
/** Makes something while the machine is steady; where it need not be, at once. */
const steadily = (attempt) => (IS_STEADY ? steady.make(attempt) : attempt(0).then((made) => ({ made, excess: null })))

const analysisOf = async (log) => analyze(await inputOf(log), { series: WHAT_IF_SERIES })

/** Records a side; returns its Analysis, and by how much the reference took more with it. */
async function recorded(side, log) {
  if (values.keep && existsSync(log)) return { analysis: await analysisOf(log), excess: null }
  const { path } = await cachedModel(modelOf(side), models)
  const { made, excess } = await steadily(async (number) => recordedAs(`${log}.${number}`, side, path))
  renameSync(made, log)
  for (let number = 0; number < ATTEMPTS; number++) rmSync(`${log}.${number}`, { force: true })
  return { analysis: await analysisOf(log), excess }
}

function recordedAs(file, side, model) {
  rmSync(file, { force: true })
  const numbers = { threads: side.threads, prompt: side.prompt, decode: side.decode, parallel: side.parallel }
  const options = Object.entries(numbers).flatMap(([name, value]) => [`--${name}`, `${value}`])
  const run = [program, '--lib', LIBS, '--model', model, '--threadpool', '--warmup', '--batch', '8192', ...options]
  const hog = side.hog ? spawn('taskset', HOG, { stdio: 'ignore' }) : undefined
  try {
    const args = [CLI, 'record', '-o', file, '--', ...run]
    const { status, stderr } = spawnSync(process.execPath, args, { env, encoding: 'utf8' })
    if (status !== 0) throw new Error(`${run.join(' ')}: exit code ${status}\n${stderr}`)
  } finally {
    hog?.kill('SIGKILL')
  }
  return file
}

/** Measures the products of a run, whose log is this, as the change needs them. */
async function kernelsFor({ number, changes, before }, log) {
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
  const { made } = await steadily(async () => {
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { env, encoding: 'utf8', maxBuffer: 1 << 26 })
    if (status !== 0) throw new Error(`peaks ${options.join(' ')}: exit code ${status}\n${stderr}`)
    return stdout
  })
  writeFileSync(file, made)
  return parseKernelFile(made)
}

/**
 * Reads a model's file again, from its beginning. In what pages a file is in memory makes a factor of what products take: they are small where it left memory, and came back by being
 * mapped. Both sides then have it in such pages as a file that was copied.
 */
function readAgain(path) {
  execFileSync('dd', [`if=${path}`, 'iflag=nocache', 'count=0', 'status=none'])
  execFileSync('dd', [`if=${path}`, 'of=/dev/null', 'bs=1M', 'status=none'])
}

const QUIET = { without: ['preempted'] }

/** Of several sequences, prompts are not predicted. */
const keysOf = ({ batch }) => (batch === undefined ? ['tpot_ns', 'ttft_ns'] : ['tpot_ns'])
const figuresOf = (side, key) => side.map(({ analysis }) => analysis.calls[key])

/** Records both sides by turns, and measures products after the first one. */
async function measured(trial) {
  const { number, before, after, changes } = trial
  const sides = { before: [], after: [] }
  const files = await Promise.all([before, after].map((side) => cachedModel(modelOf(side), models)))
  for (const path of new Set(files.map(({ path }) => path))) readAgain(path)
  const isSettled = (name) => trial[name].hog || keysOf(changes).every((key) => areAlike(figuresOf(sides[name], key)))
  let kernels
  for (let turn = 0; turn < TURNS_MAX && (turn < TURNS || !Object.keys(sides).every(isSettled)); turn++) {
    const log = kept(number, `before-${turn}.ggtrace`)
    sides.before.push(await recorded(before, log))
    kernels ??= await kernelsFor(trial, log)
    sides.after.push(await recorded(after, kept(number, `after-${turn}.ggtrace`)))
  }
  return { sides, kernels }
}

async function run(trial) {
  const { changes } = trial
  const { sides, kernels } = await measured(trial)
  const made = { now: [], predictions: [], quiet: [] }
  for (const { analysis } of sides.before) {
    made.now.push(await whatIf(analysis, QUIET, { kernels }))
    made.predictions.push(await whatIf(analysis, { ...changes, ...QUIET }, { kernels }))
  }
  // What a hog costs in addition to CPUs is predicted, and measured without any model.
  for (const { analysis } of sides.after)
    made.quiet.push(await whatIf(analysis, QUIET, changes.without ? {} : { kernels }))
  const figures = []
  const parts = []
  for (const key of keysOf(changes)) {
    const [from, to] = [sides.before, sides.after].map((side) => leastAt(figuresOf(side, key)))
    const chosen = { now: [made.now[from]], predictions: [made.predictions[from]], quiet: [made.quiet[to]] }
    const turns = turnsOf(key, made)
    const name = key.slice(0, 4).toUpperCase()
    figures.push({ ...compared(name, made.predictions[from][key], turns.measured[to]), turns })
    parts.push(...partsOf(name, chosen))
  }
  const own = figuresOf(sides.before, 'tpot_ns')
  const drift = Math.max(...own) / Math.min(...own) - 1
  const disturbed = Object.fromEntries(
    Object.entries(sides).map(([name, side]) => [
      name,
      side.map(({ analysis, excess }) => ({ ...disturbanceOf(analysis), excess })),
    ]),
  )
  return { ...trial, figures, drift, basis: made.predictions[0].basis, parts, disturbed }
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
  const { before, after } = draw(seed, number)
  for (const side of [before, after]) await cachedModel(modelOf(side), models)
}
if (IS_STEADY) steady.begin()
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
