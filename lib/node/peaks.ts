import { createHash } from 'node:crypto'
import { availableParallelism, cpus, arch as hostArch, hostname, platform as hostPlatform } from 'node:os'
import { parsePeakFile } from '../analyze/model/peaks.ts'
import { checkNames, UsageError } from '../errors.ts'
import { MEASURE_PEAKS_OPTIONS } from '../generated/option-names.ts'
import { cachedText, cacheText } from './cache.ts'
import { describeFailedRun, type FailedRun, runFile } from './children.ts'
import { type NativeTarget, nativeFile, nativeHash } from './native.ts'
import { systemName } from './record/diagnosis.ts'
import type { Environment } from './record/program.ts'

/** The measured peak rate of one kind of work, per second. */
export interface Peak {
  /** The instruction set used, such as `AVX-512 VNNI`: the widest that this processor has. */
  readonly instruction_set: string
  /** With one thread. */
  readonly one: number
  /** With one thread on each CPU at once. */
  readonly all: number
  /** With 1, 2, 4 … threads, and with `threads`; each on a CPU of its own. */
  readonly by_threads: readonly PeakOfThreads[]
}

/** Rates of a number of threads. */
export interface PeakOfThreads {
  readonly threads: number
  /** In the best of its windows. */
  readonly rate: number
  /** In the median one: hardly less, unless the machine had something else to do. */
  readonly median: number
}

