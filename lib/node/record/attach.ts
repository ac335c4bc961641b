import { type FileHandle, readFile, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import { env as processEnvironment } from 'node:process'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { UsageError } from '../../errors.ts'
import { describeEnding, type Ending, startChild } from '../children.ts'
import { exists, explained, writeFileWhole } from '../files.ts'
import { packageFolder } from '../native.ts'
import { namelessFile } from '../outputs.ts'
import { readElf } from './elf.ts'
import { newLogName } from './log-place.ts'
import type { Environment } from './program.ts'
import type { RecordResult } from './record.ts'
import { type SchedOptions, withSched } from './sched.ts'
import { serverLogOf } from './server-log.ts'
import { rowOf } from './ways.ts'

/** What {@link attach} records, of which process. */
export interface AttachOptions extends Pick<SchedOptions, 'onSchedProblem'> {
  readonly pid: number
  /** Path of the log, by default `<program>-<time>.g2p` in the working directory. */
  readonly output?: string | undefined
  /** `token`: calls; `graph`: also graph runs; `op`: also operators on each worker, at some 100 µs each. By default `graph`. */
  readonly level?: 'token' | 'graph' | 'op' | undefined
  /** Also records the scheduler's events of the whole machine; by default yes. */
  readonly sched?: boolean | undefined
  /** Ends after so many seconds; by default with the process, or the signal. */
  readonly seconds?: number | undefined
  readonly signal?: AbortSignal | undefined
  /** Environment of bpftrace, by default this process's. */
  readonly env?: Environment | undefined
  /** Called before the process is touched. */
  readonly onStart?: ((plan: AttachPlan) => void) | undefined
}

/** What {@link attach} recorded. */
export interface AttachResult extends RecordResult {
  /** The file to which the process writes a llama-server's log, whose requests can be shown with its calls. */
  readonly serverLog: string | undefined
}

/** What will be traced. */
export interface AttachPlan {
  /** The kernel's name of the process; `_` for what is no letter, digit, dot or dash. */
  readonly program: string
  readonly scripts: readonly TracedScript[]
  /** Scripts whose functions the process does not have, each with its function. */
  readonly missing: readonly Omit<TracedScript, 'file' | 'path'>[]
}

/** A script of native/ebpf, and the file with its functions. */
export interface TracedScript {
  readonly script: 'token' | 'graph' | 'op'
  readonly function: string
  /** As the process sees it. */
  readonly file: string
  /** Where it is found here. */
  readonly path: string
}

/** Scripts of native/ebpf in the order of the level, and the function that each needs. */
const SCRIPTS = [
  ['token', 'llama_decode'],
  ['graph', 'ggml_backend_graph_compute_async'],
  ['op', 'ggml_cpu_extra_compute_forward'],
] as const
/** Paths that are texts of bpftrace as they are: no quotes, escapes, patterns. */
const NAMEABLE = /^[\w./+@:=,~ -]+$/
/** What the kernel adds to the name of a file that has none any more. */
const DELETED = ' (deleted)'
/** What such a process calls, as patterns where not all versions have it (native/ebpf/token.bt). */
const FIRST = {
  token: ['llama_decod*e', 'llama_proces*s'],
  graph: ['ggml_backend_graph_compute_async'],
  op: ['ggml_cpu_extra_compute_forward'],
} as const
/** The same as in the heads of the scripts. */
const RING_PAGES = '4096'
const MESSAGE_CHARS_MAX = 2000
/** How often it is seen whether bpftrace has begun, in ms. */
const LOOK_MS = 100
/** At least as long as what bpftrace prints before our first line. */
const HEAD_BYTES = 4096

/**
 * Records calls, graph runs and operators of a process that already runs, by bpftrace and uprobes: needs root, and symbols in the
 * program or its libraries. The process is not stopped; when bpftrace ends, by whatever reason, the kernel removes the probes. Times are
 * CLOCK_BOOTTIME, also those of the scheduler's events. Throws UsageError if nothing can be traced.
 */
export async function attach(options: AttachOptions): Promise<AttachResult> {
  const { pid, level = 'graph', sched: isSched = true } = options
  const started = await startOf(pid) // before anything else is read of it
  const plan = await planOf(pid, level)
  const text = await programOf(plan, started, options)
  if (options.output !== undefined) await refuseExisting(options.output)
  const { output, release } =
    options.output === undefined
      ? await newLogName(plan.program, 'g2p')
      : { output: options.output, release: () => undefined }
  try {
    const serverLog = await serverLogOf(pid)
    options.onStart?.(plan)
    const run = () => trace(text, output, started, options)
    const { ended: failure, sched } = isSched
      ? await withSched(output, run, { ...options, clock: 'boot' })
      : { ended: await run(), sched: undefined }
    const none = { signal: undefined, problem: undefined, power: undefined, mem: undefined }
    return { ...none, exitCode: failure === undefined ? 0 : 1, logs: [output], failure, sched, serverLog }
  } finally {
    release()
  }
}

async function refuseExisting(output: string): Promise<void> {
  if (await exists(output)) throw new UsageError(`${output}: exists already\nhint: name another file with -o`)
}

/** The functions that can be traced, each in the file that the process has mapped. */
async function planOf(pid: number, level: string): Promise<AttachPlan> {
  const root = `/proc/${pid}`
  const maps = await readFile(`${root}/maps`, 'utf8').catch((error: NodeJS.ErrnoException) => {
    const isGone = error.code === 'ENOENT' || error.code === 'ESRCH'
    const why = isGone ? 'there is no such process' : 'this user may not look into it'
    throw new UsageError(`attach ${pid}: ${why}${isGone ? '' : '\nhint: use sudo'}`)
  })
  // A process chooses its name, which becomes that of a file: no folders, nothing that a terminal interprets.
  const program = (await readFile(`${root}/comm`, 'utf8')).trimEnd().replace(/[^\w.-]/g, '_')
  const wanted = SCRIPTS.slice(0, SCRIPTS.findIndex(([script]) => script === level) + 1)
  const found = new Map<string, Pick<TracedScript, 'file' | 'path'>>()
  for (const [file, mapping] of mappedCode(maps)) {
    const names = wanted.map(([, name]) => name)
    const path = await pathOfMapped(root, file, mapping)
    const elf = await readElf(path, names).catch(() => undefined)
    for (const name of names) if (elf?.exports.has(name) || elf?.symbols.has(name)) found.set(name, { file, path })
  }
  const named = [...found.values()].map(({ file }) => (file.endsWith(DELETED) ? file.slice(0, -DELETED.length) : file))
  const odd = named.find((file) => !NAMEABLE.test(file))
  if (odd !== undefined) throw new UsageError(`attach ${pid}: ${odd}: bpftrace cannot name a file with such characters`)
  const scripts = wanted.flatMap(([script, name]) =>
    found.has(name) ? { script, function: name, ...found.get(name)! } : [],
  )
  const missing = wanted.flatMap(([script, name]) => (found.has(name) ? [] : { script, function: name }))
  if (scripts.length > 0) return { program, scripts, missing }
  throw new UsageError(
    `attach ${pid}: ${program} has none of ${names(missing)}: it does not use llama.cpp, or is stripped\n` +
      `hint: a build that is not stripped, or one with shared libraries, contains the names of its functions (${rowOf('process that runs already')})`,
  )
}

/** Files with code, each with its mapping, from /proc/<pid>/maps. */
function mappedCode(maps: string): Map<string, string> {
  const lines = [...maps.matchAll(/^(\S+) ..x. \S+ \S+ \d+ +(\/.*)$/gm)]
  return new Map(lines.map(([, range, file]) => [file!, range!]))
}

/** A file that was deleted or replaced since it was mapped has no path any more, but those of the kernel. `root`: /proc/<pid>. */
async function pathOfMapped(root: string, file: string, mapping: string): Promise<string> {
  const path = join(root, 'root', file)
  if (!file.endsWith(DELETED) || (await exists(path))) return path
  const range = mapping.split('-').map((address) => address.replace(/^0+(?=.)/, ''))
  return join(root, 'map_files', range.join('-'))
}

const names = (list: readonly { readonly function: string }[]) => list.map((entry) => entry.function).join(', ')

/**
 * One bpftrace program of the scripts: types come first, and BEGIN and END once, as all versions need it. Probes are attached one after the
 * other, forwards or backwards, while the process continues; so nothing is printed before the first and the last have fired.
 */
async function programOf(
  { scripts }: AttachPlan,
  started: bigint | undefined,
  { pid, seconds }: AttachOptions,
): Promise<string> {
  const folder = join(await packageFolder(), 'native/ebpf')
  const [types, begins, probes, ends]: [string[], string[], string[], string[]] = [[], [], [], []]
  // With -p, too, a probe fires in all processes that map the file.
  const own = (await hasFirstPids()) ? `pid == ${pid}` : '1'
  // A log in which nothing was traced names the last script and its function: that of the calls.
  for (const { script, file, path } of scripts.toReversed()) {
    const text = (await readFile(join(folder, `${script}.bt`), 'utf8'))
      // bounded: a script of this package
      .replace(/^#!.*|\/\*[\s\S]*?\*\//g, '')
      .replace(/@(\w+)/g, `@${script}_$1`)
      .replace('%s\\n", str($1)', `${file}\\n"`) // a text of bpftrace has at most 63 bytes, a format more
      .replaceAll('$1', `"${path}"`)
      .replace(
        // bounded: a script of this package
        /printf\("g2p (?:token|encode|span|remove|graph|op) [\s\S]*?\);/g,
        `if (@first && @last && ${own}) { $& }`,
      )
    // bounded: a script of this package
    const others = text.replace(/^(BEGIN|END|struct \w+) (\{[\s\S]*?\});?$/gm, (whole, head: string, body: string) => {
      const list = head === 'BEGIN' ? begins : head === 'END' ? ends : types
      list.push(list === types ? whole : body.slice(1, -1))
      return ''
    })
    probes.push(others)
  }
  const [{ script, path }] = scripts as [TracedScript]
  const fired = (flag: string) =>
    `${FIRST[script].map((pattern) => `uprobe:"${path}":${pattern}`).join(', ')} /${own}/ { ${flag} = 1; }`
  const limit = seconds === undefined ? '' : `interval:ms:${Math.ceil(seconds * 1000)} { exit(); }`
  begins.push(`printf("g2p fact process ${pid}\\n");`)
  if (started !== undefined) begins.push(`printf("g2p fact process_start ${started}\\n");`)
  ends.push('clear(@first); clear(@last);')
  const body = [fired('@first'), ...probes, fired('@last'), limit]
  return [...types, 'BEGIN {', ...begins, '}', ...body, 'END {', ...ends, '}'].join('\n')
}

/** Are process ids those of the kernel, which bpftrace compares? Not in a container. */
async function hasFirstPids(): Promise<boolean> {
  return (await readlink('/proc/self/ns/pid').catch(() => '')) === 'pid:[4026531836]' // PROC_PID_INIT_INO
}

/** When a process began, on CLOCK_BOOTTIME in ns; undefined: not known. The kernel rounds it down to ticks of 10 ms. */
async function startOf(pid: number): Promise<bigint | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => '')
  // The second field is a name in brackets, which may contain brackets and blanks.
  const ticks = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]
  return ticks === undefined ? undefined : BigInt(ticks) * 10_000_000n
}

