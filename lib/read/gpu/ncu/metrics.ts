import type { KernelFigure, KernelFigures } from '../../../model/kernel-profiles.ts'

/** A metric in base units: ns, bytes, Hz, 1. */
export interface Metric {
  readonly value: number
  readonly kind: 'time' | 'bytes' | 'rate' | 'percent' | 'other'
}

const PREFIXES: Readonly<Record<string, number>> = { '': 1, k: 1e3, m: 1e6, g: 1e9, t: 1e12, p: 1e15 }
/** Nanoseconds of the units of time. */
const TIMES: readonly (readonly [RegExp, number])[] = [
  [/^(?:n|ns|nsec|nsecond)$/, 1],
  [/^(?:u|us|µs|usec|usecond)$/, 1e3],
  [/^(?:ms|msec|msecond)$/, 1e6],
  [/^(?:s|sec|second)$/, 1e9],
]

/** What separates decimals: a dot, or on a Windows of many countries a comma. */
export type DecimalSeparator = '.' | ','

/** What separates decimals in the file of a cell; undefined where the cell does not show it (`117.344` is either). */
export function separatorIn(text: string): DecimalSeparator | undefined {
  const plain = text.trim()
  if (/^-?\d{1,3}(?:\.\d{3})*,(?:\d{1,2}|\d{4,})$|^-?\d{1,3}(?:\.\d{3})+,\d+$|^-?\d{1,3}(?:\.\d{3}){2,}$/.test(plain))
    return ','
  return /^-?\d{1,3}(?:,\d{3})*\.(?:\d{1,2}|\d{4,})$|^-?\d{1,3}(?:,\d{3})+\.\d+$|^-?\d{1,3}(?:,\d{3}){2,}$|^-?\d{4,}\./.test(
    plain,
  )
    ? '.'
    : undefined
}

/** A cell and its unit in base units; undefined where the cell contains no number (`n/a`, `nan`). */
export function metricOf(text: string, unit: string, separator: DecimalSeparator = '.'): Metric | undefined {
  const value = numberOf(text, separatorIn(text) ?? separator)
  if (value === undefined) return undefined
  const lower = unit.trim().toLowerCase()
  if (lower === '%' || lower === 'percent') return { value, kind: 'percent' }
  const [amount = '', per] = lower.split('/')
  const time = timeOf(amount)
  if (time !== undefined && per === undefined) return { value: value * time, kind: 'time' }
  const perNs = per === undefined ? undefined : timeOf(per)
  const scale = perNs === undefined ? 1 : 1e9 / perNs
  const [, prefix, base] = /^([kmgtp]?)(byte|hz)$/.exec(amount) ?? []
  if (base === undefined) return { value: value * scale, kind: 'other' }
  const scaled = value * PREFIXES[prefix!]! * scale
  return { value: scaled, kind: base === 'hz' ? 'other' : per === undefined ? 'bytes' : 'rate' }
}

function timeOf(unit: string): number | undefined {
  return TIMES.find(([pattern]) => pattern.test(unit))?.[1]
}

/** Numbers whose thousands are separated, by what separates decimals. */
const GROUPED = { '.': /^-?\d{1,3}(?:,\d{3})+(?:\.\d+)?$/, ',': /^-?\d{1,3}(?:\.\d{3})+(?:,\d+)?$/ } as const

/** `12,319,469.5`, `1.234.567,5`, `1e+06`; undefined where it is no number. */
function numberOf(text: string, separator: DecimalSeparator): number | undefined {
  const [thousands, decimals] = separator === '.' ? [',', '.'] : ['.', ',']
  const plain = text.trim()
  const isGrouped = GROUPED[separator].test(plain)
  const english = (isGrouped ? plain.replaceAll(thousands, '') : plain).replace(decimals, '.')
  return /^-?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d{1,3})?$/i.test(english) ? Number(english) : undefined
}

type Metrics = ReadonlyMap<string, Metric>

/** Metrics of a figure, and labels of the details page, the best first; the kind distinguishes labels of one name. */
const SHARES: readonly (readonly [KernelFigure, ...names: string[]])[] = [
  ['sm_share', 'sm__throughput.avg.pct_of_peak_sustained_elapsed', 'Compute (SM) Throughput', 'SM [%]', 'SOL SM'],
  [
    'memory_share',
    'gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed',
    ...['Memory Throughput %', 'Memory [%]', 'SOL Memory'],
  ],
  [
    'dram_share',
    ...['gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed', 'dram__throughput.avg.pct_of_peak_sustained_elapsed'],
    ...['DRAM Throughput', 'SOL DRAM'],
  ],
  ['l2_hit_share', 'lts__t_sector_hit_rate.pct', 'lts__average_t_sector_hit_rate.pct', 'L2 Hit Rate'],
  ['l1_hit_share', 'l1tex__t_sector_hit_rate.pct', 'L1/TEX Hit Rate'],
  ['occupancy_share', 'sm__warps_active.avg.pct_of_peak_sustained_active', 'Achieved Occupancy'],
]
/** Activity of the pipes of the tensor cores: of all of them, or of one of their types. */
const TENSOR =
  /^sm__(?:pipe_tensor(?:_op_\w+)?_cycles_active|inst_executed_pipe_tensor(?:_op_\w+)?)\.avg\.pct_of_peak_sustained_(?:active|elapsed)$/
