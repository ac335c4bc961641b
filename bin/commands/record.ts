import { stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { ArgumentsCamelCase, CommandModule } from 'yargs'
import {
  type AttachPlan,
  analyze,
  attach,
  inputOf,
  isOwnError,
  type RecordResult,
  record,
  recordVariables,
  type Summary,
  signalWitness,
  summarizeFile,
  UsageError,
} from '../../lib/cli.ts'
import { COMMANDS } from '../commands.ts'
import { describeFindings } from '../findings.ts'
import { io } from '../io.ts'
import { refuseLoss } from '../mistakes.ts'
import { type Arguments, attached, chosen, counted, OPTIONS } from '../record/options.ts'
import { recordSweep } from '../record/sweep.ts'
import { endBy, interruptible, isEnding, onSignals, whenSignalled } from '../signals.ts'
import { describeLog, issueCount, lossCount } from '../summary.ts'
import { note, print, quoted } from '../terminal.ts'
import { duration, plural, size } from '../units.ts'
import { verdictLines } from '../verdict.ts'
import { showRecorded, WAIT_S } from './open.ts'

/** Signals that this process passes on to the program. */
const SIGNALS = ['SIGTERM', 'SIGHUP', 'SIGUSR1', 'SIGUSR2', 'SIGINT', 'SIGQUIT'] as const
/** Signals by which this process ends if the program did. Other signals cause core dumps, and ours could replace the program's. */
const REPEATED: readonly string[] = [
  'SIGINT',
  'SIGTERM',
  'SIGHUP',
  'SIGKILL',
  'SIGPIPE',
  'SIGALRM',
  'SIGUSR1',
  'SIGUSR2',
]
/** Options that take the next argument as their value. */
const WITH_VALUE = Object.entries(OPTIONS).flatMap(([name, option]) => {
  if (option.type !== 'string') return []
  return 'alias' in option ? [`--${name}`, `-${option.alias}`] : `--${name}`
})

/** `ggml2perfetto record -- <program> [args…]` */
export const recordCommand: CommandModule<object, Arguments> = {
  ...COMMANDS.record,
  builder: (yargs) =>
    yargs
      .usage(
        '$0 record [options] -- <program> [arguments]\n       $0 record --attach <process id> [--for 30s]\n\nRuns a program that uses llama.cpp, and writes a log of what ' +
          'ggml does in it. The program keeps its input, output and exit code; messages of ggml2perfetto go to stderr.',
      )
      .positional('command', { type: 'string', array: true, describe: 'Program to run, and its arguments' })
      .options(OPTIONS)
      .hide('command')
      .example('$0 record -- llama-cli -m model.gguf -p Hello', 'then: ggml2perfetto llama-cli-<time>.ggtrace')
      .example(
        'sudo $0 record --sched -o run.ggtrace -- setpriv --reuid=$(id -u) --regid=$(id -g) --init-groups llama-cli …',
        'also records who took the CPUs; then: ggml2perfetto run.ggtrace run.sched.dat',
      ),
  handler,
}

/** Inserts `--` before the program of a `record` command line without it: all options after the program belong to it. */
export function markProgram(args: readonly string[]): readonly string[] {
  if (args[0] !== 'record') return args
  for (let i = 1; i < args.length; i++) {
    const arg = args[i]!
    if (arg === '--') return args
    if (!arg.startsWith('-') || arg === '-') return [...args.slice(0, i), '--', ...args.slice(i)]
    if (WITH_VALUE.includes(arg)) i++
  }
  return args
}

async function handler(args: ArgumentsCamelCase<Arguments>): Promise<void> {
  const { command = [], output, quiet } = args
  if (args.attach !== undefined) return recordAttached(args.attach, args)
  if (args.for !== undefined) throw new UsageError('--for: expected --attach, too')
  if (args.printEnv) return printEnvironment(args)
  const [program, ...rest] = command
  if (program === undefined) {
    throw new UsageError('no program to record\nhint: ggml2perfetto record -- <program> [arguments]')
  }
  if (program === '') throw Object.assign(new UsageError('"": no such program'), { exitCode: 127 })
  if (output === '-') throw new UsageError("-o -: a log cannot go to stdout, which is the program's; expected a file")
  if (args.rounds !== undefined && !args.sweep) throw new UsageError('--rounds: expected --sweep, too')
  if (args.sweep) return recordSweep(args.sweep, [program, ...rest], args)
  // The recorder itself refuses what is no regular file, and the program.
  const isOther = output !== undefined && (await stat(output).catch(() => undefined))?.isFile()
  if (isOther && !args.force && resolve(output) !== resolve(program)) await refuseLoss(output, 'log')
  const listener = io().env['NVTX_INJECTION64_PATH']
  if (listener && !quiet) {
    void note(`note: NVTX_INJECTION64_PATH is set: NVTX ranges go to ${listener}, and not into the log`)
  }
  let release = onSignals('interrupted: nothing was recorded')
  const onStart = (kill: (signal: NodeJS.Signals) => void, ended: AbortSignal) => {
    release()
    release = passSignals(program, kill, ended)
  }
  try {
    const result = await record({
      command: [program, ...rest],
      env: io().env,
      stdio: io().stdio,
      ...chosen(args),
      onStart,
      onBuild: onBuild(args),
      onSchedProblem: (problem) => void note(withoutSched(problem, args)),
      onPowerProblem: (problem) => void note(`no power: ${problem}`),
      onMemProblem: (problem) => void note(`no page faults by address: ${problem}`),
    })
    release()
    io().exitCode = result.exitCode || (result.failure === undefined ? 0 : 1)
    await printResult(program, result, args)
    if (args.open) await openResult(result, args)
    endAs(result)
  } finally {
    release()
  }
}

/** Records a process that already runs until it ends, the time is over, or this process gets a signal; the third one ends it without a log. */
async function recordAttached(pid: number, args: ArgumentsCamelCase<Arguments>): Promise<void> {
  const end = new AbortController()
  let signals = 0
  const release = whenSignalled((signal) => {
    if (++signals === 2) void note('the recording is ending: one more signal ends it at once, without a log')
    if (signals > 2) endBy(signal, 'interrupted: no log was written')
    end.abort()
  })
  const options = {
    ...attached(args, pid),
    env: io().env,
    signal: end.signal,
    onStart: (plan: AttachPlan) => void note(attachedLines(plan, args)),
    onSchedProblem: (problem: string) => void note(withoutSched(problem, { ...args, states: false })),
  }
  const result = await attach(options).finally(release)
  io().exitCode = result.exitCode
  await printResult(`process ${pid}`, result, args)
  const { serverLog } = result
  if (serverLog !== undefined && !args.quiet)
    await note(`requests: ggml2perfetto open ${[...inputsOf(result), serverLog].map(quoted).join(' ')}`)
  if (args.open) await openResult(result, args)
}

/** What will be traced, and what it costs (native/ebpf/README.md). */
function attachedLines(
  { program, scripts, missing }: AttachPlan,
  { attach: pid, quiet, ...args }: Arguments,
): string[] {
  const lacks = missing.map(({ script, function: name }) => `not recorded: ${ATTACHED[script]}: it has no ${name}`)
  if (quiet) return lacks
  const what = scripts.map(({ script }) => ATTACHED[script]).join(', ')
  const hasOperators = scripts.some(({ script }) => script === 'op')
  const cost = hasOperators
    ? 'some 100 µs for each operator on each worker: a token of 1 ms takes 12 times as long, one of 70 ms 1.3 times'
    : 'some tens of µs for each of them'
  const end = args.for === undefined ? 'until Ctrl-C, or it ends' : `for ${duration(args.for * 1e6)}`
  const danger = 'until then, a C++ exception that leaves one of these functions ends the program'
  return [...lacks, `attaching to ${program} (${pid}) ${end}: ${what}; costs ${cost}; ${danger}`]
}

const ATTACHED = { token: 'calls', graph: 'graph runs', op: 'operators' } as const

/** Prints `KEY=value` lines, as `docker run --env-file` and systemd's EnvironmentFile= read them. */
async function printEnvironment(args: ArgumentsCamelCase<Arguments>): Promise<void> {
  const { command = [], output, sched, power, mem, open } = args
  if (command.length > 0) throw new UsageError('--print-env: expected no program, it runs nothing')
  const other = args.sweep ? 'sweep' : sched ? 'sched' : power ? 'power' : mem ? 'mem' : open ? 'open' : undefined
  if (other !== undefined) throw new UsageError(`--print-env: not possible with --${other}`)
  if (output === undefined)
    throw new UsageError('--print-env: expected the path of the log, too\nhint: -o /var/log/run.ggtrace')
  const { ask: _, ...own } = chosen(args) // nothing is asked after a program that others start
  const variables = await interruptible('interrupted', () =>
    recordVariables({ ...own, output, env: io().env, onBuild: onBuild(args) }),
  )
  await print(Object.entries(variables).map(([key, value]) => `${key}=${value}`))
}

const onBuild =
  ({ quiet }: Arguments) =>
  (compiler: string) => {
    if (!quiet) void note(`building the recorder with ${compiler}, once`)
  }

/** So many signals that end a process, within so many ms, kill a program that ignores them. */
const [PATIENCE, PATIENCE_MS] = [3, 5000]
/** Signals of one program, which sends them to this process and to its group, are one. In ms. */
const APART_MS = 50
/** After that time, a program that got the last but one of these is reported to run still, in ms. */
const REPORT_MS = 1000
/** A signal that ended the program may arrive here so many ms later. */
const SAME_MS = 1000

/**
 * Continues until the program ends, and passes on signals that were sent only to this process; then ends by them. Returns a function that
 * ends this.
 */
function passSignals(program: string, kill: (signal: NodeJS.Signals) => void, ended: AbortSignal): () => void {
  const witness = signalWitness(io().env)
  let endedMs = Infinity
  ended.addEventListener('abort', () => (endedMs = performance.now()))
  let recent: number[] = []
  const handler = async (signal: NodeJS.Signals) => {
    const nowMs = performance.now()
    if (isEnding(signal)) {
      if (nowMs > endedMs + SAME_MS) endBy(signal, 'interrupted: what is recorded next to the log may be missing')
      if (nowMs - (recent.at(-1) ?? 0) > APART_MS) recent = [...recent.filter((ms) => nowMs - ms < PATIENCE_MS), nowMs]
      if (recent.length >= PATIENCE) kill('SIGKILL')
      else if (recent.length === PATIENCE - 1) setTimeout(reportRunning, REPORT_MS).unref()
    }
    if (!(await witness.saw(signal))) kill(signal)
  }
  const reportRunning = () => {
    if (!ended.aborted) void note(`${program} still runs: ${PATIENCE} signals within ${PATIENCE_MS / 1000} s kill it`)
  }
  for (const signal of SIGNALS) process.on(signal, handler)
  return () => {
    for (const signal of SIGNALS) process.removeListener(signal, handler)
    witness.close()
  }
}

/** Prints what was recorded, and the next command. An error here must not change the program's exit code. */
async function printResult(program: string, result: RecordResult, args: Arguments): Promise<void> {
  const { logs, problem, failure, signal, sched, mem } = result
  const { quiet } = args
  if (signal !== undefined && (!REPEATED.includes(signal) || signal === 'SIGKILL')) {
    await note(`${program} was ended by ${signal}`)
  }
  if (problem !== undefined) await note(problem)
  if (failure !== undefined) await note(`error: ${failure}`)
  for (const log of logs) {
    const lines = await describe(log, args, sched).catch((error: unknown) => {
      const { message } = error as Error
      return isOwnError(error) ? message.split('\n') : [`${log}: cannot be read: ${message}`]
    })
    if (lines.length > 0) await note(lines)
  }
  for (const line of describeSched(sched, args)) await note(line)
  for (const line of describePower(result.power, args)) await note(line)
  if (mem?.path !== undefined && !quiet)
    await note(`wrote ${mem.path} (${size(mem.bytes)}): page faults with their addresses`)
  if (logs.length > 0 && !quiet && !args.open) await note(nextCommand('', result))
}

/** The logs that were recorded, as inputs of another command. */
function inputsOf({ logs, sched, power, mem }: RecordResult): readonly string[] {
  return [...logs, ...[sched?.path, power?.path, mem?.path].flatMap((path) => path ?? [])]
}

function nextCommand(command: string, result: RecordResult): string {
  return `next: ggml2perfetto ${command}${inputsOf(result).map(quoted).join(' ')}`
}

/** Shows what was recorded. An error here must not change the program's exit code. */
async function openResult(result: RecordResult, { browser, quiet, wait = WAIT_S }: Arguments): Promise<void> {
  if (result.logs.length === 0) return note('--open: there is nothing to show')
  try {
    await showRecorded(inputsOf(result), { browser, quiet, wait })
  } catch (error) {
    await note(`error: not opened: ${(error as Error).message}\n${nextCommand('open ', result)}`)
  }
}

/** Why there are no scheduler events, and what there is instead; the hint comes last. */
function withoutSched(problem: string, { states }: Arguments): string {
  const [why, ...hints] = problem.split('\n')
  const instead = states ? "only the program's own thread states are recorded" : 'no thread states are recorded'
  return [`no scheduler's events: ${why}; ${instead}`, ...hints].join('\n')
}

function describeSched(sched: RecordResult['sched'], { quiet }: Arguments): string[] {
  if (sched?.path === undefined) return []
  const { path, bytes, events, lost, cpus, buffer } = sched
  const larger = `record with larger buffers: --sched-buffer ${Math.ceil(buffer / 2 ** 18)}M`
  const losses =
    lost > 0 ? [`${path}: ${plural(lost, 'event')} lost: they came faster than they could be written; ${larger}`] : []
  const wrote = `wrote ${path} (${size(bytes)}): ${plural(events, 'scheduler event')} on ${plural(cpus, 'CPU')}`
  return quiet ? losses : [...losses, wrote]
}

function describePower(power: RecordResult['power'], { quiet }: Arguments): string[] {
  if (power?.path === undefined) return []
  const { path, readings, meters, hasPower, missing } = power
  const what = hasPower ? '' : ', clocks only'
  const lacks = missing.map((line) => (line.startsWith('hint: ') ? line : `not in ${path}: ${line}`))
  return quiet
    ? lacks
    : [...lacks, `wrote ${path}: ${plural(readings, 'reading')} of ${plural(meters, 'meter')}${what}`]
}

async function describe(log: string, args: Arguments, sched: RecordResult['sched']): Promise<string[]> {
  const { quiet } = args
  if (quiet && !counted(args)) return []
  const { size: bytes } = await stat(log)
  const summary = await summarizeFile(log, { findings: true })
  const uncounted = summary.attributes['counters.missing']
  const problems = uncounted === undefined ? [] : [`  not counted: ${uncounted}`]
  if (quiet) return problems
  const { note: why } = summary.attributes
  const notes = why === undefined ? [] : [`  note: ${why}`]
  const inputs = sched?.path === undefined ? [log] : [log, sched.path]
  const { findings: all = [], findings_are_estimates = false, verdict } = await withTakers(summary, inputs)
  // Losses are stated once: those that the kernel counted, with the recording of the scheduler.
  const isOfSched = lossCount(summary) === 0 && (sched?.lost ?? 0) > 0
  const findings = isOfSched ? all.filter(({ rule }) => rule !== 'losses') : all
  const lost = findings.find(({ rule }) => rule === 'losses')?.evidence['losses'] ?? lossCount(summary)
  const lines = describeLog(log, summary, isOfSched ? null : Number(lost))
  if (issueCount(summary) > 0) lines.push('  the Issues track of its trace shows where')
  const found = describeFindings(findings, `ggml2perfetto why ${inputs.map(quoted).join(' ')}`, findings_are_estimates)
  const first = verdict ? verdictLines(verdict, inputs) : []
  return [...first, ...lines, ...notes, ...problems, ...found, `wrote ${log} (${size(bytes)})${leftOutOf(summary)}`]
}

/** What is not in a log of slow calls. */
function leftOutOf({ attributes }: Summary): string {
  const [limit, calls, ns] = ['recorded.slow', 'left_out.calls', 'left_out.ns'].map((key) => attributes[key])
  if (calls === undefined) return ''
  const slow = Number(attributes['left_out.slow_calls'] ?? 0)
  const noRoom = slow > 0 ? `, ${plural(slow, 'slow one')} of them for lack of room (--max-size)` : ''
  return `: calls from ${limit} on; ${plural(Number(calls), 'other')}, ${duration(Number(ns))} in all, left out${noRoom}`
}

type Found = Pick<Summary, 'findings' | 'findings_are_estimates' | 'verdict'>

/** Findings of a log; with a recording of the scheduler, also who took the CPUs of its workers. */
async function withTakers(summary: Summary, inputs: readonly string[]): Promise<Found> {
  if (inputs.length === 1 || !summary.findings?.some(({ rule }) => rule === 'preempted')) return summary
  return await analyze(inputs.map(inputOf)).catch(() => summary)
}

/** Ends by the signal that ended the program, so that a parent that waits (a script at Ctrl-C) sees it. */
function endAs({ signal }: RecordResult): void {
  if (signal !== undefined && REPEATED.includes(signal)) process.kill(process.pid, signal)
}
