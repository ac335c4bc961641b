import { NumberList } from '../../bytes/number-list.ts'
import { orderOf } from '../../bytes/order.ts'
import { firstIndex } from '../../bytes/search.ts'
import { DefaultMap } from '../../model/default-map.ts'
import { Durations } from './durations.ts'
import type { GpuLaunchers } from './figures.ts'

/** Kinds of ranges of threads, within which calls are made. */
export const RANGE_KINDS: readonly GpuLaunchers['kind'][] = ['operator', 'module', 'annotation', 'nvtx']

/** The duration of a range that has not ended. */
const OPEN_NS = Number.MAX_SAFE_INTEGER

/** Operators, modules, annotations and NVTX ranges of threads, in 18 bytes each and 4 more while figures are made. */
export class HostRanges {
  private readonly starts = new NumberList(Float64Array)
  private readonly durations = new Durations()
  private readonly names = new NumberList(Uint32Array)
  private readonly lanes = new NumberList(Uint16Array)
  private laneCount = 0
  /** Numbers of lanes, by thread and kind, and by process: several containers may have threads of one number. */
  private readonly laneIds = new DefaultMap<number, Map<number, number>>(() => new Map())
  private order: Uint32Array | undefined

  get length(): number {
    return this.starts.length
  }

  /** Adds a range of a thread, outer before inner; returns its id. `pid`: -1 = not known. Of more than 65 535 threads, the further ones are left out (-1). */
  add(kind: number, { pid, tid }: ThreadIds, startNs: number, name: number, endNs: number | undefined): number {
    const lanes = this.laneIds.of(tid * RANGE_KINDS.length + kind)
    let lane = lanes.get(pid)
    if (lane === undefined) {
      if (this.laneCount > 0xffff) return -1
      lane = this.laneCount++
      lanes.set(pid, lane)
    }
    this.starts.push(startNs)
    this.durations.push(endNs === undefined ? OPEN_NS : Math.max(0, endNs - startNs))
    this.names.push(name)
    this.lanes.push(lane)
    return this.length - 1
  }

  end(id: number, endNs: number): void {
    this.durations.set(id, Math.max(0, endNs - this.starts.at(id)))
  }

  /** Sorts them, before {@link cursor}. */
  sort(): void {
    const { starts, lanes, durations } = this
    this.order = orderOf(
      this.length,
      (a, b) => lanes.at(a) - lanes.at(b) || starts.at(a) - starts.at(b) || durations.at(b) - durations.at(a),
    )
  }

  /** Goes through the ranges of one kind of a thread; undefined where it has none, or where several processes have such threads, but not this one. */
  cursor(kind: number, { pid, tid }: ThreadIds): RangeCursor | undefined {
    const found = this.laneIds.get(tid * RANGE_KINDS.length + kind)
    const lane = found && (found.get(pid) ?? (found.size === 1 ? [...found.values()][0] : found.get(-1)))
    if (lane === undefined) return undefined
    const { order, lanes, length } = this
    const idAt = (place: number) => (order ? order[place]! : place)
    const first = firstIndex(0, length, (place) => lanes.at(idAt(place)) >= lane)
    const end = firstIndex(first, length, (place) => lanes.at(idAt(place)) > lane)
    return new RangeCursor(first, end, (place) => {
      const id = idAt(place)
      const startNs = this.starts.at(id)
      return { startNs, endNs: startNs + this.durations.at(id), name: this.names.at(id) }
    })
  }
}

/** A thread; -1 = the process is not known. */
export interface ThreadIds {
  readonly pid: number
  readonly tid: number
}

interface Range {
  readonly startNs: number
  readonly endNs: number
  readonly name: number
}

/** The ranges around increasing times. */
export class RangeCursor {
  /** Names of the ranges around the time; 0: none. */
  innermost = 0
  outermost = 0
  /** Those that began and that may have ended: the ones at both ends have not. Each range comes in and goes out once. */
  private readonly open: Range[] = []
  private first = 0
  private next: Range | undefined

  constructor(
    private place: number,
    private readonly end: number,
    private readonly at: (place: number) => Range,
  ) {
    this.next = place < end ? at(place) : undefined
  }

  /** Moves to a time, no earlier than the one before: the ranges that begin up to it, and end at it or later. */
  moveTo(atNs: number): void {
    const { open } = this
    while (this.next && this.next.startNs <= atNs) {
      if (this.next.endNs >= atNs) open.push(this.next)
      this.place++
      this.next = this.place < this.end ? this.at(this.place) : undefined
    }
    while (this.first < open.length && open.at(-1)!.endNs < atNs) open.pop()
    while (this.first < open.length && open[this.first]!.endNs < atNs) this.first++
    if (this.first === open.length) this.first = open.length = 0
    this.innermost = open.at(-1)?.name ?? 0
    this.outermost = open[this.first]?.name ?? 0
  }
}
