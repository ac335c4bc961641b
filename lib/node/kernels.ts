import { createHash } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { availableParallelism, cpus, arch as hostArch, hostname, platform as hostPlatform } from 'node:os'
import { dirname, join } from 'node:path'
import type { Analysis } from '../analyze/analysis.ts'
import { MAPPED_FILE } from '../analyze/placement/graph-parts.ts'
import { type AttentionJob, attentionJobs } from '../analyze/what-if/attention.ts'
import { modelOf } from '../analyze/what-if/calls.ts'
import {
  type AttentionTime,
  KERNELS_SCHEMA,
  type KernelTimes,
  type NodeTime,
  type ProductTime,
  parseKernelFile,
} from '../analyze/what-if/kernels.ts'
import { AS_IN_FILE, type Memory, type MemoryOf, memoryOf } from '../analyze/what-if/memory.ts'
import { type ProductJob, productJobs, type Sought } from '../analyze/what-if/weights.ts'
import { checkNames, UsageError } from '../errors.ts'
import { MEASURE_KERNELS_OPTIONS } from '../generated/option-names.ts'
import { typeNamed, typeNumbered } from '../model/ggml-types.ts'
import { cachedText, cacheText } from './cache.ts'
import { describeEnding, startChild } from './children.ts'
import { nativeFile } from './native.ts'
import { isOwn } from './own-files.ts'
import { cpuName, PEAKS_PROGRAM } from './peaks.ts'
import { systemName } from './record/diagnosis.ts'
import type { Environment } from './record/program.ts'

/** Options of {@link measureKernels}. */
export interface KernelsOptions {
  /** The environment, such as `process.env`: it determines the cache folder and the compiler. */
  readonly env: Environment
  /** Types of weights in addition to those of the run, such as `q8_0`. */
  readonly types: readonly string[]
  /** Numbers of threads, and of sequences that are decoded at once, in addition to those of the run. */
  readonly threads?: readonly number[] | undefined
  readonly batches?: readonly number[] | undefined
  /** Lengths of prompts, in tokens, in addition to those of the run. */
  readonly contexts?: readonly number[] | undefined
  /** Numbers of experts that a token uses, in addition to that of the run. */
  readonly experts?: readonly number[] | undefined
  /** Folder of ggml's libraries; by default that of the run. */
  readonly ggml?: string | undefined
  /** Called before the measuring program is built, which takes a second. */
  readonly onBuild?: ((compiler: string) => void) | undefined
  /** Called before measuring, with the number of measurements: each takes a third of a second. */
  readonly onStart?: ((measurements: number) => void) | undefined
}

/** Products that are kept of a ggml; the latest. */
const KEPT_MAX = 4096
/** All are measured so many times, one after the other: what disturbs the machine for some seconds is in one round of some of them. */
const ROUNDS = 3

/**
 * Measures what ggml's own matrix products take on this machine, also those of experts: of the weights of a run, at its types and others, with its numbers of threads and
 * tokens and others; and its flash attention. Takes a third of a second for each kind of product, type and number, in three rounds, during which nothing else should compute. The results
 * are kept for this host, its processor and this version of ggml, with those of earlier measurements; all of them are returned. `run`: with the series
 * `calls` and `steps`, recorded on this machine. Linux only. Throws UsageError where it cannot be measured.
 */
export async function measureKernels(run: Analysis, options: KernelsOptions): Promise<KernelTimes> {
  checkNames('measureKernels', options, MEASURE_KERNELS_OPTIONS)
  const { env, types, threads = [], batches = [], contexts = [], experts = [], onBuild, onStart } = options
  if (hostPlatform() !== 'linux')
    throw new UsageError(`peaks --types: runs on Linux only so far, this is ${systemName(hostPlatform())}`)
  const { build, cpu } = run.run
  if (build === null) throw new UsageError('peaks --types: the log does not contain the version of ggml')
  if (cpu !== cpuName())
    throw new UsageError(`peaks --types: the log was recorded on "${cpu ?? 'unknown'}", this is "${cpuName()}"`)
  const folder = options.ggml ?? (run.run.ggml_library === null ? undefined : dirname(run.run.ggml_library))
  if (folder === undefined)
    throw new UsageError("peaks --types: the log does not contain where ggml's libraries are\nhint: --ggml <folder>")
  if (options.ggml === undefined) await refuseForeign(folder)
  const jobs = jobsOf(run, { types, threads, batches, contexts, experts })
  const native = { env, platform: hostPlatform(), arch: hostArch(), onBuild }
  const program = await nativeFile(PEAKS_PROGRAM, native)
  onStart?.([...jobs.products, ...jobs.attention].reduce((sum, { runs }) => sum + runs.length, 0))
  const lines = await measured(program, folder, jobs, env)
  const times = merged(await keptKernels(env, build), { build, lines })
  await cacheText(env, keptName(build), `${JSON.stringify(times)}\n`).catch(() => undefined)
  return times
}

