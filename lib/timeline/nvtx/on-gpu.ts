import { getOrMake } from '../../model/default-map.ts'
import type { NvtxGpuEvent } from '../../model/gpu-events.ts'
import type { TrackContext } from '../context.ts'
import type { NestedRows } from '../nested.ts'

/** NVTX ranges projected onto GPU work, by thread and domain. */
export class NvtxOnGpu {
  private readonly rows = new Map<string, NestedRows>()

  constructor(private readonly context: TrackContext) {}

  place(event: NvtxGpuEvent): void {
    const { name, startNs, endNs, launched, busyNs, domain } = event
    const { make } = this.context
    const extra = [make.int('gpu_work', launched), make.int('busy_ns', busyNs)]
    if (domain !== 0) extra.push(make.arg('domain', { name: domain }))
    this.rowsOf(event).place(startNs, endNs, { name, category: 'nvtx_gpu', extra: make.shown(extra) })
  }

  /** Ends all open slices. */
  finish(): void {
    for (const rows of this.rows.values()) rows.finish()
  }

  private rowsOf({ tid, thread, domain }: NvtxGpuEvent): NestedRows {
    const key = `${tid} ${domain}`
    return getOrMake(this.rows, key, () => {
      const { tracks, names } = this.context
      return tracks.nested('nvtxThreadOnGpu', {
        thread: names.text(thread),
        tid,
        domain: domain === 0 ? undefined : names.text(domain),
        nth: this.rows.size,
      })
    })
  }
}
