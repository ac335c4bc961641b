import { createHash } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { availableParallelism, cpus, arch as hostArch, hostname, platform as hostPlatform } from 'node:os'
import { join } from 'node:path'
import { checkNames, UsageError } from '../errors.ts'
import { MEASURE_PEAKS_OPTIONS } from '../generated/option-names.ts'
import { cacheFolder, type FailedRun, type NativeTarget, nativeFile, nativeHash, placeFile, runFile } from './native.ts'
import { systemName } from './record/diagnosis.ts'
import type { Environment } from './record/program.ts'

/** The measured peak rate of one kind of work, per second. */
export interface Peak {
  /** The instruction set used, such as `AVX-512 VNNI`: the widest that this processor has. */
  readonly instructionSet: string
  /** With one thread. */
  readonly one: number
  /** With one thread on each CPU at once. */
  readonly all: number
  /** With 1, 2, 4 … threads, and with `threads`; each on a CPU of its own. */
  readonly byThreads: readonly { readonly threads: number; readonly rate: number }[]
}

/** The peak rates of a machine. */
export interface Peaks {
  /** The processor's name. */
  readonly cpu: string
  /** Number of CPUs that this process may use, and of threads that `all` was measured with. */
  readonly threads: number
  /** Bytes per second read from memory, sequentially. */
  readonly readBytes: Peak
  /** 32-bit floating-point operations per second; a multiply-add is two. */
  readonly fp32Flops: Peak
  /** Operations per second of dot products of 8-bit integers with 32-bit sums; a multiply-add is two. */
  readonly int8Ops: Peak
  /** When it was measured, in ISO 8601. */
  readonly measuredAt: string
  /** Is this an earlier result from the cache? */
  readonly cached: boolean
}

/** Options of {@link measurePeaks}. */
export interface PeaksOptions {
  /** The environment, such as `process.env`: it determines the cache folder and the compiler. */
  readonly env: Environment
  /** Measures even if the cache contains a result. */
  readonly fresh?: boolean | undefined
  /** Called before the measuring program is built, which takes a second. */
  readonly onBuild?: ((compiler: string) => void) | undefined
  /** By default this system's, as in `process.platform` and `process.arch`. */
  readonly platform?: string | undefined
  readonly arch?: string | undefined
}

const PROGRAM: NativeTarget = {
  name: 'peaks',
  title: 'the measuring program',
  isSource: (path) => path.startsWith('peaks/'),
  flags: ['-std=gnu11', '-O2', '-pthread'],
  libraries: [],
  works: async (path, env) => (await run(path, ['--help'], env).catch(() => undefined)) !== undefined,
  isUsableAt: () => true,
}

/** Time limit for measuring: it takes some seconds, and longer if memory is short. */
const RUN_MS_MAX = 120_000

/**
 * Measures the peak rates of this machine: reading memory, FP32 and INT8 arithmetic. Takes about two seconds, during which
 * nothing else should compute. The result is cached (`$XDG_CACHE_HOME/ggml2perfetto` or `~/.cache/ggml2perfetto`) for
 * this host, processor and number of usable CPUs. Linux only so far. Throws UsageError if it cannot be measured.
 */
export async function measurePeaks(options: PeaksOptions): Promise<Peaks> {
  checkNames('measurePeaks', options, MEASURE_PEAKS_OPTIONS)
  const { env, fresh = false, onBuild, platform = hostPlatform(), arch = hostArch() } = options
  if (platform !== 'linux') {
    throw new UsageError(
      `peaks: runs on Linux only so far, this is ${systemName(platform)}\n` +
        'hint: measure on the machine that the model runs on',
    )
  }
  const native = { env, platform, arch, onBuild }
  const cpu = cpus()[0]?.model.trim() || 'unknown'
  const path = join(cacheFolder(env), `peaks-${hostKey(cpu, await nativeHash(PROGRAM, native))}.json`)
  const kept = fresh ? undefined : await readFile(path, 'utf8').then(parsePeaks, () => undefined)
  if (kept !== undefined) return { ...kept, cached: true }
  const program = await nativeFile(PROGRAM, native)
  const measured = JSON.parse(await run(program, [], env).catch(explainRun)) as object
  const text = `${JSON.stringify({ cpu, ...measured, measuredAt: new Date().toISOString() }, null, 2)}\n`
  const peaks = parsePeaks(text)
  if (peaks === undefined) throw new UsageError(`peaks: this makes no sense: ${JSON.stringify(measured)}`)
  // If the result cannot be cached (full disk, no home folder), it is measured again next time.
  await placeFile(path, (to) => writeFile(to, text)).catch(() => undefined)
  return { ...peaks, cached: false }
}

/** A key for the same host and program. The host's name is hashed. */
function hostKey(cpu: string, program: string): string {
  const parts = [hostname(), cpu, availableParallelism(), program]
  return createHash('sha256').update(parts.join('\0')).digest('hex').slice(0, 16)
}

async function run(program: string, args: readonly string[], env: Environment): Promise<string> {
  const options = { env: { ...env, LD_PRELOAD: undefined }, timeout: RUN_MS_MAX }
  return (await runFile(program, args, options)).stdout
}

function explainRun({ stderr = '', message }: FailedRun): never {
  throw new UsageError(stderr.trim() || `peaks: cannot measure: ${message}`)
}

/** The peaks in a cache file; undefined if it is damaged. */
function parsePeaks(text: string): Omit<Peaks, 'cached'> | undefined {
  try {
    const { cpu, threads, readBytes, fp32Flops, int8Ops, measuredAt } = JSON.parse(text) as Partial<Peaks>
    const isWhole =
      typeof cpu === 'string' &&
      isPositive(threads) &&
      isPeak(readBytes) &&
      isPeak(fp32Flops) &&
      isPeak(int8Ops) &&
      typeof measuredAt === 'string' &&
      !Number.isNaN(Date.parse(measuredAt))
    return isWhole ? { cpu, threads, readBytes, fp32Flops, int8Ops, measuredAt } : undefined
  } catch {
    return undefined // not JSON, or not an object
  }
}

const isPositive = (value: unknown): value is number => Number.isFinite(value) && (value as number) > 0

function isPeak(value: unknown): value is Peak {
  const { instructionSet, one, all, byThreads } = (value ?? {}) as Partial<Peak>
  const areRates =
    Array.isArray(byThreads) && byThreads.every((part) => isPositive(part?.threads) && isPositive(part.rate))
  return typeof instructionSet === 'string' && isPositive(one) && isPositive(all) && areRates
}
