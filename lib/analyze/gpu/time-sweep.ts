import { WorkClass } from './classes.ts'
import type { GpuGaps, GpuTime } from './figures.ts'
import type { HostTimes } from './host-activity.ts'

/**
 * GapSums below this are between two kernels: HTA's default of `consecutive_kernel_delay`, 30 (hta/trace_analysis.py, get_idle_time_breakdown). Its
 * documentation says nanoseconds; the times that it is compared with are microseconds.
 */
const KERNEL_WAIT_NS = 30_000

/** GapSums by cause; see {@link GpuGaps}. */
export class GapSums {
  private readonly counts = new Float64Array(3)
  private readonly timesNs = new Float64Array(3)

  /** A gap before work that was launched at `launchNs` (NaN: not known). `host`: sums of what the program did while the GPU waited for it. */
  add(fromNs: number, untilNs: number, launchNs: number, host?: HostTimes): void {
    const cause = launchNs > fromNs ? 0 : untilNs - fromNs < KERNEL_WAIT_NS ? 1 : 2
    if (cause === 0) host?.add(fromNs, launchNs, untilNs)
    this.counts[cause]!++
    this.timesNs[cause]! += untilNs - fromNs
  }

  figures(): GpuGaps {
    const sum = (cause: number) => ({ count: this.counts[cause]!, time_ns: this.timesNs[cause]! })
    return { host_wait: sum(0), kernel_wait: sum(1), other: sum(2) }
  }
}

/**
 * Divides the time of a GPU, from work in order of its starts: between two starts, what is active is what began before and has not
 * ended. See {@link GpuTime}. The definitions are TraceLens' (TraceLens/TreePerf/gpu_event_analyser.py, compute_metrics_dict) and HTA's
 * (hta/analyzers/breakdown_analysis.py, get_temporal_breakdown).
 */
export class TimeSweep {
  work = 0
  readonly gaps = new GapSums()
  private firstNs = NaN
  private atNs = -Infinity
  /** The latest end, by {@link WorkClass}. */
  private readonly ends = new Float64Array(5).fill(-Infinity)
  private computationNs = 0
  private communicationNs = 0
  private copyNs = 0
  private exposedCommunicationNs = 0
  private exposedCopyNs = 0
  private migrationNs = 0
  private exposedMigrationNs = 0
  /** The latest end, by {@link TransferSum.index}. */
  private readonly transferEnds: number[] = []
  /** Time in which copies run and no kernel does, by {@link TransferSum.index}. */
  readonly exposedTransfersNs: number[] = []
  private idleNs = 0
  private readonly tracelens = { computationNs: 0, exposedCommunicationNs: 0, exposedCopyNs: 0, copyNs: 0 }

  /** `host`: sums of what the program did while the GPU waited for it. */
  constructor(readonly host?: HostTimes) {}

  /** Adds work that begins no earlier than that before. `launchNs` is NaN where it is not known. `transfer`: -1 for kernels. */
  take(startNs: number, endNs: number, kind: number, launchNs: number, transfer = -1): void {
    if (this.work++ === 0) this.firstNs = this.atNs = startNs
    if (startNs > this.atNs) this.until(startNs, launchNs)
    if (endNs > this.ends[kind]!) this.ends[kind] = endNs
    if (transfer >= 0) this.transferEnds[transfer] = Math.max(this.transferEnds[transfer] ?? endNs, endNs)
  }

  figures(): GpuTime {
    const lastNs = Math.max(this.atNs, ...this.ends)
    if (lastNs > this.atNs) this.until(lastNs, NaN)
    const totalNs = this.work === 0 ? 0 : lastNs - this.firstNs
    const { computationNs, communicationNs, exposedCommunicationNs, idleNs, tracelens } = this
    const overlapNs = communicationNs - exposedCommunicationNs
    return {
      total_ns: totalNs,
      computation_ns: computationNs,
      exposed_communication_ns: exposedCommunicationNs,
      exposed_copy_ns: this.exposedCopyNs,
      idle_ns: idleNs,
      busy_ns: totalNs - idleNs,
      communication_ns: communicationNs,
      copy_ns: this.copyNs,
      migration_ns: this.migrationNs,
      exposed_migration_ns: this.exposedMigrationNs,
      communication_overlap_share: communicationNs > 0 ? overlapNs / communicationNs : null,
      tracelens: {
        computation_ns: tracelens.computationNs,
        exposed_communication_ns: tracelens.exposedCommunicationNs,
        exposed_copy_ns: tracelens.exposedCopyNs,
        copy_ns: tracelens.copyNs,
      },
    }
  }

  /** Accounts for the time up to the next start. */
  private until(nextNs: number, launchNs: number): void {
    const { atNs, ends, tracelens } = this
    const computing = within(atNs, ends[WorkClass.Computation]!, nextNs)
    const communicating = within(atNs, ends[WorkClass.Communication]!, nextNs)
    const copying = within(atNs, ends[WorkClass.Copy]!, nextNs)
    const filling = within(atNs, ends[WorkClass.Fill]!, nextNs)
    const migrating = within(atNs, ends[WorkClass.Migration]!, nextNs)
    const moving = Math.max(copying, filling, migrating)
    const working = Math.max(computing, communicating)
    const busy = Math.max(working, moving)
    this.computationNs += computing - atNs
    this.communicationNs += communicating - atNs
    this.copyNs += moving - atNs
    this.exposedCommunicationNs += working - computing
    this.exposedCopyNs += busy - working
    if (busy > working) this.expose(working, nextNs)
    this.migrationNs += migrating - atNs
    this.exposedMigrationNs += busy - Math.max(working, copying, filling)
    this.idleNs += nextNs - busy
    if (nextNs > busy) this.gaps.add(busy, nextNs, launchNs, this.host)
    const kernels = Math.max(computing, filling)
    tracelens.computationNs += kernels - atNs
    tracelens.exposedCommunicationNs += Math.max(kernels, communicating) - kernels
    tracelens.exposedCopyNs += busy - Math.max(kernels, communicating)
    tracelens.copyNs += Math.max(copying, migrating) - atNs
    this.atNs = nextNs
  }

  /** Accounts for copies that last longer than kernels, up to the next start. */
  private expose(workingNs: number, nextNs: number): void {
    this.transferEnds.forEach((endNs, transfer) => {
      const exposedNs = Math.min(endNs, nextNs) - workingNs
      if (exposedNs > 0) this.exposedTransfersNs[transfer] = (this.exposedTransfersNs[transfer] ?? 0) + exposedNs
    })
  }
}

const within = (fromNs: number, ns: number, untilNs: number) => Math.min(untilNs, Math.max(fromNs, ns))
