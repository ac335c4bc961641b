/**
 * Kills recordings (SIGKILL) at random moments, in each mode of `record`: the recorded program, the command, all of the group, or the tool
 * that the mode runs. Each log must be readable, with each call that the program printed as done, and all of its operators, or with what
 * the mode promises instead; no process and no temporary file remains. Modes that need root are left out without.
 *   node scripts/kill-recordings.mjs [kills, default 100] [seed, default 1] [a part of the names of modes]
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { register } from 'node:module'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { plainTmpdir } from '../test/cache.cjs'
import { expectCalls, readLog } from './kill-recordings/promises.mjs'
import { randomOf } from './random.mjs'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const COMMAND = [process.execPath, join(ROOT, 'dist/ggml2perfetto.js')]
const [kills, seed, wanted] = [Number(process.argv[2] ?? 100), Number(process.argv[3] ?? 1), process.argv[4] ?? '']
const random = randomOf(seed)
/** On a machine that is busy, a recording begins and ends within this time, in ms. */
const PATIENCE_MS = 120_000
/** A program makes so many calls in each of its contexts, in less than 2 s, and is killed after so many at most. */
const [CONTEXTS, CALLS, CALLS_MAX] = [2, 200, 250]
const isRoot = process.getuid?.() === 0
const WHO = ['program', 'command', 'group']
/** By name: options, program, what the log has (promises.mjs), the file next to it. */
const MODES = {
  'level token': { options: ['--level', 'token'], promise: 'calls' },
  'level graph': { options: ['--level', 'graph'], promise: 'graphs' },
  'level op': {},
  counters: { options: ['--counters', 'page-faults,context-switches,task-clock'] },
  'no states, no functions': { options: ['--no-states', '--no-functions'] },
  sync: { options: ['--sync'], promise: 'some' },
  'max-size': { options: ['--max-size', '128K'], promise: 'first' },
  ring: { options: ['--max-size', '96K', '--ring'], promise: 'last' },
  slow: { options: ['--max-size', '4M', '--slow', '40ms'], program: 'slow', promise: 'slow' },
  'tokens, every': { options: ['--tokens', '6..', '--every', '3'], promise: 'third' },
  ops: { options: ['--ops', 'MUL_MAT'], promise: 'some' },
  paused: { options: ['--paused'], promise: 'calls' },
  guard: { options: ['--guard', '50'], promise: 'guarded' },
  NVTX: { options: ['--nvtx-emit', 'tokens,operators'] },
  'two programs': { program: 'two' },
  'Node.js': { program: 'node', promise: 'some' },
  Python: { program: 'python', promise: 'some' },
  power: { options: ['--power'] },
  mem: { options: ['--mem'], victims: [...WHO, 'perf'], beside: 'run.faults.data' },
  sched: { options: ['--sched'], isLeftOut: !isRoot, beside: 'run.sched.dat' },
  sweep: { options: ['--sweep', 't=1,2', '--rounds', '1'], program: 'swept', output: 'swept', promise: 'unknown' },
  attach: {
    isLeftOut: !isRoot,
    victims: [...WHO, 'bpftrace'],
    program: 'long',
    output: 'run.g2p',
    beside: 'run.sched.dat',
    promise: 'since',
  },
}

register('./typescript-hooks.mjs', import.meta.url)
const { ensureLlama, hostsProgram, LIB, model } = await import('../test/llama/testbed.ts')
const folder = mkdtempSync(join(plainTmpdir(), 'ggml2perfetto-kills-'))
/** Of all commands: what one leaves there, a later one removes. */
const temporary = join(folder, 'temporary')
mkdirSync(temporary)

/** The processes that were started for a folder, by their environment. */
const runningIn = (home) =>
  readdirSync('/proc').flatMap((name) => {
    try {
      if (!/^\d+$/.test(name) || !readFileSync(`/proc/${name}/environ`, 'latin1').includes(`KILLS=${home}/`)) return []
      return [{ pid: Number(name), words: readFileSync(`/proc/${name}/cmdline`, 'latin1').split('\0') }]
    } catch {
      return [] // it has ended
    }
  })

/** Whether bpftrace has written a call to its log, which has no name yet. */
const hasBegun = ({ pid, words }) => {
  try {
    return words[0] === 'bpftrace' && readFileSync(`/proc/${pid}/fd/1`).includes('g2p token')
  } catch {
    return false // it has ended
  }
}

const kill = (pid) => {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if (error.code !== 'ESRCH') throw error // it has ended
  }
}

process.on('exit', () => {
  for (const { pid } of runningIn(folder)) kill(pid)
  rmSync(folder, { recursive: true, force: true })
})
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => process.exit(130))

