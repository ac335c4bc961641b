import type { PeakFigures } from './figures.ts'

/** The result of `ggml2perfetto peaks --json`; of each rate, that of all CPUs at once counts. */
interface MeasuredPeaks {
  readonly cpu: string
  readonly readBytes: { readonly all: number }
  readonly fp32Flops: { readonly all: number; readonly instructionSet?: string }
  readonly int8Ops: { readonly all: number }
}

/** Peaks that {@link measurePeaks} measured, for {@link analyze}. They apply to logs of the same CPU only. */
export function peaksOfMachine({ cpu, readBytes, fp32Flops, int8Ops }: MeasuredPeaks): PeakFigures {
  return {
    device: cpu,
    flop_per_s: fp32Flops.all,
    flop_type: 'f32',
    int8_op_per_s: int8Ops.all,
    bytes_per_s: readBytes.all,
    origin: 'measured',
    source: 'ggml2perfetto peaks',
  }
}

/** The content of a file of `ggml2perfetto peaks --json`; undefined if it is none. */
export function parsePeakFile(text: string): PeakFigures | undefined {
  try {
    const { cpu, readBytes, fp32Flops, int8Ops } = JSON.parse(text) as Partial<MeasuredPeaks>
    const isRate = (peak: { readonly all: number } | undefined) => Number.isFinite(peak?.all) && peak!.all > 0
    const isWhole = typeof cpu === 'string' && [readBytes, fp32Flops, int8Ops].every(isRate)
    return isWhole
      ? peaksOfMachine({ cpu, readBytes: readBytes!, fp32Flops: fp32Flops!, int8Ops: int8Ops! })
      : undefined
  } catch {
    return undefined // not JSON, or not an object
  }
}
