import type { ArgumentsCamelCase, InferredOptionTypes } from 'yargs'
import {
  type AnalyzeOptions,
  isOwnError,
  keptPeaks,
  measurePeaks,
  type PeakFigures,
  parsePeakFile,
  peaksOfMachine,
  UsageError,
} from '../../lib/cli.ts'
import { textOfFile } from '../inputs.ts'
import { io } from '../io.ts'
import { once, seldom, valued } from '../options.ts'
import { note } from '../terminal.ts'

/** Options about the machine and the model, for rooflines. */
export const MACHINE = {
  'peak-gflops': seldom(
    valued(
      byBackend('--peak-gflops'),
      'The peak of the machine, in GFLOP/s; of single backends: Vulkan0=9000, or 500,Vulkan0=9000',
    ),
  ),
  'peak-gbs': seldom(
    valued(byBackend('--peak-gbs'), "The peak bandwidth of the machine's memory, in GB/s; as --peak-gflops"),
  ),
  peaks: valued(
    once('--peaks'),
    'The peaks of the machine: `measure` (now, on the machine that recorded), or a file of `peaks --json`',
    'kept ones',
  ),
  'flops-per-token': seldom(
    valued(
      positive('--flops-per-token'),
      'FLOP of a token, for logs without operators and without a GGUF or config.json',
    ),
  ),
  'cache-type': seldom(
    valued(cacheTypes, 'Types of the KV cache: q8_0, or of keys and values: q8_0,f16', 'recorded, or f16'),
  ),
} as const

/** A number above 0. */
function positive(option: string): (value: string) => number {
  return (value) => {
    const text = once(option)(value)
    const number = Number(text)
    if (text.trim() !== '' && Number.isFinite(number) && number > 0) return number
    throw new UsageError(`${option} "${text}": expected a number above 0`)
  }
}

/** Numbers by backend; that of the machine has no name. */
function byBackend(option: string): (value: string) => ReadonlyMap<string, number> {
  return (value) => {
    const numbers = new Map<string, number>()
    for (const part of once(option)(value).split(',')) {
      const at = part.lastIndexOf('=')
      const backend = part.slice(0, Math.max(at, 0)).trim()
      if (at === 0 || numbers.has(backend)) throw new UsageError(`${option} "${value}": expected each backend once`)
      numbers.set(backend, positive(option)(part.slice(at + 1)))
    }
    return numbers
  }
}

function cacheTypes(value: string): { k: string; v: string } {
  const [k = '', v = k] = once('--cache-type')(value).split(',')
  return { k, v }
}

type MachineArguments = ArgumentsCamelCase<InferredOptionTypes<typeof MACHINE>>

/** What the options say of the machine and the model, as options of the library. */
export async function machineOf(
  args: MachineArguments,
): Promise<Pick<AnalyzeOptions, 'peaks' | 'flopsPerToken' | 'cacheTypes'>> {
  const { peakGflops, peakGbs, flopsPerToken, cacheType } = args
  return { peaks: await peaksOf(args.peaks, peakGflops, peakGbs), flopsPerToken, cacheTypes: cacheType }
}

async function peaksOf(
  peaks: string | undefined,
  gflops: ReadonlyMap<string, number> | undefined,
  gbs: ReadonlyMap<string, number> | undefined,
): Promise<PeakFigures | undefined> {
  const isGiven = gflops?.has('') || gbs?.has('')
  if (peaks !== undefined && isGiven)
    throw new UsageError('--peaks: the peaks are given by --peak-gflops or --peak-gbs too')
  const backends = backendPeaks(gflops, gbs)
  if (peaks === 'measure') {
    const onBuild = (compiler: string) => void note(`building the measuring program with ${compiler}, once`)
    const measured = await measurePeaks({ env: io().env, onBuild })
    if (measured.disturbed !== null) await note(`the peaks were disturbed: ${measured.disturbed}`)
    return { ...peaksOfMachine(measured), backends }
  }
  if (peaks !== undefined) return { ...(await ofFile(peaks)), backends }
  if (!gflops && !gbs) {
    const kept = await unlessRefused(keptPeaks(io().env))
    return kept && { ...peaksOfMachine(kept), is_kept: true }
  }
  return {
    device: null,
    flop_per_s: scaled(gflops, ''),
    flop_type: 'any',
    int8_op_per_s: null,
    bytes_per_s: scaled(gbs, ''),
    origin: 'given',
    source: '--peak-gflops and --peak-gbs',
    backends,
  }
}

/** What a promise resolves to, or undefined with a note that says why it is refused. */
export async function unlessRefused<T>(result: Promise<T>): Promise<T | undefined> {
  try {
    return await result
  } catch (error) {
    if (!isOwnError(error)) throw error
    await note(error.message.split('\n'))
    return undefined
  }
}

const scaled = (numbers: ReadonlyMap<string, number> | undefined, key: string) => {
  const number = numbers?.get(key)
  return number === undefined ? null : number * 1e9
}

function backendPeaks(...[gflops, gbs]: readonly (ReadonlyMap<string, number> | undefined)[]): PeakFigures['backends'] {
  const names = new Set([...(gflops?.keys() ?? []), ...(gbs?.keys() ?? [])].filter((name) => name !== ''))
  const peaks = [...names].map((name) => [name, { flop_per_s: scaled(gflops, name), bytes_per_s: scaled(gbs, name) }])
  return names.size > 0 ? Object.fromEntries(peaks) : undefined
}

async function ofFile(path: string): Promise<PeakFigures> {
  return { ...parsePeakFile(await textOfFile('--peaks', path), `--peaks ${path}`), source: path }
}