/** The commands of the programs, by name. */
async function programs() {
  await ensureLlama()
  const sizes = join(folder, 'sizes')
  execFileSync('cc', ['-I', join(ROOT, 'vendor/llama/include'), join(ROOT, 'test/llama/sizes.c'), '-o', sizes])
  const spec = { layers: 1, width: 64, feedForward: 96, heads: 2, kvHeads: 1, vocabulary: 300, context: 128 }
  const { path } = await model(spec)
  const repeat = (count, ...steps) => Array.from({ length: count }, () => steps).flat()
  const few = (count) => repeat(count, 'decode', '0', '1', 'sleep', '1') // what was printed is written before each step
  const host = [await hostsProgram(), LIB, 'load', '0', path]
  const calls = (threads, contexts = CONTEXTS) => repeat(contexts, 'open', '0', threads, ...few(CALLS), 'close', '0')
  const total = `${CONTEXTS * CALLS}`
  const python = [LIB, path, ...execFileSync(sizes, { encoding: 'utf8' }).trim().split(' '), '1', total]
  const node = ['--model', path, '--prompt', '4', '--decode', total, '--vocabulary', '300', '--times']
  const two = ['sh', '-c', '"$@" & "$@" & wait', 'sh']
  return {
    host: [...host, ...calls('2')],
    long: [...host, ...calls('2', 20 * CONTEXTS)],
    slow: [...host, 'open', '0', '2', ...repeat(12, ...few(15), 'while', '0', 'attn_out-0', 'sleep', '60', 'end')],
    node: [process.execPath, join(ROOT, 'test/llama/run-node.mjs'), ...node],
    python: ['python3', join(ROOT, 'test/llama/ctypes-host.py'), ...python],
    two: [...two, ...host, ...calls('2')],
    swept: [...host, ...calls('{t}')],
  }
}

