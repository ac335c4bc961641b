import type { RangeEvent } from '../../model/events.ts'
import { issueOf } from '../../model/issues.ts'
import type { TrackContext } from '../context.ts'

/** The Ranges group: one row per thread, ranges nested as they were opened. */
export class Ranges {
  private readonly threads = new Map<number, { readonly track: number; depth: number; lastNs: number }>()

  constructor(private readonly context: TrackContext) {}

  place({ edge, tid, name, atNs, flows }: RangeEvent): void {
    const { tracks, writer, report } = this.context
    let thread = this.threads.get(tid)
    if (!thread) {
      thread = { track: tracks.add('threadRanges', { tid, nth: this.threads.size }), depth: 0, lastNs: atNs }
      this.threads.set(tid, thread)
    }
    if (edge === 'end' && thread.depth === 0) {
      const detail = `a range of thread ${tid} ends that never began`
      return report(issueOf('end-without-start', detail, { byte: 0 }, atNs, ['nvtx']))
    }
    thread.lastNs = Math.max(thread.lastNs, atNs)
    thread.depth += edge === 'begin' ? 1 : -1
    if (edge === 'begin') writer.begin(thread.track, atNs, { name, category: 'range', flows })
    else writer.end(thread.track, atNs)
  }

  /** Ends all open ranges at the last time of their thread. */
  finish(): void {
    for (const thread of this.threads.values()) {
      for (; thread.depth > 0; thread.depth--) this.context.writer.end(thread.track, thread.lastNs)
    }
  }
}