/** Runs bpftrace until it ends, and writes the log. Returns what the log lacks, as a message, if bpftrace was killed. */
async function trace(
  text: string,
  output: string,
  started: bigint | undefined,
  options: AttachOptions,
): Promise<string | undefined> {
  const { pid, signal, env = processEnvironment } = options
  const spool = await explained(output, 'write', namelessFile(output))
  try {
    const bpftrace = startChild(
      'bpftrace',
      ['-p', `${pid}`, '-e', text],
      // It prints each line at once. Ctrl-C is for this process, which ends it.
      { stdio: ['ignore', spool.fd, 'pipe'], detached: true, env: { BPFTRACE_PERF_RB_PAGES: RING_PAGES, ...env } },
      { isGuarded: true },
    )
    let message = ''
    let lost = 0
    createInterface({ input: bpftrace.child.stderr! }).on('line', (line) => {
      const [, count] = /\bLost (\d+) events/.exec(line) ?? []
      if (count !== undefined) lost += Number(count)
      else message = `${message}${line}\n`.slice(0, MESSAGE_CHARS_MAX)
    })
    const end = () => void bpftrace.end()
    signal?.addEventListener('abort', end, { once: true })
    if (signal?.aborted) end()
    const other = isOther(spool, started, pid, bpftrace.ended).then(
      (is) => {
        if (is) end()
        return is
      },
      () => false, // as if it were not known
    )
    const ending = await bpftrace.ended
    signal?.removeEventListener('abort', end)
    if (await other)
      throw new UsageError(`attach ${pid}: the process ended before it was recorded, and another one has its number`)
    const isKilled = ending.signal !== null && (await hasBegun(spool))
    if (ending.code !== 0 && !isKilled) throw failure(pid, ending, message)
    await writeFileWhole(output, withLosses(spool, lost))
    return isKilled ? `${describeEnding('bpftrace', ending)}: ${output} has what was recorded before` : undefined
  } finally {
    await spool.close()
  }
}

