import { DefaultMap } from '../../model/default-map.ts'
import type { TraceEvent } from '../../model/events.ts'
import type { KernelFigure, KernelProfileEvent } from '../../model/kernel-profiles.ts'
import type { Names } from '../../model/names.ts'
import type { EventPass } from '../../model/pass.ts'
import type { PeakFigures, Roofline } from '../model/figures.ts'
import { type Measured, rooflineOf } from '../model/rooflines.ts'
import type { KernelProfileRow, KernelProfiles } from './figures.ts'

/** Rows of the table. */
const ROWS_MAX = 100
const SHARES = [
  ...['sm_share', 'memory_share', 'dram_share', 'l2_hit_share', 'l1_hit_share', 'occupancy_share', 'tensor_share'],
] as const satisfies readonly KernelFigure[]

/** Kernels of a name in the logs that were found in the profile. */
interface Found {
  logName: number
  count: number
  timeNs: number
}

/** Sums up the kernels of all logs by what was profiled of them. */
export class ProfilePass implements EventPass<KernelProfiles | null> {
  /** By name in the profile. */
  private readonly found = new DefaultMap<number, Found>(() => ({ logName: 0, count: 0, timeNs: 0 }))
  private readonly join = { kernels: 0, same_launch: 0, same_shape: 0, time_ns: 0, joined_time_ns: 0 }

  constructor(
    private readonly names: Names,
    private readonly profiles: readonly KernelProfileEvent[],
  ) {}

  take(batch: readonly TraceEvent[]): void {
    if (this.profiles.length === 0) return
    const { join } = this
    for (const event of batch) {
      if (event.kind !== 'gpu' || event.what !== 'kernel') continue
      const ns = event.endNs - event.startNs
      join.kernels++
      join.time_ns += ns
      const { profile } = event
      if (!profile) continue
      join[profile.match === 'launch' ? 'same_launch' : 'same_shape']++
      join.joined_time_ns += ns
      const found = this.found.of(profile.of.name)
      found.logName ||= event.name
      found.count++
      found.timeNs += ns
    }
  }

  /** Null where nothing was profiled. */
  finish(): KernelProfiles | null {
    const { profiles, join } = this
    if (profiles.length === 0) return null
    const byName = new DefaultMap<number, KernelProfileEvent[]>(() => [])
    for (const profile of profiles) byName.of(profile.name).push(profile)
    const rows = [...byName]
      .map(([name, events]) => this.rowOf(name, events))
      .sort((a, b) => b.gpu_time_ns - a.gpu_time_ns || (b.profile_time_ns ?? 0) - (a.profile_time_ns ?? 0))
    return {
      launches: profiles.length,
      joined: join.kernels > 0 ? join : null,
      kernels: rows.slice(0, ROWS_MAX),
      other_kernels: Math.max(0, rows.length - ROWS_MAX),
    }
  }

  private rowOf(name: number, events: readonly KernelProfileEvent[]): KernelProfileRow {
    const found = this.found.get(name)
    const shares = Object.fromEntries(SHARES.map((figure) => [figure, meanOf(events, figure)]))
    return {
      name: this.names.text(name),
      log_name: found ? this.names.text(found.logName) : null,
      launches: events.length,
      profile_time_ns: sumOf(events, 'duration_ns'),
      joined: found?.count ?? 0,
      gpu_time_ns: found?.timeNs ?? 0,
      ...(shares as Record<(typeof SHARES)[number], number | null>),
      dram_bytes: sumOf(events, 'dram_bytes'),
      flop: sumOf(events, 'flop'),
    }
  }
}

/** Null where one of the launches lacks it. */
function sumOf(events: readonly KernelProfileEvent[], figure: KernelFigure): number | null {
  let sum = 0
  for (const { figures } of events) {
    const value = figures[figure]
    if (value === undefined) return null
    sum += value
  }
  return sum
}

/** Weighted by durations; null where no launch has it. */
function meanOf(events: readonly KernelProfileEvent[], figure: KernelFigure): number | null {
  let [sum, weights] = [0, 0]
  for (const { figures } of events) {
    const value = figures[figure]
    if (value === undefined) continue
    const weight = figures.duration_ns ?? 1
    sum += value * weight
    weights += weight
  }
  return weights > 0 ? sum / weights : null
}

const NOTE = 'measured by Nsight Compute: each kernel alone, at the clocks of the profile'

/** Rooflines of kernels whose operations and duration were measured. `peaks`: of the GPU, by default those in the profile. */
export function kernelRooflines(
  profiles: readonly KernelProfileEvent[],
  names: Names,
  peaks: PeakFigures | undefined,
): Roofline[] {
  const byName = new DefaultMap<number, KernelProfileEvent[]>(() => [])
  for (const profile of profiles) byName.of(profile.name).push(profile)
  return [...byName]
    .flatMap(([name, events]): Roofline[] => {
      const [timeNs, flop, bytes] = [sumOf(events, 'duration_ns'), sumOf(events, 'flop'), sumOf(events, 'dram_bytes')]
      if (timeNs === null || timeNs === 0 || flop === null) return []
      const measured: Measured = {
        ...{ scope: 'kernel', what: names.text(name), phase: null, count: events.length, timeNs, flop },
        ...{ bytes: bytes ?? -1, note: NOTE },
      }
      // The profile's peak is that of 32-bit numbers: with tensor cores another one applies.
      const ofProfile = (meanOf(events, 'tensor_share') ?? 0) > 0 ? null : meanOf(events, 'peak_flop_per_s')
      const roof = {
        flopPerS: peaks?.flop_per_s ?? ofProfile,
        bytesPerS: peaks?.bytes_per_s ?? meanOf(events, 'peak_bytes_per_s'),
      }
      return [rooflineOf(measured, roof)]
    })
    .sort((a, b) => b.time_ns - a.time_ns)
    .slice(0, ROWS_MAX)
}
