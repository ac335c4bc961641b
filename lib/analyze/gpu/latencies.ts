import { TimesNs } from '../common/sketches.ts'
import type { GpuQueueLength } from './figures.ts'

/**
 * Launches of a stream or a device that wait for their work to begin: HTA's queue length (hta/analyzers/trace_counters.py,
 * _get_queue_length_time_series_for_rank), with a launch of a CUDA graph as one. Its mean over time is the sum of the latencies by the time.
 */
export class LaunchQueue {
  readonly latency = new TimesNs()
  private depth = 0
  private max = 0
  private firstNs = Infinity
  private lastNs = -Infinity

  launched(atNs: number): void {
    this.firstNs = Math.min(this.firstNs, atNs)
    this.max = Math.max(this.max, ++this.depth)
  }

  begun(atNs: number): void {
    this.lastNs = Math.max(this.lastNs, atNs)
    this.depth--
  }

  /** Null without launches. */
  figures(): GpuQueueLength | null {
    if (this.max === 0) return null
    const timeNs = this.lastNs - this.firstNs
    return { mean: timeNs > 0 ? this.latency.sumNs / timeNs : 0, max: this.max }
  }
}
