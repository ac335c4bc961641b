import type { Analysis, KernelJoin, KernelProfileRow, KernelProfiles, QueryResult } from '../../lib/cli.ts'
import { count, duration, percent, plural } from '../units.ts'
import { known, number, type Section, some, tableOf, text } from './section.ts'

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
  const table = tableOf(kernels, { max: top, further: other_kernels }, [
    text('kernel', ({ name }) => (name.length > NAME_MAX ? `${name.slice(0, NAME_MAX - 1)}…` : name)),
    number('profiled', ({ launches }) => count(launches)),
    number('mean', ({ profile_time_ns, launches }) => known(profile_time_ns, (ns) => duration(ns / launches))),
    number('time in the logs', ({ gpu_time_ns }) => some(gpu_time_ns)),
    ...COLUMNS.map(([title, key], i) =>
      number<KernelProfileRow>(title, (row) => known(row[key], percent), i < 4 ? 0 : i - 3),
    ),
  ])
  return { title: 'kernels by Nsight Compute', facts, tables: [table] }
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
