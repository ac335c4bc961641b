/**
 * Compares the CPU time and memory of conversions by two or more states of the code, in turn, so that other load on the machine affects all.
 *   node scripts/bench/by-turns.mjs [--pairs 9] [--only executions,load] [--scale 1] [--wall] before [after ...]
 * A state is a commit, which is built in the temporary folder once, or a folder with a built `dist`; without `after`, it is this one.
 * Ratios are those of the later states to the first one: of the minima, and the median of those of each turn. User CPU of a process that
 * imports the library and converts: states differ in what they import at once. Of `cli`, that of the whole command; of `load`, that of
 * this folder's trace_processor for the trace that the state writes. `--wall`: the time that passes, on a quiet machine, instead.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { createWriteStream, existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { setFlagsFromString } from 'node:v8'
import { cacheFolder } from '../../test/cache.cjs'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const FOLDER = cacheFolder('by-turns')

const executions = async (path, scale) => {
  const { longLog, perRound } = await import('./long-log.mjs')
  await pipeline(longLog(Math.ceil((2e6 * scale) / perRound)), createWriteStream(path))
}
const kineto = async (path, scale) => (await import('./long-kineto.mjs')).makeKineto(path, 40 * scale * 2 ** 20)
const sched = async (path, scale) => {
  const { longText } = await import('./long-sched.mjs')
  await pipeline(longText(join(ROOT, 'test/fixtures/ftrace/trace.txt'), 40e6 * scale), createWriteStream(path))
}
const nsys = async (path, scale) => (await import('./long-nsys.mjs')).makeReport(path, 40 * scale, false)

/** By name: what makes the input, its file and the options of the conversion. */
const WORK = {
  executions: { make: executions, file: 'executions.ggtrace', options: { detail: 'shapes', all: true } },
  load: {
    make: executions,
    file: 'executions.ggtrace',
    options: { detail: 'shapes', all: true },
    isLoaded: true,
  },
  json: { make: executions, file: 'executions.ggtrace', options: { detail: 'shapes', all: true, to: 'json' } },
  kineto: { make: kineto, file: 'kineto.json', options: {} },
  sched: { make: sched, file: 'sched.txt', options: {} },
  nsys: { make: nsys, file: 'report.sqlite', options: {} },
  cli: { make: (path) => executions(path, 0.2), file: 'short.ggtrace', args: ['--quiet'] },
}

/** Converts as the CLI of the state does, with its options of V8, and discards the result. */
async function converting(dist, path, options, isHashed) {
  const { convert, ...others } = await import(pathToFileURL(dist))
  // In earlier commits, one entry has all.
  const { inputOf } = others.inputOf ? others : await import(pathToFileURL(dist.replace('index.js', 'node.js')))
  const program = readFileSync(dist.replace('index.js', 'ggml2perfetto.js'), 'utf8')
  for (const [, flag] of program.matchAll(/setFlagsFromString\("(.*?)"\)/g)) setFlagsFromString(flag)
  const hash = isHashed && createHash('sha256')
  let bytes = 0
  for await (const piece of convert(inputOf(path), JSON.parse(options))) {
    bytes += piece.length
    if (hash) hash.update(piece)
  }
  const [cpu, wall] = [process.cpuUsage().user, performance.now()]
  const rss = process.resourceUsage().maxRSS * 1024
  console.log(JSON.stringify({ cpu: cpu / 1e6, wall: wall / 1e3, rss, bytes, hash: hash?.digest('hex') }))
}

/** Loads a trace as the CLI does. */
async function loading(dist, path) {
  const { openTrace } = await import(pathToFileURL(dist.replace('index.js', 'node.js')))
  setFlagsFromString('--liftoff-only')
  const [{ user }, started] = [process.cpuUsage(), performance.now()]
  const trace = await openTrace(path)
  const [cpu, wall] = [process.cpuUsage().user - user, performance.now() - started]
  console.log(
    JSON.stringify({
      ...{ cpu: cpu / 1e6, wall: wall / 1e3, rss: process.resourceUsage().maxRSS * 1024, bytes: statSync(path).size },
    }),
  )
  trace.close()
}

/** The folder of a state, built. */
function built(state) {
  if (existsSync(join(state, 'dist/index.js'))) return resolve(state)
  const commit = execFileSync('git', ['rev-parse', '--short', state], { cwd: ROOT, encoding: 'utf8' }).trim()
  const folder = join(FOLDER, commit)
  if (existsSync(join(folder, 'dist/index.js'))) return folder
  execFileSync('git', ['worktree', 'add', '--force', '--detach', folder, commit], { cwd: ROOT, stdio: 'ignore' })
  if (!existsSync(join(folder, 'node_modules'))) symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  // Earlier commits make declarations always, which is not needed here.
  execFileSync('npx', ['tsup', '--silent', '--no-dts'], { cwd: folder, stdio: 'inherit' })
  return folder
}