/** The peak rates of a machine. The fields are those of the JSON. */
export interface Peaks {
  /** The processor's name. */
  readonly cpu: string
  /** Number of CPUs of the machine. */
  readonly cpus: number
  /** Number of CPUs that this process may use, and of threads that `all` was measured with. */
  readonly threads: number
  /** Bytes per second read from memory, sequentially. */
  readonly read_bytes: Peak
  /** 32-bit floating-point operations per second; a multiply-add is two. */
  readonly fp32_flops: Peak
  /** Operations per second of dot products of 8-bit integers with 32-bit sums; a multiply-add is two. */
  readonly int8_ops: Peak
  /** The part of these CPUs' time that others took meanwhile; null: not known. */
  readonly load_share: number | null
  /** Why these are not the peaks: the machine had something else to do; null: nothing is known against them. Such ones are not kept. */
  readonly disturbed: string | null
  /** When it was measured, in ISO 8601. */
  readonly measured_at: string
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

/** The measuring program: of peaks, and of ggml's products. */
export const PEAKS_PROGRAM: NativeTarget = {
  name: 'peaks',
  title: 'the measuring program',
  isSource: (path) => path.startsWith('peaks/'),
  flags: ['-std=gnu11', '-O2', '-pthread'],
  libraries: ['-ldl'],
  works: async (path, { env }) => (await run(path, ['--help'], env).catch(() => undefined)) !== undefined,
  isUsableAt: () => true,
}

/** Time limit for measuring: it takes some seconds, and longer if memory is short. */
const RUN_MS_MAX = 120_000

/**
 * Measures the peak rates of this machine: reading memory, FP32 and INT8 arithmetic. Takes about two seconds, during which
 * nothing else should compute. The result is kept (`$XDG_CACHE_HOME/ggml2perfetto` or `~/.cache/ggml2perfetto`) for
 * this host, processor and number of usable CPUs, unless it was disturbed. Linux only so far. Throws UsageError if it cannot be measured.
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
  const program = await nativeHash(PEAKS_PROGRAM, native)
  const kept = fresh ? undefined : await readKept(env)
  if (kept?.program === program) return kept.peaks
  const path = await nativeFile(PEAKS_PROGRAM, native)
  const measured = JSON.parse(await run(path, [], env).catch(explainRun)) as object
  const facts = { cpu: cpuName(), cpus: cpus().length, ...measured, measured_at: new Date().toISOString() }
  const peaks = parsePeaks(facts)
  if (peaks === undefined)
    throw new UsageError(
      'peaks: the machine is too busy to be measured: other programs took its CPUs in each of the short times that were measured\n' +
        'hint: stop other programs and repeat it; top shows what runs. In a container, a limit of CPU time has the same effect',
    )
  const disturbed = disturbanceOf(peaks)
  const text = `${JSON.stringify({ ...facts, program }, null, 2)}\n`
  // If the result cannot be kept (full disk, no home folder), it is measured again next time.
  if (disturbed === null) await cacheText(env, keptName(), text).catch(() => undefined)
  return { ...peaks, disturbed, cached: false }
}

/** The peaks that {@link measurePeaks} kept on this host; undefined: none. Throws UsageError if another user can have put them there. */
export async function keptPeaks(env: Environment): Promise<Peaks | undefined> {
  return (await readKept(env))?.peaks
}

/** The processor's name, as logs have it. */
export const cpuName = (): string => cpus()[0]?.model.trim() || 'unknown'

/** Of this host and number of CPUs; the host's name is hashed. */
function keptName(): string {
  const parts = [hostname(), cpuName(), availableParallelism()]
  const key = createHash('sha256').update(parts.join('\0')).digest('hex').slice(0, 16)
  return `peaks-${key}.json`
}

async function readKept(env: Environment): Promise<{ readonly peaks: Peaks; readonly program: unknown } | undefined> {
  const text = await cachedText(env, keptName())
  try {
    if (text === undefined) return undefined
    parsePeakFile(text)
    const facts = JSON.parse(text) as Partial<Peaks & { program: unknown }>
    const peaks = parsePeaks(facts)
    return peaks && { peaks: { ...peaks, disturbed: null, cached: true }, program: facts.program }
  } catch {
    return undefined // there is none, or it is damaged
  }
}

/** Windows under load have gaps: on a quiet machine, the median one is within 5 % of the best. */
const MEDIAN_MIN = 0.8
/** Of the CPUs' time: the kernel and its services take 1 or 2 %. */
const LOAD_MAX = 0.1

/** What shows that the machine had something else to do. */
function disturbanceOf({ load_share, read_bytes, fp32_flops, int8_ops }: Measured): string | null {
  const rates = [read_bytes, fp32_flops, int8_ops].flatMap(({ by_threads }) => by_threads)
  const least = Math.min(...rates.map(({ rate, median }) => median / rate))
  const percent = (share: number) => `${Math.round(100 * share)} %`
  const why = [
    ...(load_share !== null && load_share > LOAD_MAX ? [`others took ${percent(load_share)} of these CPUs`] : []),
    ...(least < MEDIAN_MIN ? [`the median window reached ${percent(least)} of the best`] : []),
  ]
  return why.length > 0 ? why.join(', ') : null
}

async function run(program: string, args: readonly string[], env: Environment): Promise<string> {
  const options = { env: { ...env, LD_PRELOAD: undefined }, timeout: RUN_MS_MAX }
  return (await runFile(program, args, options)).stdout
}

function explainRun(error: FailedRun): never {
  const { stderr = '', signal } = error
  // What it printed before a signal ended it is not the reason.
  const reason = signal ? '' : stderr.trim()
  throw new UsageError(reason || `peaks: cannot measure: ${describeFailedRun('the measuring program', error)}`)
}

type Measured = Omit<Peaks, 'cached' | 'disturbed'>

/** What was measured; undefined if it makes no sense. */
function parsePeaks(facts: Partial<Measured>): Measured | undefined {
  const { cpu, cpus, threads, read_bytes, fp32_flops, int8_ops, load_share, measured_at } = facts
  const isWhole =
    typeof cpu === 'string' &&
    isPositive(cpus) &&
    isPositive(threads) &&
    isPeak(read_bytes) &&
    isPeak(fp32_flops) &&
    isPeak(int8_ops) &&
    (load_share === null || Number.isFinite(load_share)) &&
    typeof measured_at === 'string' &&
    !Number.isNaN(Date.parse(measured_at))
  const share = load_share ?? null
  return isWhole ? { cpu, cpus, threads, read_bytes, fp32_flops, int8_ops, load_share: share, measured_at } : undefined
}

const isPositive = (value: unknown): value is number => Number.isFinite(value) && (value as number) > 0

function isPeak(value: unknown): value is Peak {
  const { instruction_set, one, all, by_threads } = (value ?? {}) as Partial<Peak>
  const areRates =
    Array.isArray(by_threads) &&
    by_threads.every((part) => isPositive(part?.threads) && isPositive(part.rate) && part.median >= 0)
  return typeof instruction_set === 'string' && isPositive(one) && isPositive(all) && areRates
}
