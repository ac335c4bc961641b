import type { StdioOptions } from 'node:child_process'
import { arch as hostArch, platform as hostPlatform, constants as system } from 'node:os'
import { isAbsolute, resolve } from 'node:path'
import { env as processEnvironment } from 'node:process'
import { checkNames, UsageError } from '../../errors.ts'
import { RECORD_OPTIONS, RECORD_VARIABLES_OPTIONS } from '../../generated/option-names.ts'
import { type OwnedChild, startChild } from '../children.ts'
import { askDevices } from './ask.ts'
import { checkCounters } from './counters.ts'
import { checkRecordable, checkSystem, isSecure } from './diagnosis.ts'
import { RECORDER_ENVIRONMENT } from './environment.ts'
import { changed, checkLog, furtherLogs, logAt, newLogName, placeOfLog } from './log-place.ts'
import { withLogReport } from './log-report.ts'
import { type MemRecording, withMem } from './memory.ts'
import { explainNoLog } from './no-log.ts'
import { checkOps } from './ops.ts'
import { type PowerRecording, withPower } from './power.ts'
import {
  type Environment,
  findProgram,
  loaderOf,
  type Program,
  programError,
  programName,
  reasonOf,
} from './program.ts'
import { recorderLibrary, withReachable } from './recorder-library.ts'
import { type SchedRecording, withSched } from './sched.ts'

/** How much is recorded; each level includes the ones before it. */
export type RecordLevel = 'token' | 'graph' | 'op'

/** What llama.cpp does that can be announced as NVTX ranges. */
export type NvtxEmitted = 'phases' | 'tokens' | 'graphs' | 'operators'

/** What to record, and how. */
export interface RecordOptions {
  /** The program, as a shell would find it, and its arguments. */
  readonly command: readonly [program: string, ...args: string[]]
  /** The program's environment, by default `process.env`; only LD_PRELOAD, GGML2PERFETTO_* and, if not set, NVTX_INJECTION64_PATH are added. */
  readonly env?: Environment | undefined
  /** The log's path; an older file is replaced. By default `<program>-<time>.ggtrace` in the working directory. */
  readonly output?: string | undefined
  /** By default `op`. */
  readonly level?: RecordLevel | undefined
  /**
   * Records processes that the program starts, too: by default yes. The first process that calls ggml writes `output`, each further
   * one `<output>.<pid>`.
   */
  readonly children?: boolean | undefined
  /** Records when GPUs computed operators and copied data, where ggml uses CUDA or Vulkan; by default yes. */
  readonly gpu?: boolean | undefined
  /** Path of NVIDIA's libcupti, for times of CUDA's devices; by default it is searched as other libraries are. */
  readonly cupti?: string | undefined
  /** Without CUPTI, times each node on CUDA's devices by cudaEvents: spans on a stream, not kernels. By default only each graph run. */
  readonly gpuEvents?: boolean | undefined
  /** Computes node by node, to time operators of backends without an operator hook (GPUs): slower. */
  readonly sync?: boolean | undefined
  /**
   * Records a library that contains ggml and does not export it, such as an add-on of Node.js, by the entries of its functions; by default no:
   * a library with a ggml of its own that is loaded later would call this one.
   */
  readonly libraries?: boolean | undefined
  /** Records when threads ran, waited for a CPU, and were blocked; by default yes, if the kernel reports it. */
  readonly states?: boolean | undefined
  /**
   * Records what the program does around its calls, by functions of llama.cpp: sampling, changes of sequences, text, waiting, loading,
   * states, drafts; by default yes.
   */
  readonly functions?: boolean | undefined
  /**
   * Also records which thread ran on which CPU on the whole machine, who woke whom, and starts and ends of threads, in a
   * separate file. Needs root; without it, only thread states are recorded, and {@link RecordResult.sched} contains the reason.
   */
  readonly sched?: boolean | undefined
  /** With `sched`: bytes of the kernel's buffer of each CPU; by default 16 MiB, less where there are many CPUs. */
  readonly schedBuffer?: number | undefined
  /** Also reads meters of the kernel, every 100 ms: RAPL, clocks of CPUs, sensors of power; into a separate file. */
  readonly power?: boolean | undefined
  /** Called with the reason if there are no meters that can be read, before the program starts. */
  readonly onPowerProblem?: ((problem: string) => void) | undefined
  /** The folder of sysfs, by default `/sys`. */
  readonly sysfs?: string | undefined
  /** Called with the reason if the scheduler's events are not recorded: right before the program starts, if it is known then. */
  readonly onSchedProblem?: ((problem: string) => void) | undefined
  /**
   * Also records the page faults of this process's children with their addresses, by perf(1), in a separate file. Without perf, the program
   * runs nevertheless, and {@link RecordResult.mem} contains the reason.
   */
  readonly mem?: boolean | undefined
  /** Called with the reason if page faults are not recorded. */
  readonly onMemProblem?: ((problem: string) => void) | undefined
  /** The calls whose events are recorded, from … to inclusive, 0 being the first; by default all. Of others, only the call is recorded. */
  readonly tokens?: readonly [number, number] | undefined
  /** Records only every n-th of these calls. */
  readonly every?: number | undefined
  /** Ops to record, such as `MUL_MAT`, by ggml's names; by default all. */
  readonly ops?: readonly string[] | undefined
  /** What to count, per operator and worker: {@link COUNTERS}, codes of the processor (`r01c2`), `<pmu>/config=<n>/`. */
  readonly counters?: readonly string[] | undefined
  /** Records nothing but calls until the program, or the signal `toggle`, resumes. */
  readonly paused?: boolean | undefined
  /** A signal that pauses and resumes recording; the program does not see it. */
  readonly toggle?: NodeJS.Signals | undefined
  /** Size limit of the log in bytes; records that do not fit are dropped and counted. */
  readonly bytesMax?: number | undefined
  /** If the log reaches `bytesMax`, keeps the last part instead of the first. Needs `bytesMax`. */
  readonly ring?: boolean | undefined
  /**
   * Keeps only calls that last at least so many milliseconds, each with those of the second before it. The log contains the number and the
   * time of all others. `bytesMax` is 256 MiB without it.
   */
  readonly slow?: number | undefined
  /**
   * Records less (graphs, then only calls) if decode calls take this many percent longer with recording than without. Every
   * eighth decode call is not recorded, for comparison.
   */
  readonly guard?: number | undefined
  /**
   * Announces what llama.cpp does as NVTX ranges, in the domain `llama.cpp`, to the tool that NVTX_INJECTION64_PATH names
   * (Nsight Systems sets it), or else to the log itself.
   */
  readonly nvtxEmit?: readonly NvtxEmitted[] | undefined
  /**
   * If a device refused operators, asks it after the program has ended which property decided, in a process of its own that loads the same
   * backend, and adds the answers to the log; by default yes.
   */
  readonly ask?: boolean | undefined
  /** The program's standard streams; by default those of this process. */
  readonly stdio?: StdioOptions | undefined
  /**
   * Starts the program in a process group of its own, all of which ends with the program, or with this process: Ctrl-C at a terminal does not
   * reach it. By default no: it gets Ctrl-C as this process does, and continues if this process is killed.
   */
  readonly group?: boolean | undefined
  /** Called right before the program starts, with a function that sends it a signal, and a signal that is aborted when it has ended. */
  readonly onStart?: ((kill: (signal: NodeJS.Signals) => void, ended: AbortSignal) => void) | undefined
  /** Called before the recorder's library is built, which takes some seconds. */
  readonly onBuild?: ((compiler: string) => void) | undefined
  /** By default this system's, as in `process.platform` and `process.arch`. */
  readonly platform?: string | undefined
  readonly arch?: string | undefined
}

