import { readFile } from 'node:fs/promises'
import type { ArgumentsCamelCase, InferredOptionTypes } from 'yargs'
import {
  type AnalyzeOptions,
  measurePeaks,
  type PeakFigures,
  parsePeakFile,
  peaksOfMachine,
  UsageError,
} from '../../lib/index.ts'
import { once, valued } from '../options.ts'
import { note, systemReason } from '../terminal.ts'

/** Options about the machine and the model, for rooflines. */
export const MACHINE = {
  'peak-gflops': valued(positive('--peak-gflops'), 'The peak of the machine, in GFLOP/s'),
  'peak-gbs': valued(positive('--peak-gbs'), "The peak bandwidth of the machine's memory, in GB/s"),
  peaks: valued(
    once('--peaks'),
    'The peaks of the machine: `measure` (now, on the machine that recorded), or a file of `peaks --json`',
  ),
  'flops-per-token': valued(
    positive('--flops-per-token'),
    'FLOP of a token, for logs without operators and without a GGUF or config.json',
  ),
  'cache-type': valued(cacheTypes, 'Types of the KV cache: q8_0, or of keys and values: q8_0,f16', 'recorded, or f16'),
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
  gflops: number | undefined,
  gbs: number | undefined,
): Promise<PeakFigures | undefined> {
  const isGiven = gflops !== undefined || gbs !== undefined
  if (peaks !== undefined && isGiven)
    throw new UsageError('--peaks: the peaks are given by --peak-gflops or --peak-gbs too')
  if (peaks === 'measure') {
    const onBuild = (compiler: string) => void note(`building the measuring program with ${compiler}, once`)
    return peaksOfMachine(await measurePeaks({ env: process.env, onBuild }))
  }
  if (peaks !== undefined) return ofFile(peaks)
  if (!isGiven) return undefined
  return {
    device: null,
    flop_per_s: gflops === undefined ? null : gflops * 1e9,
    flop_type: 'any',
    int8_op_per_s: null,
    bytes_per_s: gbs === undefined ? null : gbs * 1e9,
    origin: 'given',
    source: '--peak-gflops and --peak-gbs',
  }
}

async function ofFile(path: string): Promise<PeakFigures> {
  const text = await readFile(path, 'utf8').catch((error) => {
    const reason = systemReason(error)
    if (reason === undefined) throw error
    throw new UsageError(`--peaks ${path}: cannot read: ${reason}`)
  })
  const peaks = parsePeakFile(text)
  if (peaks) return { ...peaks, source: path }
  throw new UsageError(`--peaks ${path}: expected the JSON that \`ggml2perfetto peaks --json\` prints`)
}