/** Libraries at a path that only the log contains: whoever wrote it chose them. Throws UsageError if another user can have made one. */
async function refuseForeign(folder: string): Promise<void> {
  const hint = `--ggml ${folder} if you trust these libraries`
  for (const name of await readdir(folder).catch(() => []))
    if (name.startsWith('libggml')) await isOwn(join(folder, name), { hint })
}

interface Jobs {
  readonly memoryOf: MemoryOf
  readonly products: readonly ProductJob[]
  readonly attention: readonly AttentionJob[]
}

function jobsOf(run: Analysis, sought: Sought): Jobs {
  for (const type of sought.types)
    if (!typeNamed(type))
      throw new UsageError(`peaks --types ${type}: no type of ggml\nhint: such as q4_0, q4_K, q8_0 or f16`)
  const model = modelOf(run)
  const products = model ? productJobs(model, sought) : []
  if (products.length === 0)
    throw new UsageError(
      'peaks --types: the log contains no products of weights on the CPU\nhint: record with --level op, a prompt and some tokens',
    )
  return { products, attention: attentionJobs(model!, sought).filter(areTypesKnown), memoryOf: memoryOf(run) }
}

const areTypesKnown = ({ k_type, v_type }: AttentionJob) => [k_type, v_type].every(typeNamed)

/** The products that {@link measureKernels} kept on this host of this version of ggml; undefined: none. Throws UsageError if another user can have put them there. */
export async function keptKernels(env: Environment, build: string): Promise<KernelTimes | undefined> {
  const text = await cachedText(env, keptName(build))
  try {
    return text === undefined ? undefined : parseKernelFile(text)
  } catch {
    return undefined // it is damaged
  }
}

/** The host's name is hashed. */
function keptName(build: string): string {
  const parts = [hostname(), cpuName(), availableParallelism(), build]
  const key = createHash('sha256').update(parts.join('\0')).digest('hex').slice(0, 16)
  return `kernels-${key}.json`
}

/** A line that the program prints. It has the numbers of types of attention. */
type Line =
  | (ProductTime & { readonly nodes?: number | undefined })
  | (Omit<AttentionTime, 'k_type' | 'v_type'> & {
      readonly attention: true
      readonly k_type: number
      readonly v_type: number
    })
  | (NodeTime & { readonly nodes: true })

function merged(
  kept: KernelTimes | undefined,
  { build, lines }: { build: string; lines: readonly Line[] },
): KernelTimes {
  const isNotIn = <T>(fresh: readonly T[], keyOf: (time: T) => string) => {
    const keys = new Set(fresh.map(keyOf))
    return (time: T) => !keys.has(keyOf(time))
  }
  const keyOf = ({ ns: _, second_ns: __, best_ns: ___, ...time }: ProductTime) => JSON.stringify(time)
  const attentionKey = ({ ns: _, second_ns: __, best_ns: ___, ...time }: AttentionTime) => JSON.stringify(time)
  const nodeKey = ({ threads }: NodeTime) => `${threads}`
  const products = ofRounds(
    ofMostNodes(
      lines.flatMap((line) => ('columns' in line ? [line] : [])),
      (line) => keyOf(productOf(line)),
    ).map(productOf),
    keyOf,
  )
  const attention = ofRounds(
    lines.flatMap((line) => ('attention' in line ? [attentionOf(line)] : [])),
    attentionKey,
  )
  const nodes = ofRounds(
    lines.flatMap((line) => ('nodes' in line && line.nodes === true ? [nodeOf(line)] : [])),
    nodeKey,
  )
  const olderProducts = (kept?.products ?? []).filter(isNotIn(products, keyOf))
  const olderAttention = (kept?.attention ?? []).filter(isNotIn(attention, attentionKey))
  return {
    schema: KERNELS_SCHEMA,
    ...{ cpu: cpuName(), cpus: cpus().length, build },
    products: [...olderProducts, ...products].slice(-KEPT_MAX),
    attention: [...olderAttention, ...attention].slice(-KEPT_MAX),
    nodes: [...(kept?.nodes ?? []).filter(isNotIn(nodes, nodeKey)), ...nodes],
  }
}

/**
 * Without rounds whose graphs have less than half of the nodes of another round of the same: where threads began late, a product seems to take long, so that a graph has few matrices, which
 * caches contain. Their times are too short.
 */
export function ofMostNodes<T extends { readonly nodes?: number | undefined }>(
  rounds: readonly T[],
  keyOf: (round: T) => string,
): T[] {
  const most = new Map<string, number>()
  for (const round of rounds) most.set(keyOf(round), Math.max(most.get(keyOf(round)) ?? 0, round.nodes ?? 0))
  return rounds.filter((round) => 2 * (round.nodes ?? 0) >= most.get(keyOf(round))!)
}