/** How a recorded program ended, and what was recorded. */
export interface RecordResult {
  /** The program's exit code as in a shell: 128 + n if signal n ended it. */
  readonly exitCode: number
  /** The signal that ended it. */
  readonly signal: NodeJS.Signals | undefined
  /** Paths of the logs: of the first process that called ggml, then of others (`children`). */
  readonly logs: readonly string[]
  /** Why there is no log, as a message. */
  readonly problem: string | undefined
  /** The log could not be written, or not completely, because of the disk or its permissions; a message. */
  readonly failure: string | undefined
  /** The scheduler's events of the whole machine, or why there are none; undefined if not requested. */
  readonly sched: SchedRecording | undefined
  /** What meters of the kernel measured, or why there is nothing; undefined if not requested. */
  readonly power: PowerRecording | undefined
  /** The page faults, or why there are none; undefined if not requested. */
  readonly mem: MemRecording | undefined
}

/** Size limit of a log that keeps slow calls only: the latest quarter is not decided yet. */
const SLOW_BYTES_MAX = 256 * 1024 ** 2
const DISK_FULL =
  'the disk was full: the log is incomplete\nhint: write it to another disk (-o), or limit its size (--max-size)'

/**
 * Runs a program and records what ggml does in it, by preloading a library (Linux only so far). The program keeps its
 * streams, its exit code and its environment except LD_PRELOAD, GGML2PERFETTO_* and NVTX_INJECTION64_PATH. Throws UsageError before
 * it runs anything if nothing could be recorded or written; with `exitCode` 127 or 126 if there is no program to run.
 */
