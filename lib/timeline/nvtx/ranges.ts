import { getOrMake } from '../../model/default-map.ts'
import type { RangeEvent } from '../../model/events.ts'
import { issueOf } from '../../model/issues.ts'
import type { TrackContext } from '../context.ts'
import { OpenSlices } from '../nested.ts'

/** The Ranges group: one row per thread, ranges nested as they were opened. */
export class Ranges {
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
