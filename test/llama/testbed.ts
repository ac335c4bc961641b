import { execFile, spawn, spawnSync } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import { existsSync, readdirSync } from 'node:fs'
import { chmod, readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { cacheFolder, makeForAll } from '../cache.cjs'
import { C_FLAGS, INCLUDE } from '../compile.ts'
import { cachedModel, type Model, type ModelSpec, type Preset } from './gguf.mjs'

/**
 * Real llama.cpp for tests: its libraries (fetched once into vendor/), models with random weights, and host programs
 * in C, JavaScript and Python. Write `const llamaTest = hasLlama() ? test : test.skip` and await `ensureLlama()`
 * in beforeAll.
 */

const pathOf = (name: string) => fileURLToPath(new URL(name, import.meta.url))
const HOME = pathOf('../../vendor/llama')
const FLAGS = [...C_FLAGS, '-O2', '-g']
const execute = promisify(execFile)

/** Where llama.cpp's libraries and headers lie. */
export const LIB = join(HOME, 'lib')
/** The same libraries, with ggml-rpc, which is compiled. */
export const RPC_LIB = join(HOME, 'rpc')
export { INCLUDE }

export interface Load {
  readonly event: 'load'
  readonly start: number
  readonly end: number
}

/** One llama_decode; times in nanoseconds of CLOCK_MONOTONIC, `cpu` and `tid` of the calling thread (run.c only). */
export interface Call {
  readonly event: 'call'
  readonly context: number
  readonly call: number
  readonly kind: 'warmup' | 'prompt' | 'decode'
  readonly tokens: number
  readonly start: number
  readonly end: number
  readonly cpu?: number
  readonly tid?: number
  /** Of the process, and how many nodes llama.cpp had to compute (hosts.c only). */
  readonly pid?: number
  readonly nodes?: number
}

/** A child that ended (hosts.c only). */
export interface Child {
  readonly event: 'child'
  readonly pid: number
  readonly code: number
  readonly signal: number
}

/** A call that returned another result than 0 (hosts.c only). */
export interface FailedCall {
  readonly event: 'failed'
  readonly result: number
  readonly start: number
  readonly end: number
}

/** The experts a layer's router chose, for each token that the layer computes; the last layer computes outputs only. */
export interface TopK {
  readonly event: 'topk'
  readonly context: number
  readonly call: number
  readonly layer: number
  readonly ids: readonly (readonly number[])[]
}

interface NodeTensor {
  /** Its address in the program. */
  readonly id: string
  readonly name: string
  /** Empty of leaves. */
  readonly op: string
}

/** A node of a graph that a call computed, as the program has it (run.c with --nodes). */
export interface GraphNodeLine {
  readonly event: 'node'
  readonly context: number
  readonly call: number
  readonly node: NodeTensor
  readonly sources: readonly NodeTensor[]
}

export interface FileTensor {
  readonly event: 'tensor'
  readonly name: string
  readonly type: string
  readonly shape: readonly [number, number, number, number]
  readonly offset: number
  readonly size: number
}

/** `tokens`: of each context, of each sequence (hosts.c: none). `hash`: of all logits (not run-node.mjs). */
export interface Result {
  readonly event: 'result'
  readonly pid: number
  readonly hash?: string
  readonly tokens: readonly (readonly (readonly number[])[])[]
}

/** What llama.cpp measured of the first context: times to the end of the work, and tokens (run.c with --perf). */
export interface PerfLine {
  readonly event: 'perf'
  readonly promptMs: number
  readonly prompt: number
  readonly decodeMs: number
  readonly decode: number
}

/** A function around calls, as the program called it (functions.c only). */
export interface FunctionLine {
  readonly event: 'function'
  readonly what: string
  readonly name: string
  readonly sequence: number
  readonly output: number
  readonly value: number
}

/** A change of the KV cache (functions.c only). */
export interface ChangeLine {
  readonly event: 'change'
  readonly what: string
  readonly sequence: number
  readonly to: number
  readonly from: number
  readonly end: number
  readonly delta: number
  readonly isDone: boolean
}

export type Line =
  | Load
  | Call
  | FailedCall
  | TopK
  | GraphNodeLine
  | FileTensor
  | Child
  | FunctionLine
  | ChangeLine
  | PerfLine
  | Result

export interface Run {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stderr: string
  readonly lines: readonly Line[]
  readonly calls: readonly Call[]
  readonly failed: readonly FailedCall[]
  readonly topk: readonly TopK[]
  readonly tensors: readonly FileTensor[]
  readonly children: readonly Child[]
  /** Missing where the program failed. */
  readonly result: Result | undefined
  readonly perf: PerfLine | undefined
  /** hosts.c: of each process, and of what it was before an exec. */
  readonly results: readonly Result[]
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>
  /** A library for LD_PRELOAD. */
  readonly preload?: string
  readonly timeoutMs?: number
  /** A command that becomes the program, such as `prlimit`, with its arguments. */
  readonly before?: readonly string[]
  /** Where llama.cpp's libraries are loaded from (hosts.c only). */
  readonly lib?: string
  /** Another build of the program (hosts.c only). */
  readonly program?: string
  /** Built for arm64, run by qemu-user (run.c and alone.c only). */
  readonly arm64?: boolean
}

/** The libraries, the compiler of the host programs, and a command that becomes them. */
const X64 = { lib: LIB, compiler: 'cc', before: [] as readonly string[] }
/** qemu is static: LD_PRELOAD passes it by, and is the program's. */
const ARM64 = {
  lib: join(HOME, 'arm64/lib'),
  compiler: 'aarch64-linux-gnu-gcc',
  before: ['qemu-aarch64-static', '-L', '/usr/aarch64-linux-gnu'],
}

const canRun = (command: string) => spawnSync(command, ['--version'], { stdio: 'ignore' }).status === 0

/** Whether this machine can run llama.cpp's tests: linux-x64 with cc, and git if the libraries are not there yet. */
export const hasLlama = () =>
  process.platform === 'linux' &&
  process.arch === 'x64' &&
  ['cc', 'make'].every(canRun) && // make builds the recorder
  (existsSync(join(HOME, 'stamp.json')) || canRun('git'))

/** What is missing to run programs of arm64, beside llama.cpp; undefined: nothing. */
export const missingForArm64 = () =>
  [ARM64.before[0]!, ARM64.compiler].find((tool) => !canRun(tool)) ??
  [`${ARM64.before[2]}/lib/libstdc++.so.6`].find((path) => !existsSync(path))

const ensured = new Map<string, Promise<unknown>>()

/** Fetches llama.cpp where it is missing, asked once for a test file; with `node` node-llama-cpp's JavaScript API, with others that backend or architecture. */
export const ensureLlama = async ({
  node = false,
  vulkan = false,
  cuda = false,
  cuda12 = false,
  arm64 = false,
  rpc = false,
} = {}) => {
  const options = Object.entries({ node, vulkan, cuda, cuda12, arm64, rpc }).flatMap(([name, wanted]) =>
    wanted ? [`--${name}`] : [],
  )
  const key = options.join(' ')
  const done = ensured.get(key) ?? execute(process.execPath, [pathOf('../../scripts/fetch-llama.mjs'), ...options])
  ensured.set(key, done)
  await done
}

/** llama.cpp's CUDA backend, of CUDA 13 or 12, on the GPU of test/gpu, which is built in this folder. */
export const cudaEnvironment = (bed: string, backend: 'cuda' | 'cuda12' = 'cuda') => ({
  GGML_BACKEND_PATH: join(HOME, backend, 'libggml-cuda.so'),
  LD_LIBRARY_PATH: bed,
})

const DRIVERS = '/usr/share/vulkan/icd.d'
const lavapipe = existsSync(DRIVERS) ? readdirSync(DRIVERS).find((name) => /^lvp_icd.*\.json$/.test(name)) : undefined

/**
 * The environment in which llama.cpp has a second backend, Vulkan0: on the CPU, by Mesa's lavapipe. Undefined where Mesa
 * is not installed. It compiles its shaders when they are first used, for some seconds each, and keeps them in a cache.
 */
export const vulkanEnvironment = lavapipe && {
  GGML_BACKEND_PATH: join(HOME, 'vulkan/libggml-vulkan.so'),
  GGML_VK_VISIBLE_DEVICES: '0', // or llama.cpp passes over a device that is no GPU
  VK_DRIVER_FILES: join(DRIVERS, lavapipe),
  VK_ICD_FILENAMES: join(DRIVERS, lavapipe), // the same to older loaders
  GALLIVM_PERF: 'nopt',
  MESA_SHADER_CACHE_DIR: cacheFolder('shaders'),
}

/** A model with random weights, from the cache in the temporary folder. */
export const model = (preset: Preset | ModelSpec): Promise<Model> => cachedModel(preset)

const compile = async (name: string, { compiler, lib }: typeof X64) => {
  const source = pathOf(name)
  const stamp = await readFile(join(HOME, 'stamp.json'), 'utf8')
  const flags = FLAGS.filter((flag) => name.endsWith('.c') || !/^-std=|prototypes$/.test(flag)) // C++ has none of these
  const key = createHash('sha256').update([await readFile(source, 'utf8'), stamp, lib, ...flags].join('\0'))
  const folder = cacheFolder('runner')
  const path = join(folder, key.digest('hex').slice(0, 16))
  if (existsSync(path)) return path
  makeForAll(folder)
  const temporary = `${path}.${randomUUID()}.tmp`
  const linked = [`-L${lib}`, `-Wl,-rpath,${lib}`, '-lllama', '-lggml', '-lggml-base', '-lpthread']
  await execute(compiler, [...flags, source, '-o', temporary, ...linked])
  await chmod(temporary, 0o755) // for other users, whatever the umask is
  await rename(temporary, path)
  return path
}

const compiled = new Map<string, Promise<string>>()

const program = (name: string, target: typeof X64 = X64) => {
  const key = `${name} ${target.compiler}`
  const known = compiled.get(key) ?? compile(name, target)
  compiled.set(key, known)
  return known
}

/** The path of run.c's program, compiled once. */
export const runner = () => program('run.c')

/** The path of hosts.c's program, compiled once. */
export const hostsProgram = () => program('hosts.c')

/** The path of alone.c's program, compiled once. */
export const aloneProgram = () => program('alone.c')

/** The path of planted.c's program, compiled once. */
export const plantedProgram = () => program('planted.c')

/** The path of functions.c's program, compiled once. */
export const functionsProgram = () => program('functions.c')

/** Runs functions.c's program: with the folder of llama.cpp's libraries, a model, and a folder for what it writes. */
export const runFunctions = async (args: readonly string[], options: RunOptions = {}) =>
  await gather(await functionsProgram(), args, options)

/** The command that runs alone.c's program for arm64, with its first argument. */
export const aloneOnArm64 = async () => [...ARM64.before, await program('alone.c', ARM64), ARM64.lib]

/** Runs leaving.cc's program: with the folder of llama.cpp's libraries, a model, and what each call does. */
export const runLeaving = async (args: readonly string[], options: RunOptions = {}) =>
  await gather(await program('leaving.cc', { ...X64, compiler: 'c++' }), args, options)

/** The path of endings.c's program, compiled once. */
export const endingsProgram = () => program('endings.c')

const outcomeOf = (code: number | null, signal: NodeJS.Signals | null, stdout: string, stderr: string): Run => {
  // A program that is killed may leave half a line.
  const whole = stdout.slice(0, stdout.lastIndexOf('\n') + 1)
  const lines = whole
    .split('\n')
    .filter(Boolean)
    .map((text) => JSON.parse(text) as Line)
  const of = <E extends Line['event']>(event: E) =>
    lines.filter((line): line is Extract<Line, { event: E }> => line.event === event)
  const [calls, topk, tensors, children] = [of('call'), of('topk'), of('tensor'), of('child')]
  const failed = of('failed')
  const results = of('result')
  const [result, perf] = [results[0], of('perf')[0]]
  return { code, signal, stderr, lines, calls, failed, topk, tensors, children, results, result, perf }
}

const gather = (command: string, args: readonly string[], options: RunOptions) =>
  new Promise<Run>((resolve, reject) => {
    const { env, preload, timeoutMs = 240_000, before = [] } = options
    const [first, ...rest] = [...before, command, ...args]
    const child = spawn(first!, rest, {
      env: { ...process.env, ...(preload === undefined ? {} : { LD_PRELOAD: preload }), ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: timeoutMs,
      killSignal: 'SIGKILL',
    })
    let stdout = ''
    let stderr = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text
    })
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text
    })
    child.on('error', reject)
    child.on('close', (code, signal) => {
      try {
        resolve(outcomeOf(code, signal, stdout, stderr))
      } catch (error) {
        reject(error as Error) // a line is no JSON
      }
    })
  })