export async function record(options: RecordOptions): Promise<RecordResult> {
  checkNames('record', options, RECORD_OPTIONS)
  const { env = processEnvironment, children = true, platform = hostPlatform(), arch = hostArch() } = options
  checkSystem(platform, arch)
  checkOptions(options)
  const program = await findProgram(options.command[0], env, resolve('.'))
  await checkRecordable(program, arch, children, env)
  if (options.ops) await checkOps(options.ops, program, env)
  const decided = { ...options, env, children, platform, arch }
  if (options.output !== undefined) return recordTo(options.output, program, decided)
  const { output, release } = await newLogName(programName(program))
  try {
    return await recordTo(output, program, decided)
  } finally {
    release()
  }
}

/** What can be recorded of a program that {@link record} does not start. */
export type RecordVariablesOptions = Omit<
  RecordOptions,
  | 'command'
  | 'output'
  | 'sched'
  | 'schedBuffer'
  | 'onSchedProblem'
  | 'power'
  | 'onPowerProblem'
  | 'sysfs'
  | 'mem'
  | 'onMemProblem'
  | 'ask'
  | 'stdio'
  | 'group'
  | 'onStart'
> & {
  /** The log's path, as the program sees it. If that file exists, the log is `<output>.<pid>`, or `<output>.<pid>.<n>`. */
  readonly output: string
}

/**
 * The environment variables with which a program records itself: for programs that a container, a service manager or another
 * program starts. Throws UsageError if the options are not possible, or the recorder's library is not available.
 */
export async function recordVariables(options: RecordVariablesOptions): Promise<Readonly<Record<string, string>>> {
  checkNames('recordVariables', options, RECORD_VARIABLES_OPTIONS)
  const { env = processEnvironment, children = true, platform = hostPlatform(), arch = hostArch() } = options
  checkSystem(platform, arch)
  checkOptions(options)
  if (!isAbsolute(options.output))
    throw new UsageError(`${options.output}: expected an absolute path, as the program sees it`)
  const library = await recorderLibrary({ env, platform, arch, onBuild: options.onBuild })
  const variables = recorderEnvironment({ ...options, env: {}, children }, library, options.output)
  return Object.fromEntries(Object.entries(variables).flatMap(([key, value]) => (value ? [[key, value]] : [])))
}

type Decided = RecordOptions & { env: Environment; children: boolean; platform: string; arch: string }

async function recordTo(output: string, program: Program, options: Decided): Promise<RecordResult> {
  const { env, children, platform, arch } = options
  await checkLog(output, program)
  const library = await recorderLibrary({ env, platform, arch, loader: loaderOf(program), onBuild: options.onBuild })
  const before = await furtherLogs(output)
  const place = await placeOfLog(output)
  try {
    const runs = () =>
      withReachable(library, program, env, (path) => {
        const environment = { ...recorderEnvironment(options, path, output), ...place.environment }
        return withLogReport(output, (file) =>
          // The log is in its place before what is recorded next to it is completed, which may be interrupted.
          run(program, { ...environment, ...file }, options).finally(place.settle),
        )
      })
    const scheduled = async () =>
      options.sched ? withSched(output, runs, options) : { ended: await runs(), sched: undefined }
    const sampled = async () =>
      options.mem ? withMem(output, scheduled, options) : { ended: await scheduled(), mem: undefined }
    const metered = options.power
      ? await withPower(output, sampled, options)
      : { result: await sampled(), power: undefined }
    const { ended: recorded, mem } = metered.result
    const { result, report } = recorded.ended
    const { code, signal } = result
    const logs = [...(await logAt(await place.settle())), ...(await changed(output, before))]
    if (options.ask !== false) for (const log of logs) await askDevices(log, library, env).catch(() => undefined)
    const failure = report.isDiskFull ? `${output}: ${DISK_FULL}` : report.cannotOpen
    const hasReason = logs.length > 0 || failure !== undefined
    const ending = { ...result, children, programs: report.programs, library, output }
    const problem = hasReason ? undefined : await explainNoLog(program, ending, env)
    const exitCode = code ?? 128 + system.signals[signal!]
    const [{ power }, { sched }] = [metered, recorded]
    return { exitCode, signal: signal ?? undefined, logs, problem, failure, sched, power, mem }
  } finally {
    await place.settle().finally(place.release)
  }
}

/** Throws UsageError if options contradict each other. */
function checkOptions(options: Omit<RecordOptions, 'command'>): void {
  if (options.sync && options.level === 'token') throw new UsageError('sync: expected level graph or op, found token')
  checkEmitted(options)
  if (options.ring && options.bytesMax === undefined) throw new UsageError('ring: needs a size at most (bytesMax)')
  if (options.slow !== undefined && !(options.slow > 0)) throw new UsageError('slow: expected milliseconds above 0')
  checkCounters(options)
}

