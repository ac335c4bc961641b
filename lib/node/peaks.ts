import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { availableParallelism, cpus, arch as hostArch, hostname, platform as hostPlatform } from 'node:os'
import { join } from 'node:path'
import { UsageError } from '../errors.ts'
import { cacheFolder, type NativeTarget, nativeFile, nativeHash, placeFile } from './native.ts'
import { systemName } from './record/diagnosis.ts'
import type { Environment } from './record/program.ts'

/** The most that was measured of one thing, a second. */
export interface Peak {
  /** What it was measured with, such as `AVX-512 VNNI`: the widest that this processor has. */
  readonly instructionSet: string
  /** By one thread. */
  readonly one: number
  /** By a thread on each CPU at once. */
  readonly all: number
}

/** What a machine can do at most. */
export interface Peaks {
  /** The processor, as it calls itself. */
  readonly cpu: string
  /** CPUs that this process may use, and threads that `all` was measured with. */
  readonly threads: number
  /** Bytes a second read from memory, in order. */
  readonly readBytes: Peak
  /** Floating-point operations a second, of 32 bits: a multiply-add is two. */
  readonly fp32Flops: Peak
  /** Operations a second of dot products of 8-bit integers, summed up in 32 bits: a multiply-add is two. */
  readonly int8Ops: Peak
  /** When it was measured, as ISO 8601 has it. */
  readonly measuredAt: string
  /** Was it measured earlier, and kept? */
  readonly cached: boolean
}

/** How to come by the peaks. */
export interface PeaksOptions {
  /** The environment, such as `process.env`: it says where the cache is, and which compiler to use. */
  readonly env: Environment
  /** Measures even if there are peaks in the cache. */
  readonly fresh?: boolean | undefined
  /** Told when the measuring program is built first, which takes a second. */
  readonly onBuild?: ((compiler: string) => void) | undefined
  /** This system's if left out, as `process.platform` and `process.arch` have them. */
  readonly platform?: string | undefined
  readonly arch?: string | undefined
}

const PROGRAM: NativeTarget = {
  name: 'peaks',
  title: 'the measuring program',
  isSource: (path) => path.startsWith('peaks/'),
  flags: ['-std=gnu11', '-O2', '-pthread'],
  libraries: [],
  works: (path, env) => run(path, ['--help'], env).then(...TRUE_OR_FALSE),
  isUsableAt: () => true,
}
const TRUE_OR_FALSE = [() => true, () => false] as const

/** The longest that measuring can take: some seconds, and more where memory is slow to come by. */
const RUN_MS_MAX = 120_000

/**
 * What this machine can do at most: reading memory, FP32 and INT8 arithmetic. Measured in some two seconds, during which
 * nothing else should compute, and kept in the cache (`$XDG_CACHE_HOME/ggml2perfetto` or `~/.cache/ggml2perfetto`) for
 * this host, processor and number of usable CPUs. Linux only so far. Throws UsageError where it cannot be measured.
 */
export async function measurePeaks(options: PeaksOptions): Promise<Peaks> {
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
  // What cannot be kept (a full disk, no home) is measured again another time.
  await placeFile(path, (to) => writeFile(to, text)).catch(() => undefined)
  return { ...peaks, cached: false }
}

/** The same for the same host and program. The host's name is in it, but cannot be read from it. */
function hostKey(cpu: string, program: string): string {
  const parts = [hostname(), cpu, availableParallelism(), program]
  return createHash('sha256').update(parts.join('\0')).digest('hex').slice(0, 16)
}

function run(program: string, args: readonly string[], env: Environment): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { env: { ...env, LD_PRELOAD: undefined }, timeout: RUN_MS_MAX }
    execFile(program, args, options, (error, stdout, stderr) => {
      if (error) reject(Object.assign(error, { said: stderr.trim() }))
      else resolve(stdout)
    })
  })
}

function explainRun(error: Error & { readonly said: string }): never {
  throw new UsageError(error.said || `peaks: cannot measure: ${error.message}`)
}

/** The peaks in a file of the cache; undefined for what is none. */
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
    return undefined // no JSON, or no object
  }
}

const isPositive = (value: unknown): value is number => Number.isFinite(value) && (value as number) > 0

function isPeak(value: unknown): value is Peak {
  const { instructionSet, one, all } = (value ?? {}) as Partial<Peak>
  return typeof instructionSet === 'string' && isPositive(one) && isPositive(all)
}
