/**
 * Kills recordings (SIGKILL) at random moments, in each mode of `record`: the recorded program, the command, all of the group, or the tool
 * that the mode runs. Each log must be readable, with each call that the program printed as done, and all of its operators, or with what
 * the mode promises instead (docs/reference/recorder.md); no process and no temporary file remains. Modes that need root are left out without.
 *   node scripts/kill-recordings.mjs [kills, default 100] [seed, default 1] [a part of the names of modes]
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { register } from 'node:module'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { plainTmpdir } from '../test/cache.cjs'
import { expectCalls, readLog } from './kill-recordings/promises.mjs'
import { randomOf } from './random.mjs'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const CLI = join(ROOT, 'dist/ggml2perfetto.js')
const [kills, seed, wanted] = [Number(process.argv[2] ?? 100), Number(process.argv[3] ?? 1), process.argv[4] ?? '']
const random = randomOf(seed)
/** A recording and its processes have so long to begin, and to end, on a machine that is busy, in ms. */
const PATIENCE_MS = 120_000
const TICK_MS = 20
/** Most calls that a program makes before it is killed. */
const CALLS = 120
/** A program has so many contexts one after the other, each of so many calls: more than CALLS, in less than 2 s. */
const [CONTEXTS, OF_CONTEXT] = [2, 200]

register('./typescript-hooks.mjs', import.meta.url)
const { ensureLlama, hostsProgram, LIB, model } = await import('../test/llama/testbed.ts')
const folder = mkdtempSync(join(plainTmpdir(), 'ggml2perfetto-kills-'))
/** Of all commands: what is left there by one, a later one removes. */
const temporary = join(folder, 'temporary')
mkdirSync(temporary)

/** The processes that have this folder in their environment. */
const running = (home) =>
  readdirSync('/proc').flatMap((name) => {
    try {
      const isOne = /^\d+$/.test(name) && readFileSync(`/proc/${name}/environ`, 'latin1').match(new RegExp(`KILLS=${home}[/\0]`))
      return isOne ? [{ pid: Number(name), command: readFileSync(`/proc/${name}/cmdline`, 'latin1').split('\0') }] : []
    } catch {
      return [] // it has ended
    }
  })

const kill = (pid) => {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if (error.code !== 'ESRCH') throw error // it has ended
  }
}

/** Ends all that this script began: at its end, and by Ctrl-C. */
const cleanUp = () => {
  for (const { pid } of running(folder)) kill(pid)
  rmSync(folder, { recursive: true, force: true })
}
process.on('exit', cleanUp)
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => process.exit(130))

async function programs() {
  await ensureLlama()
  const sizes = join(folder, 'sizes')
  const source = join(ROOT, 'test/llama/sizes.c')
  execFileSync('cc', ['-I', join(ROOT, 'vendor/llama/include'), source, '-o', sizes])
  const [params, context] = execFileSync(sizes, { encoding: 'utf8' }).trim().split(' ')
  const { path } = await model({
    ...{ layers: 1, width: 64, feedForward: 96, heads: 2, kvHeads: 1, vocabulary: 260, context: 128 },
  })
  const repeat = (count, ...steps) => Array.from({ length: count }, () => steps).flat()
  const calls = ['open', '0', '2', ...repeat(OF_CONTEXT, 'decode', '0', '1', 'sleep', '1'), 'close', '0']
  const slowCall = ['while', '0', 'attn_out-0', 'sleep', '60', 'end']
  const slow = ['open', '0', '2', ...repeat(12, ...repeat(15, 'decode', '0', '1', 'sleep', '1'), ...slowCall)]
  const hosts = [await hostsProgram(), LIB, 'load', '0', path]
  const total = String(CONTEXTS * OF_CONTEXT)
  const node = ['--model', path, '--prompt', '4', '--decode', total, '--vocabulary', '260', '--times']
  return {
    host: [...hosts, ...repeat(CONTEXTS, ...calls)],
    slow: [...hosts, ...slow],
    node: [process.execPath, join(ROOT, 'test/llama/run-node.mjs'), ...node],
    python: ['python3', join(ROOT, 'test/llama/ctypes-host.py'), LIB, path, params, context, '1', total],
    two: ['sh', '-c', '"$@" & "$@" & wait', 'sh', ...hosts, ...repeat(CONTEXTS, ...calls)],
    swept: [...hosts, ...repeat(CONTEXTS, ...calls.with(2, '{t}'))],
  }
}

