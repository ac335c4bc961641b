import type { Arg } from '../model/args.ts'
import type { Resources } from '../model/resources.ts'
import type { ArgMaker } from './labels.ts'

/** What the kernel counted during a slice, but for zeros. */
export function resourceArgs(resources: Resources | undefined, make: ArgMaker): Arg[] {
  if (!resources) return []
  const { minorFaults, majorFaults, bytesRead, cpuNs, waitingNs } = resources
  const values = [
    ['minor_faults', minorFaults],
    ['major_faults', majorFaults],
    ['disk_bytes', bytesRead],
  ] as const
  return [
    ...values.flatMap(([key, value]) => (value > 0 ? [make.int(key, value)] : [])),
    ...(cpuNs > 0 ? make.time('cpu', cpuNs, 'cpu_time') : []),
    ...(waitingNs > 0 ? make.time('runnable', waitingNs) : []),
  ]
}
