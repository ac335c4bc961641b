/**
 * Measures what findings cost in a conversion: CPU time of `convert` with and without them, in turn, each in a separate process that is set
 * up as the CLI is, against that of the command `ggml2perfetto convert`. Three logs: half a second of a small model, nine calls of a model
 * of 1 B parameters, and 2 million operator executions.
 *
 * On a shared machine the pairs of the last differ by more than findings cost. So the share of samples of a CPU profile is printed too: of
 * the code of the analysis, the code that is compiled for it and its share of the garbage collector, with findings less without.
 *   npm run bench:findings [-- pairs, default 30]
 * Needs linux-x64 and cc; fetches llama.cpp, makes the models (3 GB in the temporary folder).
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { createWriteStream, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import { convert } from 'ggml2perfetto'
import { inputOf } from 'ggml2perfetto/node'
import { cachedModel } from '../../test/llama/gguf.mjs'
import { longLog, perRound } from './long-log.mjs'

const [what, ...args] = process.argv.slice(2)
const root = fileURLToPath(new URL('../..', import.meta.url))
const cli = join(root, 'dist/ggml2perfetto.js')
/** V8's flags of the CLI. */
const FLAGS = [...readFileSync(cli, 'utf8').matchAll(/setFlagsFromString\("([^"]+)"\)/g)].map(([, flag]) => flag)
/** In %. */
const GOAL = 5
const PROFILES = 7

const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1]
const cpuOf = ({ userCPUTime, systemCPUTime }) => (userCPUTime + systemCPUTime) / 1e3

/** Prints the CPU time of this process, in ms. */
async function run(log, findings) {
  for await (const _ of convert(inputOf(log), { findings }));
  console.log(cpuOf(process.resourceUsage()))
}

function inProcess(...args) {
  const { stdout, stderr, status } = spawnSync(process.execPath, args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(stderr)
  return Number(stdout)
}

/** By file of lib, or name of a native function: its share of the CPU time of a profile. `dist/index.js` names the file of each part. */
function sharesOf(profile) {
  const sources = readFileSync(join(root, 'dist/index.js'), 'utf8').split('\n')
  let file = ''
  const files = sources.map((line) => (file = /^\/\/ (lib\/\S+|node_modules\/\S+)/.exec(line)?.[1] ?? file))
  const { nodes, samples, timeDeltas } = JSON.parse(readFileSync(profile, 'utf8'))
  const nameOf = ({ url, lineNumber, functionName }) =>
    url.endsWith('dist/index.js') ? files[lineNumber] : functionName
  const names = new Map(nodes.map(({ id, callFrame }) => [id, nameOf(callFrame)]))
  const total = timeDeltas.reduce((sum, us) => sum + us, 0)
  const shares = {}
  for (const [i, id] of samples.entries()) shares[names.get(id)] = (shares[names.get(id)] ?? 0) + timeDeltas[i] / total
  return shares
}

/** Share of findings in the CPU time of a long conversion, in %, from profiles of both kinds in turn: in a short one, profiles cost more. */
function profiled(self, log, folder) {
  const isFindings = (name) => /^lib\/analyze\/|^lib\/pipeline\/(findings-pass|convert)|^\(garbage/.test(name)
  const shares = { with: [], without: [] }
  for (let k = 0; k < PROFILES; k++)
    for (const what of ['without', 'with']) {
      const profiles = mkdtempSync(join(folder, 'profile-'))
      inProcess('--cpu-prof', '--cpu-prof-interval=500', `--cpu-prof-dir=${profiles}`, ...self, what, log)
      const all = sharesOf(join(profiles, readdirSync(profiles)[0]))
      shares[what].push(Object.entries(all).reduce((sum, [name, share]) => sum + (isFindings(name) ? share : 0), 0))
    }
  return 100 * (median(shares.with) - median(shares.without))
}

/** CPU time of a command, in ms, as the shell measures it. */
function timeOf(...command) {
  const { stderr, status } = spawnSync('bash', [
    '-c',
    'TIMEFORMAT="%U %S"; time "$@" > /dev/null 2>&1',
    '-',
    ...command,
  ])
  if (status !== 0) throw new Error(`${command.join(' ')}: ${status}`)
  const [user, system] = String(stderr).trim().split(' ').map(Number)
  return (user + system) * 1e3
}

/** The logs, each made when its turn comes. */
function logsIn(folder) {
  const libs = join(root, 'vendor/llama/lib')
  const program = join(folder, 'decode')
  execFileSync(process.execPath, [join(root, 'scripts/fetch-llama.mjs')], { stdio: 'inherit' })
  const link = [`-L${libs}`, `-Wl,-rpath,${libs}`, '-lllama', '-lggml', '-lggml-base', '-lpthread']
  const include = `-I${join(root, 'vendor/llama/include')}`
  execFileSync('cc', ['-std=gnu11', '-O2', include, join(root, 'test/llama/run.c'), '-o', program, ...link])
  const record = async (preset, decode) => {
    const log = join(folder, `${preset}.ggtrace`)
    const { path } = await cachedModel(preset)
    const work = ['--threads', '2', '--threadpool', '--prompt', '16', '--decode', String(decode)]
    const recorded = [program, '--lib', libs, '--model', path, ...work]
    execFileSync(process.execPath, [cli, 'record', '-o', log, '--', ...recorded], { stdio: 'ignore' })
    return log
  }
  const long = async () => {
    const log = join(folder, 'long.ggtrace')
    await pipeline(longLog(Math.ceil(2e6 / perRound)), createWriteStream(log))
    return log
  }
  return [
    ['451 calls of a small MoE', () => record('tinyMoe', 450)],
    ['nine calls of 1 B parameters', () => record('big', 8)],
    ['2 million executions', long, true],
  ]
}

async function main(pairs) {
  const folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-bench-'))
  try {
    for (const [name, make, isLong] of logsIn(folder)) {
      const log = await make()
      const self = [...FLAGS, fileURLToPath(import.meta.url)]
      const [costs, commands] = [[], []]
      for (let pair = 0; pair < pairs; pair++) {
        const order = pair % 2 ? ['with', 'without'] : ['without', 'with']
        const cpu = Object.fromEntries(order.map((what) => [what, inProcess(...self, what, log)]))
        costs.push(cpu.with - cpu.without)
        commands.push(timeOf(process.execPath, cli, 'convert', log, '-o', join(folder, 'out.pftrace')))
      }
      const share = (100 * median(costs)) / median(commands)
      console.log(
        `${name}: findings ${median(costs).toFixed(0)} ms of ${median(commands).toFixed(0)} ms CPU, ${share.toFixed(1)} % ` +
          `(goal ≤ ${GOAL} %: ${share <= GOAL ? 'yes' : 'no'})`,
      )
      if (isLong) console.log(`  by profiles ${profiled(self, log, folder).toFixed(1)} %`)
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

if (what === 'with' || what === 'without') await run(args[0], what === 'with')
else await main(Number(what ?? 30))