const WHO = ['program', 'command', 'group']
const isRoot = process.getuid?.() === 0
/** By name: the options, the program, what has calls and operators (promises.mjs), who is killed. */
const MODES = {
  'level token': { options: ['--level', 'token'], promise: 'calls' },
  'level graph': { options: ['--level', 'graph'], promise: 'graphs' },
  'level op': {},
  'an older log': { hasOlder: true },
  'counters': { options: ['--counters', 'page-faults,context-switches,task-clock'] },
  'no states, no functions': { options: ['--no-states', '--no-functions'] },
  'sync': { options: ['--sync'], promise: 'some' },
  'max-size': { options: ['--max-size', '64K'], promise: 'first' },
  'ring': { options: ['--max-size', '96K', '--ring'], promise: 'last' },
  'slow': { options: ['--max-size', '4M', '--slow', '40ms'], program: 'slow', promise: 'slow' },
  'tokens and every': { options: ['--tokens', '6..', '--every', '3'], promise: 'third' },
  'ops': { options: ['--ops', 'MUL_MAT'], promise: 'some' },
  'paused': { options: ['--paused'], promise: 'calls' },
  'guard': { options: ['--guard', '50'], promise: 'guarded' },
  'NVTX': { options: ['--nvtx-emit', 'tokens,operators'] },
  'two programs': { program: 'two' },
  'Node.js': { program: 'node', promise: 'some' },
  'Python': { program: 'python', promise: 'some' },
  'power': { options: ['--power'] },
  'mem': { options: ['--mem'], victims: [...WHO, 'perf'], beside: 'run.faults.data' },
  'sched': { options: ['--sched'], needs: isRoot, beside: 'run.sched.dat' },
  'sweep': { options: ['--sweep', 't=1,2', '--rounds', '1'], program: 'swept', output: 'swept', promise: 'unknown' },
  'attach': { needs: isRoot, victims: [...WHO, 'bpftrace'], output: 'run.g2p', beside: 'run.sched.dat', promise: 'since' },
}

/** Starts a command in a group of its own; `lines` are those that programs have printed. */
function start(home, command, isRecorded = true) {
  const env = { ...process.env, KILLS: home, TMPDIR: temporary, PYTHONUNBUFFERED: '1' }
  const child = spawn(command[0], command.slice(1), { cwd: home, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  const started = { child, lines: [], stderr: '', rest: '', isRecorded }
  child.stdout.setEncoding('utf8').on('data', (text) => {
    const lines = (started.rest + text).split('\n')
    started.rest = lines.pop()
    started.lines.push(...lines.filter((line) => line.startsWith('{"event": "call"') || line.startsWith('{"event":"call"')))
  })
  child.stderr.setEncoding('utf8').on('data', (text) => {
    started.stderr += text
  })
  started.ended = new Promise((resolve) => child.once('close', (code, signal) => resolve(signal ?? code)))
  return started
}

async function until(what, isSo) {
  for (const end = performance.now() + PATIENCE_MS; !isSo(); await sleep(TICK_MS))
    if (performance.now() > end) throw new Error(`not within ${PATIENCE_MS / 1000} s: ${what}`)
}

/** The process to kill, below 0 a group; undefined: it is not there. */
function victimOf(who, home, { child }) {
  if (who === 'command') return child.pid
  if (who === 'group') return -child.pid
  const name = who === 'program' ? /\/runner\/|run-node\.mjs|ctypes-host\.py/ : new RegExp(`^(?:\\S*/)?${who}$`)
  const isOne = ({ command: [first, second = ''] }) => name.test(first) || (who === 'program' && name.test(second))
  const found = running(home).filter(isOne)
  return found[Math.floor(random() * found.length)]?.pid
}

/** Waits for a random moment: of the calls, or one time in five while the recording starts. Returns what it is. */
async function moment(run, startMs, isSilent) {
  const [isEarly, part, ms] = [isSilent || random() < 0.2, random() * (isSilent ? 4 : 1), random() * 5]
  const wait = async (isSo) => until('calls', () => isSo() || run.child.exitCode !== null)
  if (isEarly) {
    await sleep(part * startMs)
    return `after ${Math.round(part * startMs)} ms`
  }
  const calls = Math.ceil(part * CALLS)
  await wait(() => run.lines.length >= calls)
  await sleep(ms)
  return `after ${calls} calls`
}

/** Starts the recording of a mode; with attach, of a program that runs. */
async function begin(home, { options = [], program = 'host', output = 'run.ggtrace', hasOlder }, all) {
  if (hasOlder) writeFileSync(join(home, output), older)
  if (output !== 'run.g2p')
    return start(home, [process.execPath, CLI, 'record', '-o', output, ...options, '--', ...all[program]])
  const target = start(home, all[program], false)
  await until('a program to attach to', () => target.lines.length > 0)
  const attached = start(home, [process.execPath, CLI, 'record', '--attach', `${target.child.pid}`, '-o', output])
  attached.lines = target.lines
  return Object.assign(attached, { target })
}
let older

/** What can be read of a log as the command reads it. */
function info(home, log, recording, fault) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [CLI, 'info', log], { cwd: home, encoding: 'utf8' })
  if (status !== 0) return fault(`info ${log} ended with ${status}: ${stderr}`)
  const isEnded = !recording.issues.some(({ code }) => code === 'run-without-end')
  if (log.endsWith('.ggtrace') && stdout.includes('run did not end') === isEnded) fault(`info of ${log}: ${stdout}`)
}

