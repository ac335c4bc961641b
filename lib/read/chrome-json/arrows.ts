/** Runs that are remembered are between one and two times as many. */
const RUNS_MAX = 1 << 17
/** Ids of runs that reuse a key; keys are below. */
const IDS_START = 2 ** 43

/** The end of an arrow, which belongs to a slice of its thread, or to the slice that has it among its own fields. */
export interface ArrowEnd {
  readonly atNs: number
  /** Offset in the file. */
  readonly byte: number
  /** Category, name and id as a number: see `flow-ids.ts`. */
  readonly key: number
  readonly what: 'start' | 'step' | 'end'
  /** The run that a `start` begins. */
  readonly run: Run | undefined
  /** It belongs to the slice around it; else to the next one. */
  readonly isAround: boolean
  /** The only row that it may belong to; by default any row of its thread. */
  readonly track: number | undefined
  /** Of arrows from launches to work of a GPU: the correlation id; -1 for all others. */
  readonly launch: number
  /** Of an `end`: the ids that it has, once they are known. */
  ids: readonly number[] | undefined
  /** It has been given to a slice, or to none. */
  isPlaced: boolean
}

/** Steps and ends of one key in order of time; what has been placed is taken out now and then. */
interface Expected {
  arrows: ArrowEnd[]
  placed: number
}

/** A slice that arrows may begin and end at. */
export interface ArrowBearer {
  flows: number[] | undefined
  flowEnds: number[] | undefined
}

/** What begins with a start: programs use the same id for one run after the other. */
export interface Run {
  readonly atNs: number
  readonly byte: number
  readonly id: number
  hasEnded: boolean
  hasSteps: boolean
  /** Its start has been given to a slice, or to none. */
  isPlaced: boolean
  /** Ids of further ends: an id joins one pair, or one chain of steps. */
  readonly further: number[]
}

/** Which ends of arrows belong together: a start, and what has its key until the next start of that key, in order of time. */
export class Runs {
  /** Ends that are not drawn since their start had several, and its slice had been passed on. */
  lost = 0
  /** Ends that were joined by their keys alone, since their start was no longer remembered, if there was one. */
  byKeyOnly = 0
  /** Ids of ends whose start may be at a call, which is drawn later: by the call's correlation id. */
  readonly launched = new Map<number, number[]>()
  /** More starts have come than are remembered. */
  private hasForgotten = false
  /** Steps and ends that have not been given to slices, by key. */
  private readonly expected = new Map<number, Expected>()
  private recent = new Map<number, Run[]>()
  private former = new Map<number, Run[]>()
  private recentCount = 0
  private nextId = IDS_START

  /** Begins a run. The first run of a key has the key as its id, so that its ends need not know of it. */
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

  /** Announces a step or an end: its start may have to know of it. */
  expect(arrow: ArrowEnd): void {
    const expected = this.expected.get(arrow.key)
    if (!expected) this.expected.set(arrow.key, { arrows: [arrow], placed: 0 })
    else insert(expected.arrows, arrow)
  }

  /** Gives an end of an arrow to a slice. */
  place(bearer: ArrowBearer, arrow: ArrowEnd): void {
    const { run, key, what } = arrow
    if (run) {
      this.settle(run, key)
      bearer.flows = [...(bearer.flows ?? []), run.id, ...run.further]
      return
    }
    this.drop(arrow)
    const known = this.runOf(arrow)
    if (!known && this.hasForgotten) this.byKeyOnly++
    if (what === 'step') {
      if (known) known.hasSteps = true
      bearer.flows = [...(bearer.flows ?? []), known?.id ?? key]
      return
    }
    const ids = arrow.ids ?? (known ? this.idsOfEnd(known) : this.idsWithoutRun(arrow))
    bearer.flowEnds = [...(bearer.flowEnds ?? []), ...ids]
  }

  /** There is no slice for an end of an arrow. */
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

  /** The start of a run is given away: what steps and ends have come belong to it now. */
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

  /** The run that a step or an end belongs to; undefined where its start is not known, or not yet. */
  private runOf({ key, atNs, byte }: ArrowEnd): Run | undefined {
    return latest(this.recent.get(key), atNs, byte) ?? latest(this.former.get(key), atNs, byte)
  }

  /** The first end of a run has the run's id; a further one needs an id of its own, which its start must have, too. */
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

  /** The start of an end may be read later, or be at a call. */
  private idsWithoutRun({ key, launch }: ArrowEnd): readonly number[] {
    if (launch < 0) return [key]
    const id = this.nextId++
    const ids = this.launched.get(launch)
    if (ids) ids.push(id)
    else this.launched.set(launch, [id])
    return [key, id]
  }

  private forget(): void {
    this.hasForgotten ||= this.former.size > 0
    this.former = this.recent
    this.recent = new Map()
    this.recentCount = 1
  }
}

/** The latest run that began before, or else one that begins at the same time and is behind in the file. */
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

/** Adds to a list in order of time and of the file: mostly at its end. */
function insert<T extends Timed>(list: T[], item: T): void {
  const place = countBefore(list, item)
  if (place === list.length) list.push(item)
  else list.splice(place, 0, item)
}

/** How many of a list are before in time, or at the same time before in the file. */
function countBefore(list: readonly Timed[], { atNs, byte }: Timed): number {
  let [low, high] = [0, list.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    const item = list[middle]!
    if (item.atNs < atNs || (item.atNs === atNs && item.byte < byte)) low = middle + 1
    else high = middle
  }
  return low
}