async function made({ make, file }, scale) {
  const path = join(FOLDER, `${scale}-${file}`)
  const done = `${path}.made`
  if (!existsSync(done)) {
    await make(path, scale)
    writeFileSync(done, '')
  }
  return path
}

function inProcess(folder, path, { options, args }, isHashed) {
  if (args) {
    const command = [process.execPath, join(folder, 'dist/ggml2perfetto.js'), path, ...args, '-o', join(FOLDER, 'out')]
    const script = 'TIMEFORMAT="%U %R"; time "$@" > /dev/null'
    const { stderr, status } = spawnSync('bash', ['-c', script, '-', ...command], { encoding: 'utf8' })
    if (status !== 0) throw new Error(stderr)
    const [cpu, wall] = stderr.trim().split('\n').at(-1).split(' ').map(Number)
    return {
      ...{ cpu, wall },
      rss: Number.NaN,
      ...(isHashed && { hash: hashOf(join(FOLDER, 'out')) }),
    }
  }
  return inNode('convert', join(folder, 'dist/index.js'), path, JSON.stringify(options), ...(isHashed ? ['yes'] : []))
}

function inNode(...command) {
  const { stdout, stderr } = spawnSync(process.execPath, [fileURLToPath(import.meta.url), ...command], {
    encoding: 'utf8',
  })
  if (!stdout) throw new Error(stderr)
  return JSON.parse(stdout)
}

/** Converts an input by a state into a file. */
async function traceOf(folder, path, { options }) {
  const { convert, ...others } = await import(pathToFileURL(join(folder, 'dist/index.js')))
  const { inputOf } = others.inputOf ? others : await import(pathToFileURL(join(folder, 'dist/node.js')))
  const trace = join(FOLDER, `${basename(path)}-${basename(folder)}.pftrace`)
  await pipeline(convert(inputOf(path), options), createWriteStream(trace))
  return trace
}

const hashOf = (path) => createHash('sha256').update(readFileSync(path)).digest('hex')
const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1]

async function main() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      pairs: { type: 'string' },
      only: { type: 'string' },
      scale: { type: 'string' },
      wall: { type: 'boolean' },
    },
  })
  const turns = Number(values.pairs ?? 9)
  const scale = Number(values.scale ?? 1)
  mkdirSync(FOLDER, { recursive: true })
  const states = positionals.length > 1 ? positionals : [...positionals, ROOT]
  const folders = states.map(built)
  for (const name of values.only?.split(',') ?? Object.keys(WORK)) {
    const work = WORK[name]
    const path = await made(work, scale)
    const traces = work.isLoaded ? await Promise.all(folders.map((folder) => traceOf(folder, path, work))) : []
    const hashes = folders.map((folder, i) =>
      traces[i] ? hashOf(traces[i]) : inProcess(folder, path, work, true).hash,
    )
    const runs = folders.map(() => [])
    const run = (i) =>
      traces[i] ? inNode('load', join(ROOT, 'dist/index.js'), traces[i]) : inProcess(folders[i], path, work)
    for (let turn = 0; turn < turns; turn++) {
      const order = [...folders.keys()]
      for (const i of turn % 2 ? order.reverse() : order) runs[i].push(run(i))
    }
    const times = runs.map((all) => all.map(({ cpu, wall }) => (values.wall ? wall : cpu)))
    console.log(name)
    for (const [i, state] of states.entries()) {
      const least = Math.min(...times[i])
      const ratio = least / Math.min(...times[0])
      const paired = median(times[i].map((time, turn) => time / times[0][turn]))
      const rss = Math.min(...runs[i].map(({ rss }) => rss)) / 2 ** 20
      const same = hashes[i] === hashes[0] ? 'same output' : 'OTHER OUTPUT'
      const versus = i === 0 ? '' : `; × ${ratio.toFixed(3)} (median of turns ${paired.toFixed(3)}), ${same}`
      const { bytes } = runs[i][0]
      const size = bytes === undefined ? '' : `, RSS ${rss.toFixed(0)} MiB, ${(bytes / 1e6).toFixed(2)} MB`
      console.log(
        `  ${state.padEnd(10)} ${values.wall ? 'time' : 'CPU'} ${least.toFixed(3)} s (median ${median(times[i]).toFixed(3)})${size}${versus}`,
      )
    }
  }
}

const [what, ...rest] = process.argv.slice(2)
if (what === 'convert') await converting(...rest)
else if (what === 'load') await loading(...rest)
else await main()
