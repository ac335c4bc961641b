import type { PeakFigures, ThreadPeaks } from './figures.ts'

/** A rate in the result of `ggml2perfetto peaks --json`. Files of earlier versions have only those of one thread and of all. */
export interface MeasuredRate {
  readonly one?: number
  readonly all: number
  readonly by_threads?: readonly { readonly threads: number; readonly rate: number }[]
}

/** The result of `peaks`. */
export interface MeasuredPeaks {
  readonly cpu: string
  /** CPUs of the machine; files of earlier versions do not have it. */
  readonly cpus?: number
  readonly threads?: number
  readonly read_bytes: MeasuredRate
  readonly fp32_flops: MeasuredRate
  readonly int8_ops: MeasuredRate
  readonly disturbed?: string | null
}

/** Peaks that {@link measurePeaks} measured, for {@link analyze}. They apply to logs of the same CPU only. */
export function peaksOfMachine(measured: MeasuredPeaks): PeakFigures {
  const { cpu, cpus, threads, read_bytes, fp32_flops, int8_ops, disturbed } = measured
  const counts = [read_bytes, fp32_flops, int8_ops].map((rate) => ratesOf(rate, threads))
  const [bytes, flop, int8] = counts as [Rates, Rates, Rates]
  return {
    device: cpu,
    cpus: cpus ?? null,
    flop_per_s: fp32_flops.all,
    flop_type: 'f32',
    int8_op_per_s: int8_ops.all,
    bytes_per_s: read_bytes.all,
    origin: 'measured',
    source: `ggml2perfetto peaks${disturbed ? ' (disturbed)' : ''}`,
    by_threads: [...bytes.keys()].flatMap((threads) => {
      const rates = { flop_per_s: flop.get(threads), int8_op_per_s: int8.get(threads), bytes_per_s: bytes.get(threads) }
      return Object.values(rates).some((rate) => rate === undefined) ? [] : [{ threads, ...rates } as ThreadPeaks]
    }),
  }
}

/** By number of threads, in order. */
type Rates = ReadonlyMap<number, number>

function ratesOf({ one, all, by_threads }: MeasuredRate, threads: number | undefined): Rates {
  const rates = by_threads?.map(({ threads, rate }) => [threads, rate] as const) ?? [
    ...(one === undefined ? [] : [[1, one] as const]),
    ...(threads === undefined ? [] : [[threads, all] as const]),
  ]
  return new Map(rates.toSorted(([a], [b]) => a - b))
}

/** Names of earlier versions. */
const RENAMED = {
  readBytes: 'read_bytes',
  fp32Flops: 'fp32_flops',
  int8Ops: 'int8_ops',
  byThreads: 'by_threads',
} as const

/** The content of a file of `ggml2perfetto peaks --json`; undefined if it is none. */
export function parsePeakFile(text: string): PeakFigures | undefined {
  try {
    const renamed = (_: string, value: unknown) => {
      if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
      return Object.fromEntries(
        Object.entries(value).map(([name, part]) => [RENAMED[name as keyof typeof RENAMED] ?? name, part]),
      )
    }
    const measured = JSON.parse(text, renamed) as Partial<MeasuredPeaks>
    const { cpu, read_bytes, fp32_flops, int8_ops } = measured
    const isRate = (peak: { readonly all: number } | undefined) => Number.isFinite(peak?.all) && peak!.all > 0
    const isWhole = typeof cpu === 'string' && [read_bytes, fp32_flops, int8_ops].every(isRate)
    return isWhole ? peaksOfMachine(measured as MeasuredPeaks) : undefined
  } catch {
    return undefined // not JSON, or not an object
  }
}
