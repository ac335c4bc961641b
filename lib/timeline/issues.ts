import type { IssueEvent } from '../model/events.ts'
import { ISSUES } from '../model/issues.ts'
import type { Label } from '../sink/label.ts'
import type { TrackContext } from './context.ts'

/** Issues that are drawn; the summary counts all. A broken log must not make the trace huge. */
const SHOWN_MAX = 1000

/** The Issues row. Issues of the same time are drawn 1 ns apart, otherwise they nest. */
export class Issues {
  private track = 0
  private count = 0
  /** Number of issues that are drawn. */
  draws = 0
  /** By the time of an issue: the first time from there on that may be free. */
  private readonly nextNs = new Map<number, number>()

  constructor(private readonly context: Pick<TrackContext, 'tracks' | 'make' | 'writer'>) {}

  place({ code, title, detail, at, atNs }: IssueEvent): void {
    const { tracks, make, writer } = this.context
    const shown = ++this.count
    if (shown > SHOWN_MAX + 1) return
    if (this.track === 0) this.track = tracks.add('issues', { shownMax: SHOWN_MAX })
    const drawnNs = this.free(atNs)
    const where = [make.int('byte', at.byte), ...(at.line === undefined ? [] : [make.int('line', at.line)])]
    if (code !== undefined) where.push(make.word('code', code), make.word('hint', ISSUES[code].hint))
    const label: Label =
      shown > SHOWN_MAX
        ? { name: 'further issues are not shown', category: 'issue' }
        : { name: make.names.id(title), category: 'issue', extra: [make.text('detail', detail), ...where] }
    writer.instant(this.track, drawnNs, label)
    this.draws++
  }

  /** Takes the first free time from `atNs` on. The steps to it become one, however many issues are of one time. */
  private free(atNs: number): number {
    const { nextNs } = this
    let freeNs = atNs
    for (let next = nextNs.get(freeNs); next !== undefined; next = nextNs.get(freeNs)) freeNs = next
    for (let ns = atNs; ns < freeNs; ) {
      const next = nextNs.get(ns)!
      nextNs.set(ns, freeNs)
      ns = next
    }
    nextNs.set(freeNs, freeNs + 1)
    return freeNs
  }
}