/** Runs run.c's program; its options are told by `--help`. */
export const run = async (path: string, args: readonly string[] = [], options: RunOptions = {}) => {
  const target = options.arm64 ? ARM64 : X64
  const before = [...(options.before ?? []), ...target.before]
  const command = await program('run.c', target)
  return await gather(command, ['--lib', target.lib, '--model', path, ...args], { ...options, before })
}

/** Runs run-node.mjs: node-llama-cpp's addon, or with `--api` its JavaScript API. */
export const runNode = async (path: string, args: readonly string[] = [], options: RunOptions = {}) =>
  await gather(process.execPath, [pathOf('run-node.mjs'), '--model', path, ...args], options)

/** Runs ctypes-host.py, a Python program. */
export const runPython = async (path: string, threads: number, decode: number, options: RunOptions = {}) => {
  const { stdout } = await execute(await program('sizes.c'), [])
  const args = [pathOf('ctypes-host.py'), LIB, path, ...stdout.trim().split(' '), `${threads}`, `${decode}`]
  return await gather('python3', args, options)
}

/** Runs hosts.c's program; without arguments it tells its steps. */
export const runHosts = async (steps: readonly (string | number)[], options: RunOptions = {}) =>
  await gather(options.program ?? (await hostsProgram()), [options.lib ?? LIB, ...steps.map(String)], options)
