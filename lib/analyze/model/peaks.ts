import type { PeakFigures, ThreadPeaks } from './figures.ts'

/** A rate in the result of `ggml2perfetto peaks --json`. Files of earlier versions have only those of one thread and of all. */
export interface MeasuredRate {
  readonly one?: number
  readonly all: number
  readonly byThreads?: readonly { readonly threads: number; readonly rate: number }[]
}

/** The result of `peaks`. */
export interface MeasuredPeaks {
  readonly cpu: string
  readonly threads?: number
  readonly readBytes: MeasuredRate
  readonly fp32Flops: MeasuredRate
  readonly int8Ops: MeasuredRate
}

/** Peaks that {@link measurePeaks} measured, for {@link analyze}. They apply to logs of the same CPU only. */
export function peaksOfMachine({ cpu, threads, readBytes, fp32Flops, int8Ops }: MeasuredPeaks): PeakFigures {
  const counts = [readBytes, fp32Flops, int8Ops].map((rate) => ratesOf(rate, threads))
  const [bytes, flop, int8] = counts as [Rates, Rates, Rates]
  return {
    device: cpu,
    flop_per_s: fp32Flops.all,
    flop_type: 'f32',
    int8_op_per_s: int8Ops.all,
    bytes_per_s: readBytes.all,
    origin: 'measured',
    source: 'ggml2perfetto peaks',
    by_threads: [...bytes.keys()].flatMap((threads) => {
      const rates = { flop_per_s: flop.get(threads), int8_op_per_s: int8.get(threads), bytes_per_s: bytes.get(threads) }
      return Object.values(rates).some((rate) => rate === undefined) ? [] : [{ threads, ...rates } as ThreadPeaks]
    }),
  }
}

/** By number of threads, in order. */
type Rates = ReadonlyMap<number, number>

function ratesOf({ one, all, byThreads }: MeasuredRate, threads: number | undefined): Rates {
  const rates = byThreads?.map(({ threads, rate }) => [threads, rate] as const) ?? [
    ...(one === undefined ? [] : [[1, one] as const]),
    ...(threads === undefined ? [] : [[threads, all] as const]),
  ]
  return new Map(rates.toSorted(([a], [b]) => a - b))
}

/** The content of a file of `ggml2perfetto peaks --json`; undefined if it is none. */
export function parsePeakFile(text: string): PeakFigures | undefined {
  try {
    const { cpu, threads, readBytes, fp32Flops, int8Ops } = JSON.parse(text) as Partial<MeasuredPeaks>
    const isRate = (peak: { readonly all: number } | undefined) => Number.isFinite(peak?.all) && peak!.all > 0
    const isWhole = typeof cpu === 'string' && [readBytes, fp32Flops, int8Ops].every(isRate)
    return isWhole
      ? peaksOfMachine({ cpu, threads: threads!, readBytes: readBytes!, fp32Flops: fp32Flops!, int8Ops: int8Ops! })
      : undefined
  } catch {
    return undefined // not JSON, or not an object
  }
}