/** Operations of tensor cores; those of one sparsity are a part of others. */
const TENSOR_OPS = /^sm__ops_path_tensor_(?!.*sparsity)\w+\.sum$/
/** Instructions of threads; a fused one is two operations. */
const INSTRUCTIONS = ['fadd', 'fmul', 'ffma', 'hadd', 'hmul', 'hfma', 'dadd', 'dmul', 'dfma'] as const

/** The figures of a launch. */
export function figuresOf(metrics: Metrics): KernelFigures {
  const figures: Partial<Record<KernelFigure, number>> = {}
  const set = (figure: KernelFigure, value: number | undefined) => {
    if (value !== undefined && Number.isFinite(value) && value >= 0) figures[figure] = value
  }
  const first = (...names: readonly string[]) =>
    names.map((name) => metrics.get(name)?.value).find((value) => value !== undefined)
  const durationNs = first('gpu__time_duration.sum', 'gpu__time_duration.avg', 'Duration')
  set('duration_ns', durationNs === undefined ? undefined : Math.round(durationNs))
  for (const [figure, ...names] of SHARES) {
    const percent = first(...names)
    set(figure, percent === undefined ? undefined : shareOf(percent))
  }
  const bytes = first('dram__bytes.sum') ?? sumOf(metrics, 'dram__bytes_read.sum', 'dram__bytes_write.sum')
  const perSecond = first('dram__bytes.sum.per_second', 'Memory Throughput /s')
  const byRate = perSecond === undefined || durationNs === undefined ? undefined : (perSecond * durationNs) / 1e9
  set('dram_bytes', bytes ?? (byRate === undefined ? undefined : Math.round(byRate)))
  const tensor = tensorShare(metrics)
  set('tensor_share', tensor)
  set('flop', flopOf(metrics, tensor))
  set(
    'peak_flop_per_s',
    product(2, first(`sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained`), clock(metrics, 'sm')),
  )
  set('peak_bytes_per_s', product(1, first('dram__bytes.sum.peak_sustained'), clock(metrics, 'dram')))
  return figures
}

/** 61.84 % is 0.6184, not the next number. */
const shareOf = (percent: number) => Number((percent / 100).toPrecision(12))

const product = (factor: number, a: number | undefined, b: number | undefined) =>
  a === undefined || b === undefined ? undefined : factor * a * b

const clock = (metrics: Metrics, unit: 'sm' | 'dram') => metrics.get(`${unit}__cycles_elapsed.avg.per_second`)?.value

function sumOf(metrics: Metrics, ...names: readonly string[]): number | undefined {
  const values = names.map((name) => metrics.get(name)?.value)
  return values.some((value) => value === undefined)
    ? undefined
    : values.reduce<number>((sum, value) => sum + value!, 0)
}

/** The most active of the pipes; 0 where no instruction of them was executed. */
function tensorShare(metrics: Metrics): number | undefined {
  let share: number | undefined
  for (const [name, { value }] of metrics) if (TENSOR.test(name)) share = Math.max(share ?? 0, shareOf(value))
  return share ?? (metrics.get('sm__inst_executed_pipe_tensor.sum')?.value === 0 ? 0 : undefined)
}

/** Operations of all pipes; undefined where those of tensor cores are not counted but may have been executed. */
function flopOf(metrics: Metrics, tensor: number | undefined): number | undefined {
  let [flop, isKnown] = [0, false]
  for (const name of INSTRUCTIONS) {
    const count = instructions(metrics, name)
    if (count === undefined) continue
    isKnown = true
    flop += name.endsWith('fma') ? 2 * count : count
  }
  let ofTensor: number | undefined
  for (const [name, { value }] of metrics) if (TENSOR_OPS.test(name)) ofTensor = (ofTensor ?? 0) + value
  if (ofTensor !== undefined) return flop + ofTensor
  return isKnown && tensor === 0 ? flop : undefined
}

/** Of threads whose predicate is on; the sections for rooflines have the count by cycle. */
function instructions(metrics: Metrics, name: string): number | undefined {
  for (const unit of ['smsp', 'sm']) {
    const metric = `${unit}__sass_thread_inst_executed_op_${name}_pred_on.sum`
    const count = metrics.get(metric)?.value
    if (count !== undefined) return count
    const perCycle = metrics.get(`${metric}.per_cycle_elapsed`)?.value
    const cycles =
      metrics.get(`${unit}__cycles_elapsed.avg`)?.value ?? metrics.get(`${unit}__cycles_elapsed.max`)?.value
    if (perCycle !== undefined && cycles !== undefined) return perCycle * cycles
  }
  return undefined
}
