import type { DagNode } from './dag.ts'

/** A figure of nodes that colours them. */
export interface Metric {
  readonly title: string
  readonly unit: 'ns' | 'bytes' | 'share' | ''
  /** What `scale` is where none is chosen: figures that differ by magnitudes are logarithmic. */
  readonly scale: ColorScale
  readonly of: (node: DagNode) => number | null
}

/** How a figure is mapped to colours. */
export type ColorScale = 'linear' | 'log'

const bytesOf = ({ bytes_read, bytes_written }: DagNode) =>
  bytes_read === null ? null : bytes_read + (bytes_written ?? 0)
const over = (value: number | null, by: number | null) => (value === null || by === null || by <= 0 ? null : value / by)

/** Part of the time of workers on other kinds of cores than the fastest; null where cores are of one kind, or not known. */
function slowShare(kinds: DagNode['by_core_kind']): number | null {
  const known = (kinds ?? []).filter(({ kind }) => kind !== '')
  const sum = (rows: typeof known) => rows.reduce((ns, { time_ns }) => ns + time_ns, 0)
  return over(sum(known.filter(({ kind }) => kind !== 'P')), sum(known))
}

/** The figures by name. */
export const METRICS = {
  time: { title: 'time', unit: 'ns', scale: 'log', of: ({ wall_ns }) => wall_ns },
  compute: {
    ...{ title: 'in the operator, all workers', unit: 'ns', scale: 'log' },
    of: ({ operator_time_ns }) => operator_time_ns,
  },
  wait: { title: 'barrier wait, all workers', unit: 'ns', scale: 'log', of: ({ wait_ns }) => wait_ns },
  imbalance: { title: 'imbalance', unit: 'share', scale: 'linear', of: ({ imbalance_share }) => imbalance_share },
  slow_cores: {
    ...{ title: 'part of the time on slower kinds of cores', unit: 'share', scale: 'linear' },
    of: ({ by_core_kind }) => slowShare(by_core_kind),
  },
  gbps: { title: 'GB/s', unit: '', scale: 'linear', of: ({ gb_per_s }) => gb_per_s },
  gflops: { title: 'GFLOP/s', unit: '', scale: 'log', of: ({ flop, wall_ns }) => over(flop, wall_ns) },
  bytes: { title: 'bytes read and written', unit: 'bytes', scale: 'log', of: bytesOf },
  weights: { title: 'weights read', unit: 'bytes', scale: 'log', of: ({ weight_bytes }) => weight_bytes },
  flop: { title: 'FLOP', unit: '', scale: 'log', of: ({ flop }) => flop },
  intensity: { title: 'FLOP/byte', unit: '', scale: 'log', of: (node) => over(node.flop, bytesOf(node)) },
  size: { title: 'size of the result', unit: 'bytes', scale: 'log', of: ({ size_bytes }) => size_bytes },
  experts: { title: 'experts', unit: '', scale: 'linear', of: ({ experts }) => experts },
  order: { title: 'order', unit: '', scale: 'linear', of: ({ order }) => order },
} as const satisfies Readonly<Record<string, Metric>>

/** Name of a figure. */
export type MetricName = keyof typeof METRICS

const DECIMAL: readonly (readonly [number, string])[] = [
  [1e12, 'T'],
  [1e9, 'G'],
  [1e6, 'M'],
]
const TIMES: readonly (readonly [number, string])[] = [
  [1e9, ' s'],
  [1e6, ' ms'],
  [1e3, ' µs'],
  [0, ' ns'],
]
const SIZES: readonly (readonly [number, string])[] = [
  [2 ** 30, ' GiB'],
  [2 ** 20, ' MiB'],
  [2 ** 10, ' KiB'],
  [0, ' bytes'],
]

/** A value with its unit, to three digits. */
export function valueText(value: number, unit: Metric['unit']): string {
  if (unit === 'share') return `${(100 * value).toFixed(1)} %`
  const steps = unit === 'ns' ? TIMES : unit === 'bytes' ? SIZES : DECIMAL
  const [by, suffix] = steps.find(([from]) => Math.abs(value) >= from) ?? [1, '']
  return `${Number((value / (by || 1)).toPrecision(3))}${suffix}`
}
