import { firstIndex } from '../../bytes/search.ts'
import { DefaultMap } from '../../model/default-map.ts'

/** Between one and two times as many runs are remembered. */
const RUNS_MAX = 1 << 17
/** First id of runs that reuse a key; keys are smaller. */
const IDS_START = 2 ** 43

/** The end of an arrow, which belongs to a slice of its thread, or to the slice whose field it is. */
export interface ArrowEnd {
  readonly atNs: number
  /** Offset in the file. */
  readonly byte: number
  /** Category, name and id as a number: see `flows.ts`. */
  readonly key: number
  readonly what: 'start' | 'step' | 'end'
  /** The run that a `start` begins. */
  readonly run: Run | undefined
  /** It belongs to the enclosing slice; else to the next one. */
  readonly isAround: boolean
  /** The only row of its slice; by default any row of its thread. */
  readonly track: number | undefined
  /** Correlation id of an arrow from a launch to GPU work; -1 for all others. */
  readonly launch: number
  /** Ids of an `end`, once they are known. */
  ids: readonly number[] | undefined
  /** It was assigned to a slice, or dropped. */
  isPlaced: boolean
}

/** Steps and ends of one key in order of time; placed ones are removed from time to time. */
interface Expected {
  arrows: ArrowEnd[]
  placed: number
}

/** A slice at which arrows may begin and end. */
export interface ArrowSlice {
  flows: number[] | undefined
  flowEnds: number[] | undefined
}

/** A start and its steps and ends. Programs reuse an id for one run after the other. */
export interface Run {
  readonly atNs: number
  readonly byte: number
  readonly id: number
  hasEnded: boolean
  hasSteps: boolean
  /** Its start was assigned to a slice, or dropped. */
  isPlaced: boolean
  /** Ids of further ends, as an id joins one pair, or one chain of steps. */
  readonly further: number[]
}

/** Groups ends of arrows into runs: a start, and the steps and ends with its key up to the next start of that key, in order of time. */
export class Runs {
  /** Number of further ends that are not drawn, as the slice of their start was passed on already. */
  lost = 0
  /** Number of ends that were joined by key only, as their start is not remembered. */
  byKeyOnly = 0
  /** Ids of ends whose start may be at a call, which is drawn later; by the call's correlation id. */
  readonly launched = new DefaultMap<number, number[]>(() => [])
  /** Some starts were forgotten. */
  private hasForgotten = false
  /** Steps and ends without a slice so far, by key. */
  private readonly expected = new Map<number, Expected>()
  private recent = new Map<number, Run[]>()
  private former = new Map<number, Run[]>()
  private recentCount = 0
  private nextId = IDS_START

  /** Begins a run. The first run of a key has the key as its id, as have ends whose start is not known. */
  start(key: number, atNs: number, byte: number): Run {
    const isFirst = !this.recent.has(key) && !this.former.has(key)
    const id = isFirst ? key : this.nextId++
    const run: Run = { atNs, byte, id, hasEnded: false, hasSteps: false, isPlaced: false, further: [] }
    if (++this.recentCount > RUNS_MAX) this.forget()
    const runs = this.recent.get(key)
    if (!runs) {
      this.recent.set(key, [run])
      return run
    }
    insert(runs, run)
    return run
  }

  /** Adds a step or an end, which its start may need. */
  expect(arrow: ArrowEnd): void {
    const expected = this.expected.get(arrow.key)
    if (!expected) this.expected.set(arrow.key, { arrows: [arrow], placed: 0 })
    else insert(expected.arrows, arrow)
  }

  /** Assigns an end of an arrow to a slice. */
  place(slice: ArrowSlice, arrow: ArrowEnd): void {
    const { run, key, what } = arrow
    if (run) {
      this.settle(run, key)
      slice.flows = [...(slice.flows ?? []), run.id, ...run.further]
      return
    }
    this.drop(arrow)
    const known = this.runOf(arrow)
    if (!known && this.hasForgotten) this.byKeyOnly++
    if (what === 'step') {
      if (known) known.hasSteps = true
      slice.flows = [...(slice.flows ?? []), known?.id ?? key]
      return
    }
    const ids = arrow.ids ?? (known ? this.idsOfEnd(known) : this.idsWithoutRun(arrow))
    slice.flowEnds = [...(slice.flowEnds ?? []), ...ids]
  }

  /** Drops an end of an arrow that has no slice. */
  drop(arrow: ArrowEnd): void {
    const { run, key } = arrow
    if (run) return this.settle(run, key)
    arrow.isPlaced = true
    const expected = this.expected.get(key)
    if (!expected || ++expected.placed * 2 <= expected.arrows.length) return
    expected.arrows = expected.arrows.filter(({ isPlaced }) => !isPlaced)
    expected.placed = 0
    if (expected.arrows.length === 0) this.expected.delete(key)
  }

  /** Closes the start of a run: its ids include those of all steps and ends so far. */
  private settle(run: Run, key: number): void {
    const { arrows } = this.expected.get(key) ?? { arrows: [] }
    const ends: ArrowEnd[] = []
    for (let i = countBefore(arrows, run); i < arrows.length; i++) {
      const arrow = arrows[i]!
      if (this.runOf(arrow) !== run) break
      if (arrow.isPlaced) continue
      if (arrow.what === 'end') ends.push(arrow)
      else run.hasSteps = true
    }
    for (const end of ends) end.ids = this.idsOfEnd(run)
    run.isPlaced = true
  }

  /** The run of a step or an end; undefined while its start is not known. */
  private runOf({ key, atNs, byte }: ArrowEnd): Run | undefined {
    return latest(this.recent.get(key), atNs, byte) ?? latest(this.former.get(key), atNs, byte)
  }

  /** The first end of a run has the run's id; a further one needs a new id, which its start must have, too. */
  private idsOfEnd(run: Run): readonly number[] {
    if (!run.hasEnded) {
      run.hasEnded = true
      return [run.id]
    }
    if (run.isPlaced || run.hasSteps) {
      this.lost++
      return []
    }
    const id = this.nextId++
    run.further.push(id)
    return [id]
  }

  /** Ids of an end whose start may be read later, or be at a call. */
  private idsWithoutRun({ key, launch }: ArrowEnd): readonly number[] {
    if (launch < 0) return [key]
    const id = this.nextId++
    this.launched.of(launch).push(id)
    return [key, id]
  }

  private forget(): void {
    this.hasForgotten ||= this.former.size > 0
    this.former = this.recent
    this.recent = new Map()
    this.recentCount = 1
  }
}

/** The latest run that began before, or else one that begins at the same time and later in the file. */
function latest(runs: readonly Run[] | undefined, atNs: number, byte: number): Run | undefined {
  if (!runs) return undefined
  const count = countBefore(runs, { atNs, byte })
  if (count > 0) return runs[count - 1]
  return runs[0]!.atNs === atNs ? runs[0] : undefined
}

interface Timed {
  readonly atNs: number
  readonly byte: number
}

/** Inserts into a list in order of time and of the file, usually at its end. */
function insert<T extends Timed>(list: T[], item: T): void {
  const place = countBefore(list, item)
  if (place === list.length) list.push(item)
  else list.splice(place, 0, item)
}

/** Number of items of a list that are earlier, or at the same time earlier in the file. */
function countBefore(list: readonly Timed[], { atNs, byte }: Timed): number {
  return firstIndex(0, list.length, (i) => {
    const item = list[i]!
    return item.atNs > atNs || (item.atNs === atNs && item.byte >= byte)
  })
}
