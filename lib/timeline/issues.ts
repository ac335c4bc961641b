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
  private readonly times = new Set<number>()

  constructor(private readonly context: Pick<TrackContext, 'tracks' | 'make' | 'writer'>) {}

  place({ code, title, detail, at, atNs }: IssueEvent): void {
    const { tracks, make, writer } = this.context
    const shown = ++this.count
    if (shown > SHOWN_MAX + 1) return
    if (this.track === 0) this.track = tracks.add('issues', { shownMax: SHOWN_MAX })
    let drawnNs = atNs
    while (this.times.has(drawnNs)) drawnNs++
    this.times.add(drawnNs)
    const where = [make.int('byte', at.byte), ...(at.line === undefined ? [] : [make.int('line', at.line)])]
    if (code !== undefined) where.push(make.word('code', code), make.word('hint', ISSUES[code].hint))
    const label: Label =
      shown > SHOWN_MAX
        ? { name: 'further issues are not shown', category: 'issue' }
        : { name: make.names.id(title), category: 'issue', extra: [make.text('detail', detail), ...where] }
    writer.instant(this.track, drawnNs, label)
    this.draws++
  }
}
