import type { Analysis, KernelJoin, KernelProfileRow, KernelProfiles, QueryResult } from '../../lib/cli.ts'
import { count, duration, percent, plural } from '../units.ts'
import { firstRows, type Section } from './section.ts'

/** Characters of a kernel's name. */
const NAME_MAX = 56

const COLUMNS = [
  ['SM', 'sm_share'],
  ['memory', 'memory_share'],
  ['DRAM', 'dram_share'],
  ['L2 hits', 'l2_hit_share'],
  ['tensor cores', 'tensor_share'],
  ['occupancy', 'occupancy_share'],
  ['L1 hits', 'l1_hit_share'],
] as const satisfies readonly (readonly [string, keyof KernelProfileRow])[]

/** Kernels that Nsight Compute measured; undefined where there are none. */
export function kernelsSection({ kernel_profiles }: Analysis, top: number): Section | undefined {
  if (!kernel_profiles) return undefined
  const { launches, joined, kernels, other_kernels } = kernel_profiles
  const facts: [string, string][] = [['profiled', plural(launches, 'kernel')]]
  if (joined) facts.push(['in the logs', joinText(joined)])
  const { shown, rest } = firstRows(kernels, top)
  const rows = shown.map((row) => [
    row.name.length > NAME_MAX ? `${row.name.slice(0, NAME_MAX - 1)}…` : row.name,
    count(row.launches),
    row.profile_time_ns === null ? '' : duration(row.profile_time_ns / row.launches),
    row.gpu_time_ns === 0 ? '' : duration(row.gpu_time_ns),
    ...COLUMNS.map(([, key]) => (row[key] === null ? '' : percent(row[key]))),
  ])
  if (rest.length + other_kernels > 0)
    rows.push([`${count(rest.length + other_kernels)} more`, ...Array<string>(10).fill('')])
  const columns = [
    { title: 'kernel', isText: true },
    { title: 'profiled' },
    { title: 'mean' },
    { title: 'time in the logs' },
    ...COLUMNS.map(([title], i) => ({ title, rank: i < 4 ? 0 : i - 3 })),
  ]
  return { title: 'kernels by Nsight Compute', facts, tables: [{ columns, rows }] }
}

function joinText({ kernels, same_launch, same_shape, time_ns, joined_time_ns }: KernelJoin): string {
  const share = time_ns > 0 ? `, ${percent(joined_time_ns / time_ns)} of their time` : ''
  return `${count(same_launch)} of ${plural(kernels, 'kernel')}, and ${count(same_shape)} like a profiled one${share}`
}

/** Kernels with all their figures. */
export function profilesCsv({ kernels }: KernelProfiles, top: number): QueryResult {
  const columns = [
    ...(['name', 'log_name', 'launches', 'profile_time_ns', 'joined', 'gpu_time_ns'] as const),
    ...COLUMNS.map(([, key]) => key),
    ...(['dram_bytes', 'flop'] as const),
  ]
  return { columns, rows: kernels.slice(0, top).map((row) => columns.map((key) => row[key])) }
}