/** Each once: the least of the medians of its rounds, the second least, and the least of all. */
function ofRounds<T extends NodeTime>(times: readonly T[], keyOf: (time: T) => string): T[] {
  const byKey = new Map<string, T[]>()
  for (const time of times) byKey.set(keyOf(time), [...(byKey.get(keyOf(time)) ?? []), time])
  return [...byKey.values()].map((same) => {
    const [ns, second] = same.map((time) => time.ns).sort((a, b) => a - b)
    const best_ns = Math.min(...same.map((time) => time.best_ns))
    return { ...same[0]!, ns: ns!, ...(second === undefined ? {} : { second_ns: second }), best_ns }
  })
}

const nodeOf = ({ threads, ns, best_ns }: NodeTime): NodeTime => ({ threads, ns, best_ns })

const productOf = ({
  type,
  columns,
  rows,
  copies,
  experts,
  used,
  buffer,
  tokens,
  threads,
  ns,
  best_ns,
}: ProductTime): ProductTime => ({
  ...{ type, columns, rows, copies },
  ...(experts ? { experts, used } : {}),
  ...{ buffer, tokens, threads, ns, best_ns },
})

const attentionOf = ({
  heads,
  kv_heads,
  head_size,
  value_size,
  k_type,
  v_type,
  copies,
  tokens,
  sequences = 1,
  context,
  cache,
  threads,
  ns,
  best_ns,
}: Extract<Line, { attention: true }>): AttentionTime => ({
  ...{ heads, kv_heads, head_size, value_size },
  ...{ k_type: typeNumbered(k_type)!.name, v_type: typeNumbered(v_type)!.name },
  ...{ copies, tokens },
  ...(sequences > 1 ? { sequences } : {}),
  ...{ context, cache, threads, ns, best_ns },
})

/** As the program numbers it: chosen as by llama.cpp of a file that is read or mapped, or as in the file. */
function numberOfMemory({ name, isMapped }: Memory): number {
  if (name === MAPPED_FILE) return 2
  if (name === AS_IN_FILE) return 1
  return isMapped ? 3 : 0
}

/** Runs the program, and returns what it prints. */
async function measured(program: string, folder: string, jobs: Jobs, env: Environment): Promise<Line[]> {
  const { attention } = jobs
  // Those whose relation is sought, of a shape with one type and with another, one soon after the other.
  const products = jobs.products.toSorted((a, b) => a.columns - b.columns || a.rows - b.rows)
  const counts = [...new Set(products.flatMap(({ runs }) => runs.map(({ threads }) => threads)))]
  const numberOf = (type: string) => typeNamed(type)!.number
  const input = [
    ...counts.map((threads) => `nodes ${threads}`),
    ...products.flatMap(({ type, columns, rows, copies, experts = 0, used = 0, runs }) => [
      `weights ${numberOf(type)} ${typeNamed(type)!.name} ${columns} ${rows} ${copies} ${experts} ${used} ${numberOfMemory(jobs.memoryOf(type, experts > 0))}`,
      ...runs.map(({ tokens, threads }) => `products ${tokens} ${threads}`),
    ]),
    ...attention.flatMap(({ heads, kv_heads, head_size, value_size, k_type, v_type, copies, runs }) => [
      `attention ${heads} ${kv_heads} ${head_size} ${value_size} ${numberOf(k_type)} ${numberOf(v_type)} ${copies}`,
      ...runs.map(
        ({ tokens, sequences = 1, context, cache, threads }) =>
          `attend ${tokens} ${context} ${cache} ${threads} ${sequences}`,
      ),
    ]),
  ]
  const options = { env: { ...env, LD_PRELOAD: undefined }, stdio: 'pipe' } as const
  const { child, ended } = startChild(program, ['--ggml', folder], options)
  let [stdout, stderr] = ['', '']
  child.stdout!.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
  })
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  child.stdin!.on('error', () => undefined) // it has ended: its exit code and stderr say why
  child.stdin!.end(`${input.join('\n')}\n`.repeat(ROUNDS))
  const ending = await ended
  if (ending.code !== 0) {
    const how = describeEnding('the measuring program', ending)
    // What it, or a library, printed before a signal ended it is not the reason.
    if (ending.signal !== null) throw new UsageError(`peaks --types: ${how}`)
    const why = stderr.trim().split('\n').at(-1) || how
    throw new UsageError(`peaks --types: ${why.replace(/^peaks: /, '')}\nhint: --ggml <folder of libggml-base.so>`)
  }
  // Libraries of ggml may print, too.
  const lines = stdout.split('\n').filter((line) => line.startsWith('{'))
  return lines.map((line) => JSON.parse(line) as Line)
}
