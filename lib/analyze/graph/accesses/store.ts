import { growColumns } from '../../../bytes/resized.ts'
import { firstIndex } from '../../../bytes/search.ts'
import {
  ACCESS_WHATS,
  type AccessEvent,
  type AccessSource,
  DATA_LEVELS,
  type MappingEvent,
  TLB_RESULTS,
} from '../../../model/access-events.ts'

/** Samples that are held, of 40 bytes each; further ones are counted only. */
const HELD_MAX = 1 << 22
/** Mappings that are held. */
const MAPPINGS_MAX = 1 << 16

/** A sample of a data address, its time on the trace's clock. */
export interface AccessSample extends Omit<AccessEvent, 'kind' | 'source'>, AccessSource {}

/** Indexes of values in their lists. */
const WHAT = new Map(ACCESS_WHATS.map((what, i) => [what, i]))
const LEVEL = new Map(DATA_LEVELS.map((level, i) => [level, i]))
const TLB = new Map(TLB_RESULTS.map((result, i) => [result, i]))

/**
 * Samples of data addresses of all inputs, in order of time, and what the processes have mapped. Held from before a log is read until
 * its end: a log defines a tensor when an operator uses it first, long after its memory was first touched.
 */
export class AccessStore {
  /** Samples beyond the limit. */
  leftOut = 0
  count = 0
  readonly mappings: MappingEvent[] = []
  times = new Float64Array(1024)
  addresses = new Float64Array(1024)
  counts = new Float64Array(1024)
  /** pid, tid, cpu, node, event, latency. */
  numbers = new Int32Array(6 * 1024)
  /** what, level, tlb. */
  kinds = new Uint8Array(3 * 1024)
  private order: Int32Array | undefined
  private isSorted = true

  /** Adds a sample of this time on the trace's clock. */
  add(event: AccessEvent, atNs: number): void {
    if (this.count === HELD_MAX) {
      this.leftOut++
      return
    }
    if (this.count === this.times.length) this.grow()
    const at = this.count++
    const { pid, tid, cpu, node, source } = event
    if (at > 0 && this.times[at - 1]! > atNs) this.isSorted = false
    this.times[at] = atNs
    this.addresses[at] = event.address
    this.counts[at] = event.count
    this.numbers.set([pid, tid, cpu, node, event.event, source?.latency ?? -1], 6 * at)
    this.kinds.set([WHAT.get(event.what)!, LEVEL.get(source?.level ?? '')!, TLB.get(source?.tlb ?? '')!], 3 * at)
  }

  /** Adds a mapping that was made at this time; in order of time. */
  map(event: MappingEvent, atNs: number): void {
    if (this.mappings.length < MAPPINGS_MAX) this.mappings.push({ ...event, atNs })
  }

  /** The n-th sample in order of time. */
  sample(n: number): AccessSample {
    const at = this.indexes[n]!
    const [pid, tid, cpu, node, event, latency] = this.numbers.subarray(6 * at, 6 * at + 6)
    const [what, level, tlb] = this.kinds.subarray(3 * at, 3 * at + 3)
    return {
      atNs: this.times[at]!,
      address: this.addresses[at]!,
      what: ACCESS_WHATS[what!]!,
      count: this.counts[at]!,
      pid: pid!,
      tid: tid!,
      cpu: cpu!,
      node: node!,
      event: event!,
      level: DATA_LEVELS[level!]!,
      tlb: TLB_RESULTS[tlb!]!,
      latency: latency!,
    }
  }

  /** Time, address and thread of the n-th sample, without the rest. */
  timeOf(n: number): number {
    return this.times[this.indexes[n]!]!
  }

  /** The address of the n-th sample. */
  addressOf(n: number): number {
    return this.addresses[this.indexes[n]!]!
  }

  /** Thread of the n-th sample. */
  threadOf(n: number): number {
    return this.numbers[6 * this.indexes[n]! + 1]!
  }

  /** Process of the n-th sample. */
  processOf(n: number): number {
    return this.numbers[6 * this.indexes[n]!]!
  }

  private get indexes(): Int32Array {
    if (this.order?.length !== this.count) {
      this.order = Int32Array.from({ length: this.count }, (_, i) => i)
      const { times } = this
      if (!this.isSorted) this.order.sort((a, b) => times[a]! - times[b]! || a - b)
      this.mappings.sort((a, b) => a.atNs - b.atNs)
    }
    return this.order
  }

  private grow(): void {
    growColumns(this, ['times', 'addresses', 'counts'], 2 * this.count)
    growColumns(this, ['numbers'], 6 * 2 * this.count)
    growColumns(this, ['kinds'], 3 * 2 * this.count)
  }
}

/** Mappings of a process at a time. */
export class MappingsOf {
  /** In order of addresses, not overlapping. */
  private readonly regions: { start: number; end: number; readonly of: MappingEvent }[] = []

  /** Maps memory; what was mapped there before ends. */
  add(event: MappingEvent): void {
    const [start, end] = [event.address, event.address + event.bytes]
    if (end <= start) return
    const { regions } = this
    const from = firstIndex(0, regions.length, (i) => regions[i]!.end > start)
    const to = firstIndex(from, regions.length, (i) => regions[i]!.start >= end)
    const replaced = regions.slice(from, to)
    const kept = [
      ...replaced.filter((region) => region.start < start).map((region) => ({ ...region, end: start })),
      { start, end, of: event },
      ...replaced.filter((region) => region.end > end).map((region) => ({ ...region, start: end })),
    ]
    regions.splice(from, to - from, ...kept)
  }

  /** The mapping that contains an address, if any. */
  at(address: number): MappingEvent | undefined {
    const { regions } = this
    const region = regions[firstIndex(0, regions.length, (i) => regions[i]!.end > address)]
    return region && region.start <= address ? region.of : undefined
  }
}
