import { NumberList } from '../../bytes/number-list.ts'
import { orderOf } from '../../bytes/order.ts'
import { firstIndex } from '../../bytes/search.ts'
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
  /** Numbers of lanes, by thread and kind. */
  private readonly laneIds = new Map<number, number>()
  private order: Uint32Array | undefined

  get length(): number {
    return this.starts.length
  }

  /** Adds a range, outer before inner; returns its id. Of more than 65 535 threads, the further ones are left out (-1). */
  add(kind: number, tid: number, startNs: number, name: number, endNs: number | undefined): number {
    const key = tid * RANGE_KINDS.length + kind
    let lane = this.laneIds.get(key)
    if (lane === undefined) {
      lane = this.laneIds.size
      if (lane > 0xffff) return -1
      this.laneIds.set(key, lane)
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

  /** Goes through the ranges of one kind of a thread; undefined where it has none. */
  cursor(kind: number, tid: number): RangeCursor | undefined {
    const lane = this.laneIds.get(tid * RANGE_KINDS.length + kind)
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
  private open: Range[] = []
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
    let isChanged = false
    while (this.next && this.next.startNs <= atNs) {
      if (this.next.endNs >= atNs) {
        open.push(this.next)
        isChanged = true
      }
      this.place++
      this.next = this.place < this.end ? this.at(this.place) : undefined
    }
    if (open.some(({ endNs }) => endNs < atNs)) {
      this.open = open.filter(({ endNs }) => endNs >= atNs)
      isChanged = true
    }
    if (!isChanged) return
    this.innermost = this.open.at(-1)?.name ?? 0
    this.outermost = this.open[0]?.name ?? 0
  }
}
