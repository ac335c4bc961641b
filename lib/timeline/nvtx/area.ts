import { getOrMake } from '../../model/default-map.ts'
import type { RangeEvent } from '../../model/events.ts'
import type { NvtxGpuEvent } from '../../model/gpu-events.ts'
import { issueOf } from '../../model/issues.ts'
import type { NvtxEvent, NvtxNameEvent } from '../../model/nvtx-events.ts'
import type { TrackContext } from '../context.ts'
import { type NestedRows, OpenSlices } from '../nested.ts'
import { Domains } from './domains.ts'

/** Draws the ranges and marks of a program, from NVTX or from its log. */
export class NvtxArea {
  private readonly ranges: Ranges
  private readonly domains: Domains
  private readonly onGpu: NvtxOnGpu

  constructor(context: TrackContext) {
    this.ranges = new Ranges(context)
    this.domains = new Domains(context)
    this.onGpu = new NvtxOnGpu(context)
  }

  take(event: RangeEvent | NvtxEvent | NvtxNameEvent | NvtxGpuEvent): void {
    switch (event.kind) {
      case 'range':
        return this.ranges.place(event)
      case 'nvtx':
        return this.domains.place(event)
      case 'nvtx-name':
        return this.domains.name(event)
      case 'nvtx-gpu':
        return this.onGpu.place(event)
    }
  }

  finish(): void {
    this.ranges.finish()
    this.domains.finish()
    this.onGpu.finish()
  }
}

/** NVTX ranges projected onto GPU work, by thread and domain. */
class NvtxOnGpu {
  private readonly rows = new Map<string, NestedRows>()

  constructor(private readonly context: TrackContext) {}

  place(event: NvtxGpuEvent): void {
    const { name, startNs, endNs, launched, busyNs, domain } = event
    const { make } = this.context
    const extra = [make.int('gpu_work', launched), ...make.time('busy', busyNs)]
    if (domain !== 0) extra.push(make.name('domain', domain))
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

/** The Ranges group: one row per thread, ranges nested as they were opened. */
class Ranges {
  private readonly threads = new Map<number, { readonly open: OpenSlices; lastNs: number }>()

  constructor(private readonly context: TrackContext) {}

  place({ edge, tid, name, atNs, flows }: RangeEvent): void {
    const { tracks, writer, report } = this.context
    const thread = getOrMake(this.threads, tid, () => {
      const nth = this.threads.size
      return { open: new OpenSlices(writer, () => tracks.add('threadRanges', { tid, nth })), lastNs: atNs }
    })
    if (edge === 'end' && thread.open.depth === 0) {
      const detail = `a range of thread ${tid} ends that never began`
      return report(issueOf('end-without-start', detail, { byte: 0 }, atNs, ['nvtx']))
    }
    thread.lastNs = Math.max(thread.lastNs, atNs)
    if (edge === 'begin') thread.open.begin(atNs, { name, category: 'range', flows })
    else thread.open.end(atNs)
  }

  /** Ends all open ranges at the last time of their thread. */
  finish(): void {
    for (const { open, lastNs } of this.threads.values()) while (open.depth > 0) open.end(lastNs)
  }
}
