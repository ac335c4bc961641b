import type { GpuFigures, GpuRest } from './figures.ts'
import type { GpuOfInput } from './gpu-statistics.ts'

/** The GPU work of all logs; undefined where none has any. */
export function gpuOf(
  logs: readonly { readonly figures: { readonly gpu: GpuOfInput | undefined } }[],
): GpuOfInput | undefined {
  const found = logs.flatMap(({ figures }) => figures.gpu ?? [])
  const [first, second] = found
  if (!first || !second) return first
  const figures: GpuFigures = {
    devices: found.flatMap(({ figures }) => figures.devices),
    processes: found.flatMap(({ figures }) => figures.processes),
    ranges: found.flatMap(({ figures }) => figures.ranges),
    other_ranges: found.map(({ figures }) => figures.other_ranges).reduce(sumOf),
  }
  return { figures, undetermined: found.flatMap(({ undetermined }) => undetermined) }
}

function sumOf(a: GpuRest | null, b: GpuRest | null): GpuRest | null {
  if (!a || !b) return a ?? b
  return { names: a.names + b.names, count: a.count + b.count, time_ns: a.time_ns + b.time_ns }
}