const counts = { kills: 0, logs: 0, early: 0, calls: 0, operators: 0 }
/** One kill; faults are reported by `fault`. */
async function killOne(name, who, home, all, fault) {
  const mode = MODES[name]
  const run = await begin(home, mode, all)
  const at = await moment(run, startMs[mode.program] ?? startMs.host, name === 'sweep')
  const victim = victimOf(who, home, run)
  if (victim === undefined) counts.early++
  else kill(victim)
  if (who === 'group' && run.target) kill(-run.target.child.pid)
  counts.kills++
  const what = `${name}, ${who} killed ${at}`
  if (victim === undefined && run.child.exitCode === null && mode.output === undefined) kill(-run.child.pid)
  const status = await Promise.race([run.ended, sleep(PATIENCE_MS, 'still running', { ref: false })])
  await until(`${what}: all processes ended`, () => running(home).length === 0).catch(({ message }) => {
    fault(`${message}: ${running(home).map(({ command }) => command.slice(0, 3).join(' '))}`)
  })
  const said = `${status}${run.stderr.includes('    at ') ? `: ${run.stderr}` : ''}`
  if (/^still|: /.test(said)) fault(`${what}: the command ended with ${said}`)
  const isCommand = victim === undefined || Math.abs(victim) === run.child.pid
  const names = readdirSync(home, { recursive: true, encoding: 'utf8' })
  const logs = names.filter((file) => /\.(ggtrace(\.\d+)?|g2p)$/.test(file) && !/^\./.test(file))
  const printed = run.lines.map((line) => JSON.parse(line))
  // What --attach and its tool record is written at the end; what the others record, by the program itself.
  if (logs.length === 0 && printed.length > 0 && (mode.output !== 'run.g2p')) fault(`${what}: no log`)
  for (const log of logs) {
    if (mode.hasOlder && readFileSync(join(home, log)).equals(older)) {
      if (printed.length > 0) fault(`${what}: the older log remains`)
      continue
    }
    const recording = await readLog(join(home, log)).catch(({ message }) => fault(`${what}: ${log}: ${message}`))
    if (!recording) continue
    counts.logs++
    counts.calls += recording.calls.length
    counts.operators += recording.operators
    const isComplete = who === 'command' && victim !== undefined && mode.output === undefined
    expectCalls(recording, printed, mode.promise ?? 'all', isComplete, (text) => fault(`${what}: ${log}: ${text}`))
    info(home, log, recording, (text) => fault(`${what}: ${text}`))
  }
  const others = names.filter((file) => !logs.includes(file) && file !== mode.beside && file !== mode.output)
  if (!isCommand && others.length > 0) fault(`${what}: left over: ${others}`)
  if (!isCommand && mode.beside) {
    const beside = existsSync(join(home, mode.beside))
    if (!beside && printed.length > 0) fault(`${what}: no ${mode.beside}: ${run.stderr}`)
    if (beside) info(home, mode.beside, { issues: [] }, (text) => fault(`${what}: ${text}`))
  }
}

const startMs = {}
const faults = []
console.log(`${kills} kills, seed ${seed}`)
const all = await programs()
const plain = join(folder, 'plain')
mkdirSync(plain)
for (const program of ['host', 'node', 'python']) {
  const begun = performance.now()
  const run = await begin(plain, { program }, all)
  await until(`${program} is recorded`, () => run.lines.length > 0)
  startMs[program] = performance.now() - begun
  if ((await run.ended) !== 0) throw new Error(`${program}: ${run.stderr}`)
  older = readFileSync(join(plain, 'run.ggtrace'))
}
const pairs = Object.entries(MODES)
  .filter(([name, { needs = true }]) => needs && name.includes(wanted))
  .flatMap(([name, { victims = WHO }]) => victims.map((who) => [name, who]))
for (let i = 0; i < kills; i++) {
  const [name, who] = pairs[i % pairs.length]
  const home = join(folder, `${i}`)
  mkdirSync(home)
  const before = faults.length
  await killOne(name, who, home, all, (text) => void faults.push(`kill ${i}: ${text}`))
  for (const text of faults.slice(before)) console.error(text)
  for (const { pid } of running(home)) kill(pid)
  rmSync(home, { recursive: true })
}
// What commands that were killed left in the temporary folder, the next one has removed, but for the last one's.
const last = start(plain, [process.execPath, CLI, 'record', '-q', '--force', '-o', 'run.ggtrace', ...all.host])
await last.ended
const left = readdirSync(temporary).filter((name) => name.startsWith('ggml2perfetto-'))
if (left.length > 0) faults.push(`left in the temporary folder: ${left}`)
console.log(
  `${counts.kills} kills in ${pairs.length} cases, ${counts.early} before there was what to kill: ${counts.logs} logs with ` +
    `${counts.calls} calls and ${counts.operators} operators; ${faults.length} faults`,
)
process.exitCode = faults.length > 0 ? 1 : 0
process.exit()
