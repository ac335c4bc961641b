import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type MessagePort, receiveMessageOnPort, type Worker } from 'node:worker_threads'
import { afterAll, beforeAll } from '@jest/globals'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** The CLI as users run it: built. */
export const CLI = join(root, 'dist/ggml2perfetto.js')

/** Node for runs that end before V8's optimizing compiler and its threads are of use: a quarter less work. */
export const NODE = [process.execPath, '--no-opt', '--single-threaded-gc'] as const

/** A real run of 9 calls: a prefill of 16 tokens and 8 decode steps, on 2 workers. */
export const MOE = join(root, 'examples/moe.csv')

/** A log whose run begins with a warm-up call. */
export const WARM_UP = join(root, 'test/fixtures/tensor-trace/warm-up.bin')

/** What a run of the CLI gave. */
export interface Outcome {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
  /** Standard output as it came. */
  readonly bytes: Buffer
  readonly pid: number
}

export interface RunOptions {
  readonly cwd?: string
  readonly input?: string | Uint8Array
  readonly env?: Record<string, string>
  /** Standard output is a terminal of so many; not of `record`. */
  readonly columns?: number | undefined
}

/** Ends a program that hangs, in ms: long before the test's own limit, and long after what a busy machine takes. */
export const HANGS_MS = 200_000

interface CliThread {
  readonly done: Int32Array
  readonly port: MessagePort
  readonly worker: Worker
}

/** Where the CLI runs without a process of its own: a thread of environment.cjs. */
const { [Symbol.for('cli')]: cli } = globalThis as unknown as Record<symbol, { start(): CliThread; end(): void }>

function inThread(args: readonly string[], { cwd = folder, input = '', env, columns }: RunOptions): Result {
  const { done, port, worker } = cli!.start()
  done[0] = 0
  const before = process.cwd()
  process.chdir(cwd)
  try {
    while (receiveMessageOnPort(port)); // what came after the end of an earlier run
    const bytes = typeof input === 'string' ? Buffer.from(input) : input
    worker.postMessage({
      argv: [process.execPath, CLI, ...args],
      cwd: process.cwd(),
      env: { ...process.env, ...env },
      input: bytes,
      columns,
    })
    const isDone = Atomics.wait(done, 0, 0, HANGS_MS) !== 'timed-out'
    if (!isDone) cli!.end()
    const { message } = (isDone && receiveMessageOnPort(port)) || { message: { status: null } }
    const { status, stdout = [], stderr = [] } = message
    return { pid: process.pid, status, stdout: Buffer.from(stdout), stderr: Buffer.from(stderr) }
  } finally {
    process.chdir(before)
  }
}

/** Runs the CLI, in a thread; fails the test if it shows a stack trace or does not end. */
export function run(args: readonly string[], options: RunOptions = {}): Outcome {
  return outcome(inThread(args, options))
}

/** The words of a line that needs no shell; undefined of one that does. */
export function wordsOf(line: string): string[] | undefined {
  const words = [...line.matchAll(/(?:"[^"]*"|'[^']*'|[^\s"'])+/g)].map(([word]) => word)
  const isPlain = words.every((word) => /^(?:"[^"`$\\]*"|'[^']*'|[^\s"'`$|&;<>()*?{}~\\#])+$/.test(word))
  return isPlain ? words.map((word) => word.replaceAll(/"([^"]*)"|'([^']*)'/g, '$1$2')) : undefined
}

/** What a line of the docs prints: our command in a thread, with other commands in a shell. */
export function printedBy(line: string, cwd: string): string {
  const [program, ...words] = wordsOf(line) ?? []
  const script = `ggml2perfetto() { ${COMMAND} "$@"; }; ${line}`
  const inShell = () => spawnSync('bash', ['--norc', '-o', 'pipefail', '-c', script], { cwd, timeout: HANGS_MS })
  const { code, stdout, stderr } = program === 'ggml2perfetto' ? run(words, { cwd }) : outcome(inShell())
  if (code !== 0) throw new Error(`${line}: exit code ${code}: ${stderr}`)
  return stdout
}

/** The same in a process of its own, for what a thread does not have. */
export function runProcess(args: readonly string[], options: RunOptions = {}): Outcome {
  const [node, ...flags] = NODE
  const child = spawnSync(node, [...flags, CLI, ...args], {
    cwd: options.cwd ?? folder,
    input: options.input ?? '',
    env: { ...process.env, ...options.env },
    timeout: HANGS_MS,
    maxBuffer: 1 << 28,
  })
  return outcome(child)
}

/** A word of a shell's line. */
export const quoted = (word: string) => `'${word.replaceAll("'", "'\\''")}'`

/** The CLI in a shell's line. */
export const COMMAND = [...NODE, CLI].map(quoted).join(' ')

/** Runs a line of bash without the user's settings, which it reads where SHLVL is not set; in it, `$CLI` is the CLI and `$MOE` the log, without quotes: only a line break ends a word of a variable. */
export function shell(line: string): Outcome {
  const env = { ...process.env, CLI: [...NODE, CLI].join('\n'), MOE }
  const child = spawnSync('bash', ['--norc', '-c', `IFS=$'\\n'; ${line}`], {
    cwd: folder,
    env,
    timeout: HANGS_MS,
    maxBuffer: 1 << 28,
  })
  return outcome(child)
}

interface Result {
  readonly pid: number
  readonly status: number | null
  readonly stdout: Buffer
  readonly stderr: Buffer
}

function outcome({ pid, status: code, stdout: bytes, stderr: errors }: Result): Outcome {
  const [stdout, stderr] = [bytes.toString('latin1'), errors.toString()]
  if (/^ {4}at .*:\d+:\d+\)?$/m.test(`${stderr}\n${stdout}`)) throw new Error(`a stack trace:\n${stderr}`)
  if (code === null) throw new Error(`it did not end by itself:\n${stderr}`)
  return { code, stdout: bytes.toString(), stderr, bytes, pid }
}

/** Starts the CLI and leaves it running. */
export function start(args: readonly string[], env: Record<string, string> = {}) {
  const [node, ...flags] = NODE
  return spawn(node, [...flags, CLI, ...args], { cwd: folder, stdio: 'pipe', env: { ...process.env, ...env } })
}

/** A folder of the test file's own, empty at its start. */
export let folder: string

/** Call at the top of a test file. */
export function useFolder(parent = tmpdir()): void {
  beforeAll(() => {
    if (!existsSync(CLI)) throw new Error(`${CLI} is missing: npm run build`)
    folder = mkdtempSync(join(parent, 'ggml2perfetto-cli-'))
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
}

/** A path in the test file's folder. */
export const at = (name: string) => join(folder, name)

/** Names in the test file's folder, hidden ones too. */
export const names = () => readdirSync(folder).sort()

export const read = (name: string) => readFileSync(at(name))

/** Can file systems be mounted here (as root, outside of most containers)? */
export function canMount(): boolean {
  const place = mkdtempSync(join(tmpdir(), 'ggml2perfetto-mount-'))
  try {
    execFileSync('mount', ['-t', 'tmpfs', 'none', place], { stdio: 'ignore' })
    execFileSync('umount', [place], { stdio: 'ignore' })
    return true
  } catch {
    return false
  } finally {
    rmSync(place, { recursive: true, force: true })
  }
}

/** Runs `use` with a mounted tmpfs of its own at the folder `name`. */
export function withMount(name: string, options: string, use: () => void): void {
  mkdirSync(at(name), { recursive: true })
  execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'none', at(name)])
  try {
    use()
  } finally {
    execFileSync('umount', [at(name)])
  }
}