/** Throws UsageError if announcements are requested that the hooks of this level do not see. */
function checkEmitted({ nvtxEmit = [], level = 'op' }: Omit<RecordOptions, 'command'>): void {
  const needed = nvtxEmit.includes('operators') ? 'op' : nvtxEmit.includes('graphs') ? 'graph' : 'token'
  const levels = ['token', 'graph', 'op']
  if (levels.indexOf(level) >= levels.indexOf(needed)) return
  throw new UsageError(`nvtx-emit ${nvtxEmit.join(',')}: expected level ${needed}, found ${level}`)
}

function recorderEnvironment(
  options: Omit<Decided, 'command' | 'platform' | 'arch'>,
  library: string,
  output: string,
): Environment {
  const {
    env,
    children,
    level,
    gpu = true,
    cupti,
    sync,
    libraries,
    states = true,
    functions = true,
    tokens,
    every,
    ops,
    counters,
  } = options
  const { paused, toggle, ring, guard, nvtxEmit, slow, gpuEvents } = options
  const bytesMax = options.bytesMax ?? (slow === undefined ? undefined : SLOW_BYTES_MAX)
  const [before, isListener] = [env['LD_PRELOAD'], !env['NVTX_INJECTION64_PATH']]
  return {
    ...env,
    // After the user's own libraries: some of them (sanitizers) must be first.
    LD_PRELOAD: before ? `${before}:${library}` : library,
    // A tool chosen by the user keeps the program's NVTX.
    NVTX_INJECTION64_PATH: isListener ? library : env['NVTX_INJECTION64_PATH'],
    [RECORDER_ENVIRONMENT.nvtx]: isListener ? '1' : undefined,
    [RECORDER_ENVIRONMENT.nvtxEmit]: nvtxEmit?.join(','),
    [RECORDER_ENVIRONMENT.out]: resolve(output),
    [RECORDER_ENVIRONMENT.level]: level ?? 'op',
    [RECORDER_ENVIRONMENT.children]: children ? '1' : undefined,
    [RECORDER_ENVIRONMENT.gpu]: gpu ? undefined : '0',
    [RECORDER_ENVIRONMENT.cupti]: cupti && resolve(cupti),
    [RECORDER_ENVIRONMENT.gpuEvents]: gpuEvents ? '1' : undefined,
    [RECORDER_ENVIRONMENT.sync]: sync ? '1' : undefined,
    [RECORDER_ENVIRONMENT.libraries]: libraries ? '1' : undefined,
    [RECORDER_ENVIRONMENT.states]: states ? undefined : '0',
    [RECORDER_ENVIRONMENT.functions]: functions ? undefined : '0',
    [RECORDER_ENVIRONMENT.tokens]: tokens && `${tokens[0]}..${tokens[1] === Infinity ? '' : tokens[1]}`,
    [RECORDER_ENVIRONMENT.every]: every?.toString(),
    [RECORDER_ENVIRONMENT.ops]: ops?.join(','),
    [RECORDER_ENVIRONMENT.counters]: counters?.join(','),
    [RECORDER_ENVIRONMENT.paused]: paused ? 'paused, until resumed' : undefined,
    [RECORDER_ENVIRONMENT.toggle]: toggle && `${system.signals[toggle]}`,
    [RECORDER_ENVIRONMENT.bytesMax]: bytesMax?.toString(),
    [RECORDER_ENVIRONMENT.ring]: ring ? '1' : undefined,
    [RECORDER_ENVIRONMENT.slow]: slow === undefined ? undefined : `${Math.round(slow * 1e6)}`,
    [RECORDER_ENVIRONMENT.guard]: guard === undefined ? undefined : `${guard} %`,
    [RECORDER_ENVIRONMENT.preloadBefore]: before || undefined,
  }
}

interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly secure: boolean
}

async function run(program: Program, env: Environment, options: RecordOptions): Promise<Ended> {
  const { name, path } = program
  const { command, stdio = 'inherit', group = false, onStart } = options
  const cannotRun = (error: NodeJS.ErrnoException) =>
    error.syscall?.startsWith('spawn') ? programError(126, `${name}: cannot run: ${reasonOf(error)}`) : error
  let running: OwnedChild | undefined
  const over = new AbortController()
  onStart?.((signal) => running?.send(signal), over.signal)
  try {
    running = startChild(
      path,
      command.slice(1),
      { argv0: name, env, stdio, detached: group },
      group ? { isGuarded: true } : { isFree: true },
    )
  } catch (error) {
    throw cannotRun(error as NodeJS.ErrnoException)
  }
  const secure = running.child.pid !== undefined && isSecure(running.child.pid)
  const { code, signal, error } = await running.ended
  over.abort()
  if (error) throw cannotRun(error)
  return { code, signal, secure }
}
