import type { CounterEvent, IssueEvent, RangeEvent } from '../model/events.ts'
import { ISSUES } from '../model/issues.ts'
import type { Label } from '../sink/label.ts'
import type { ArgMaker } from './labels.ts'
import { LazyGroup, type TrackTree } from './tracks.ts'

/** Issues are all counted, but only so many are drawn: a broken log must not make a huge trace. */
const ISSUES_SHOWN_MAX = 1000

/** The Counters group: one row per named series. */
export class Counters {
  private readonly group: LazyGroup
  private readonly tracks = new Map<number, number>()

  constructor(
    private readonly tree: TrackTree,
    root: number,
    private readonly make: ArgMaker,
  ) {
    this.group = new LazyGroup(tree, root, {
      name: 'Counters',
      description: 'Numeric series as recorded.',
      rank: 6 * 16,
    })
  }

  place({ name, unit, atNs, value }: CounterEvent): void {
    let track = this.tracks.get(name)
    if (track === undefined) {
      const text = this.make.names.text(name)
      track = this.group.add({
        name: text,
        description: `${text}, as recorded.`,
        rank: this.tracks.size,
        kind: 'counter',
        unit,
      })
      this.tracks.set(name, track)
    }
    this.tree.writer.counter(track, atNs, value)
  }
}

/** The Ranges group: one row per thread, ranges nested as they were opened. */
export class Ranges {
  private readonly group: LazyGroup
  private readonly threads = new Map<number, { readonly track: number; depth: number; lastNs: number }>()

  constructor(
    private readonly tree: TrackTree,
    root: number,
  ) {
    this.group = new LazyGroup(tree, root, {
      name: 'Ranges',
      description: 'Named ranges of each thread.',
      rank: 7 * 16,
    })
  }

  /** Writes a begin or an end; false for an end of nothing. */
  place({ edge, tid, name, atNs, flows }: RangeEvent): boolean {
    let thread = this.threads.get(tid)
    if (!thread) {
      const description = `Named ranges of thread ${tid}.`
      const track = this.group.add({ name: `thread ${tid}`, description, rank: this.threads.size })
      thread = { track, depth: 0, lastNs: atNs }
      this.threads.set(tid, thread)
    }
    if (edge === 'end' && thread.depth === 0) return false
    thread.lastNs = Math.max(thread.lastNs, atNs)
    thread.depth += edge === 'begin' ? 1 : -1
    if (edge === 'begin') this.tree.writer.begin(thread.track, atNs, { name, category: 'range', flows })
    else this.tree.writer.end(thread.track, atNs)
    return true
  }

  /** Ends what is still open, at the last time of its thread. */
  finish(): void {
    for (const thread of this.threads.values()) {
      for (; thread.depth > 0; thread.depth--) this.tree.writer.end(thread.track, thread.lastNs)
    }
  }
}

/** The Issues row: what was wrong with the input, where it happened; 1 ns apart where at once, or they would nest. */
export class Issues {
  private track = 0
  private count = 0
  private readonly times = new Set<number>()

  constructor(
    private readonly tree: TrackTree,
    private readonly root: number,
    private readonly make: ArgMaker,
  ) {}

  place({ code, title, detail, at, atNs }: IssueEvent): void {
    const shown = ++this.count
    if (shown > ISSUES_SHOWN_MAX + 1) return
    if (this.track === 0) {
      const description = `Losses and bad records, at the place in time where they happened (the first ${ISSUES_SHOWN_MAX}).`
      this.track = this.tree.add(this.root, { name: 'Issues', description, rank: 9 * 16 })
    }
    let drawnNs = atNs
    while (this.times.has(drawnNs)) drawnNs++
    this.times.add(drawnNs)
    const { make } = this
    const where = [make.int('byte', at.byte), ...(at.line === undefined ? [] : [make.int('line', at.line)])]
    if (code !== undefined) where.push(make.word('code', code), make.word('hint', ISSUES[code].hint))
    const label: Label =
      shown > ISSUES_SHOWN_MAX
        ? { name: 'further issues are not shown', category: 'issue' }
        : { name: make.names.id(title), category: 'issue', extra: [make.text('detail', detail), ...where] }
    this.tree.writer.instant(this.track, drawnNs, label)
  }
}
