import { DefaultMap, getOrMake } from '../../model/default-map.ts'
import type { ExpertsEvent } from '../../model/events.ts'
import type { Defined } from '../graph/defined.ts'
import type { Steps } from '../graph/operators/steps.ts'
import type { WeightRead } from '../graph/work.ts'
import { BINS_MAX, Bins } from './bins.ts'
import type { OffsetMap, OffsetSeries } from './figures.ts'

/** Buffers with a map. */
const MAPS_MAX = 8
/** Choices of one router that wait for their operators. */
const CHOICES_MAX = 4096
/** The smallest bins. */
const TIME_BIN_NS = 1024
const OFFSET_BIN_BYTES = 1024

interface Choice {
  readonly atNs: number
  readonly ids: Set<number>
}

/** The choices of a router, until their operators come. */
class RouterChoices {
  private choices: Choice[] = []

  add({ atNs, ids }: ExpertsEvent): void {
    const last = this.choices.at(-1)
    const choice = last?.atNs === atNs ? last : { atNs, ids: new Set<number>() }
    if (choice !== last && this.choices.push(choice) > CHOICES_MAX) this.choices.shift()
    for (const id of ids) choice.ids.add(id)
  }

  /** The last one up to a time. Times do not go back. */
  until(ns: number): ReadonlySet<number> | undefined {
    const after = this.choices.findIndex(({ atNs }) => atNs > ns)
    const at = (after < 0 ? this.choices.length : after) - 1
    if (at < 0) return undefined
    this.choices.splice(0, at)
    return this.choices[0]!.ids
  }
}

/** Collects which bytes of weights are read when. */
export class Offsets {
  private readonly maps = new Map<number, { bins: Bins; bytes: number }>()
  private readonly further = new Set<number>()
  private readonly routers = new DefaultMap<number, RouterChoices>(() => new RouterChoices())
  /** By first and last node of a step. */
  private readonly reads = new Map<number, readonly WeightRead[]>()

  constructor(private readonly defined: Defined) {}

  experts(event: ExpertsEvent): void {
    this.routers.of(event.tensor).add(event)
  }

  /** Adds the steps of a call. */
  add(steps: Steps): void {
    const { works, isWeight } = this.defined
    for (let step = 0; step < steps.count; step++) {
      const [first, last] = [steps.tensor[step]!, steps.last[step]!]
      const atNs = steps.startNs[step]!
      for (const read of this.readsOf(first, last)) {
        const map = this.mapOf(read.tensor.buffer)
        if (!map) continue
        const { chosen, expertsRead } = works.step(first, last, isWeight)
        const ids = read.isOfExperts ? this.routers.get(chosen)?.until(steps.waitEndNs[step]!) : undefined
        if (ids) map.bytes += addExperts(map.bins, atNs, read, ids, expertsRead)
        else {
          const { offset = 0, sizeBytes } = read.tensor
          map.bins.add(atNs, offset, offset + Math.max(sizeBytes, 1), read.bytes)
          map.bytes += read.bytes
        }
      }
    }
  }

  private readsOf(first: number, last: number): readonly WeightRead[] {
    const key = first * 2 ** 26 + last
    return getOrMake(this.reads, key, () => {
      const { works, isWeight } = this.defined
      const all = works.weights(first, last, isWeight)
      return all.filter(({ tensor, bytes }) => tensor.offset !== undefined && bytes > 0)
    })
  }

  private mapOf(buffer: number): { bins: Bins; bytes: number } | undefined {
    let map = this.maps.get(buffer)
    if (map) return map
    if (buffer < 0) return undefined
    if (this.maps.size >= MAPS_MAX) {
      this.further.add(buffer)
      return undefined
    }
    map = { bins: new Bins(TIME_BIN_NS, OFFSET_BIN_BYTES), bytes: 0 }
    this.maps.set(buffer, map)
    return map
  }

  /** `firstNs`: time of the first event. */
  finish(firstNs: number): OffsetSeries {
    const { buffers, names } = this.defined
    const maps = [...this.maps].map(([id, { bins, bytes }]): OffsetMap => {
      const { name = 0, label, offsetsFrom } = buffers.get(id)!
      const { x, y } = bins
      return {
        ...{ name: names.text(name), label, offsets_from: offsetsFrom, bins_max: BINS_MAX },
        first_offset: y.first * y.width,
        offset_bin_bytes: y.width,
        first_ns: x.first * x.width - firstNs,
        time_bin_ns: x.width,
        bytes,
        cells: [...bins.cells()].map(([time, offset, value]) => [time, offset, Math.round(value)] as const),
      }
    })
    return { maps, further_buffers: this.further.size }
  }
}

/** Adds the chosen experts of a tensor; returns their bytes. */
function addExperts(bins: Bins, atNs: number, read: WeightRead, ids: ReadonlySet<number>, expertsRead: number): number {
  const { offset = 0, ne } = read.tensor
  const each = read.bytes / expertsRead
  let bytes = 0
  for (const id of ids) {
    if (id < 0 || id >= (ne?.[2] ?? 1)) continue
    bins.add(atNs, offset + id * each, offset + (id + 1) * each, each)
    bytes += each
  }
  return bytes
}