/** Starts a command in a group of its own. `printed`: the calls that programs have printed. */
function start(home, command) {
  const env = { ...process.env, KILLS: `${home}/`, TMPDIR: temporary, PYTHONUNBUFFERED: '1' }
  const child = spawn(command[0], command.slice(1), {
    cwd: home,
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const run = { child, printed: [], stderr: '' }
  let rest = ''
  child.stdout.setEncoding('utf8').on('data', (text) => {
    const lines = (rest + text).split('\n')
    rest = lines.pop()
    run.printed.push(...lines.filter((line) => /^{"event": ?"call"/.test(line)).map((line) => JSON.parse(line)))
  })
  child.stderr.setEncoding('utf8').on('data', (text) => {
    run.stderr += text
  })
  run.ended = new Promise((resolve) => child.once('close', (code, signal) => resolve(signal ?? code)))
  return run
}

/** Waits until something is so; false: it took too long. */
async function until(isSo) {
  for (const end = performance.now() + PATIENCE_MS; !isSo(); await sleep(10)) if (performance.now() > end) return false
  return true
}

/** Starts the recording of a mode: of a program that it starts, or of one that runs. */
async function begin(home, { options = [], program = 'host', output = 'run.ggtrace' }) {
  const record = [...COMMAND, 'record', '-o', output, ...options]
  if (output !== 'run.g2p') return start(home, [...record, '--', ...commands[program]])
  const target = start(home, commands[program])
  await until(() => target.printed.length > 0)
  const run = start(home, [...record, '--attach', `${target.child.pid}`])
  await until(() => run.child.exitCode !== null || runningIn(home).some(hasBegun))
  return Object.assign(run, { target, printed: target.printed, from: target.printed.length })
}

/** Waits for a random moment: of the calls, or, one time in five, while the recording begins. Returns what it is. */
async function moment({ child, printed, from = 0 }, { program = 'host', promise }) {
  const [isEarly, part, ms] = [promise === 'unknown' || random() < 0.2, random(), random() * 5]
  const early = part * (begunMs[program] ?? begunMs.host) * (promise === 'unknown' ? 4 : 1)
  const calls = from + Math.ceil(part * CALLS_MAX)
  if (!isEarly) await until(() => printed.length >= calls || child.exitCode !== null)
  await sleep(isEarly ? early : ms)
  return isEarly ? `after ${Math.round(early)} ms` : `after ${calls} calls`
}

/** The process to kill, below 0 a group; undefined: it is not there. */
function victimOf(who, home, { child }) {
  if (who === 'command') return child.pid
  if (who === 'group') return -child.pid
  const name = who === 'program' ? /\/runner\/|run-node\.mjs$|ctypes-host\.py$/ : new RegExp(`^(?:\\S*/)?${who}$`)
  const found = runningIn(home).filter(({ words }) =>
    words.slice(0, who === 'program' ? 2 : 1).some((word) => name.test(word)),
  )
  return found[Math.floor(random() * found.length)]?.pid
}

/** Reads a file as the command does. */
function expectInfo(home, file, isEnded, fault) {
  const { status, stdout, stderr } = spawnSync(COMMAND[0], [COMMAND[1], 'info', file], { cwd: home, encoding: 'utf8' })
  if (status !== 0 || stdout.includes('run did not end') === isEnded)
    fault(`info ${file}: ${status} ${stdout}${stderr}`)
}

const counts = { early: 0, logs: 0, calls: 0, operators: 0, faults: 0 }
/** One kill, in a folder of its own. */
async function killOne(name, who, home) {
  const mode = MODES[name]
  const run = await begin(home, mode)
  const at = await moment(run, mode)
  const victim = victimOf(who, home, run)
  const fault = (text) => console.error(`fault ${++counts.faults}: ${name}, ${who} killed ${at}: ${text}`)
  if (victim === undefined) counts.early++
  kill(victim ?? -run.child.pid)
  // bpftrace ends within seconds, the process that was attached to only here.
  if (run.target) await until(() => !runningIn(home).some(({ words }) => words[0] === 'bpftrace'))
  if (run.target) kill(-run.target.child.pid)
  if (!(await until(() => runningIn(home).length === 0)))
    fault(`still there: ${runningIn(home).map(({ words }) => words.slice(0, 3).join(' '))}`)
  await Promise.race([run.ended, sleep(PATIENCE_MS, undefined, { ref: false })])
  const isOwn = victim !== undefined && Math.abs(victim) !== run.child.pid // the command itself was not killed
  if (isOwn && /\n {4}at /.test(run.stderr)) fault(run.stderr)

  const names = readdirSync(home, { recursive: true, encoding: 'utf8' })
  const logs = names.filter((file) => /\.(ggtrace(\.\d+)?|g2p)$/.test(file) && !/^\./.test(file))
  if (logs.length === 0 && run.printed.length > 0 && (!mode.output || isOwn)) fault(`no log: ${run.stderr}`)
  for (const log of logs) {
    const recording = await readLog(join(home, log)).catch((error) => fault(`${log}: ${error.stack}`))
    if (!recording) continue
    counts.logs++
    counts.calls += recording.calls.length
    counts.operators += recording.operators
    const isComplete = who === 'command' && victim !== undefined && !mode.output
    expectCalls(recording, run.printed, mode.promise ?? 'all', isComplete, (text) => fault(`${log}: ${text}`))
    expectInfo(home, log, !recording.issues.some(({ code }) => code === 'run-without-end'), fault)
  }
  const others = names.filter(
    (file) => !logs.includes(file) && ![mode.beside, mode.output, 'run.power.csv'].includes(file),
  )
  if (isOwn && others.length > 0) fault(`left over: ${others}`)
  if (isOwn && mode.beside && existsSync(join(home, mode.beside))) expectInfo(home, mode.beside, true, fault)
  else if (isOwn && mode.beside && logs.length > 0) fault(`no ${mode.beside}: ${run.stderr}`)
}

console.log(`${kills} kills, seed ${seed}`)
const commands = await programs()
const pairs = Object.entries(MODES)
  .filter(([name, { isLeftOut }]) => !isLeftOut && name.includes(wanted))
  .flatMap(([name, { victims = WHO }]) => victims.map((who) => [name, who]))
const home = join(folder, 'run')
mkdirSync(home)
/** How long it takes until a program has printed its first call, in ms. */
const begunMs = {}
for (const program of ['host', 'node', 'python']) {
  const startMs = performance.now()
  const run = await begin(home, { program })
  await until(() => run.printed.length > 0)
  begunMs[program] = performance.now() - startMs
  if ((await run.ended) !== 0) throw new Error(`${program}: ${run.stderr}`)
}
for (let i = 0; i < kills; i++) {
  rmSync(home, { recursive: true })
  mkdirSync(home)
  await killOne(...pairs[i % pairs.length], home)
  for (const { pid } of runningIn(home)) kill(pid)
}
// What a killed command has left in the temporary folder, the next one removes.
await (await begin(home, { options: ['--force'] })).ended
const left = readdirSync(temporary).filter((name) => name.startsWith('ggml2perfetto-'))
if (left.length > 0) console.error(`fault ${++counts.faults}: left in the temporary folder: ${left}`)
const { early, logs, calls, operators, faults } = counts
console.log(
  `${kills} kills of ${pairs.length} kinds, ${early} before there was what to kill: ${logs} logs with ${calls} calls and ${operators} operators; ${faults} faults`,
)
process.exit(faults > 0 ? 1 : 0)