/**
 * Has another process the number, once bpftrace has begun? The one that was meant may have ended meanwhile. If not, it is the one that bpftrace
 * holds, which ends with it.
 */
async function isOther(
  spool: FileHandle,
  started: bigint | undefined,
  pid: number,
  ended: Promise<unknown>,
): Promise<boolean> {
  const isOver = ended.then(() => true)
  while (!(await hasBegun(spool))) if (await Promise.race([isOver, sleep(LOOK_MS)])) return false
  const now = await startOf(pid)
  return now !== undefined && started !== undefined && now !== started
}

/** Has bpftrace printed more than how many probes it attaches? */
async function hasBegun(spool: FileHandle): Promise<boolean> {
  const { buffer, bytesRead } = await spool.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0)
  return buffer.toString('latin1', 0, bytesRead).includes('g2p ')
}

/** bpftrace prints what it lost among its errors: the log has it, too. */
async function* withLosses(spool: FileHandle, lost: number): AsyncGenerator<Uint8Array, void> {
  yield* spool.createReadStream({ start: 0, autoClose: false })
  if (lost > 0) yield Buffer.from(`Lost ${lost} events\n`)
}

function failure(pid: number, ending: Ending, message: string): UsageError {
  if (ending.error?.code === 'ENOENT')
    return new UsageError(`attach ${pid}: there is no bpftrace\nhint: sudo apt install bpftrace`)
  const first = message.trim().split('\n').slice(0, 3).join('; ')
  if (ending.signal !== null) {
    const printed = first === '' ? '' : `; it printed: ${first}`
    return new UsageError(
      `attach ${pid}: ${describeEnding('bpftrace', ending)} before it recorded: there is no log${printed}`,
    )
  }
  const hint = /only supports running as root/.test(message) ? '\nhint: use sudo' : ''
  return new UsageError(`attach ${pid}: bpftrace failed: ${first || `exit code ${ending.code}`}${hint}`)
}
