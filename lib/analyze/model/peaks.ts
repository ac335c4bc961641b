import { MEASURED_TYPES } from '../../generated/analysis-schema.ts'
import { checkDocument, type DocumentKind, documentOf, isObject, wrongMeasurement } from '../common/json-check.ts'
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
const RENAMED = new Map([
  ['readBytes', 'read_bytes'],
  ['fp32Flops', 'fp32_flops'],
  ['int8Ops', 'int8_ops'],
  ['byThreads', 'by_threads'],
])

const KIND: DocumentKind = {
  title: 'the JSON that `ggml2perfetto peaks --json` prints',
  types: MEASURED_TYPES,
  fields: MEASURED_TYPES['MeasuredPeaks']!,
  wrongNumber: wrongMeasurement(),
}

/** The content of a file of `ggml2perfetto peaks --json`. Throws UsageError that states where it is none; `name` is that of the file there. */
export function parsePeakFile(text: string, name = 'the file of peaks'): PeakFigures {
  const document = renamed(documentOf(text, name, KIND))
  checkDocument(document, name, KIND)
  return peaksOfMachine(document as MeasuredPeaks)
}

/** The document, and its rates, with the names of this version. */
function renamed(document: unknown): unknown {
  const withNames = (value: unknown): unknown =>
    isObject(value)
      ? Object.fromEntries(Object.entries(value).map(([name, part]) => [RENAMED.get(name) ?? name, part]))
      : value
  const whole = withNames(document)
  return isObject(whole)
    ? Object.fromEntries(Object.entries(whole).map(([name, part]) => [name, withNames(part)]))
    : whole
}
