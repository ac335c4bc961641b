import { growColumns, resized } from '../../bytes/resized.ts'

/** A cache: a heap of its items, the one to replace first. */
interface Cache {
  readonly capacity: number
  count: number
  heap: Int32Array
  /** By item: its place in the heap; -1: it is not in the cache. */
  places: Int32Array
}

/**
 * Caches of several capacities that replace the item with the fewest uses so far (uses while it was not in the cache count too), of several
 * ones that whose last use is longest ago.
 */
export class LfuCaches {
  uses = new Float64Array(64)
  /** By item: number of its last use among all uses. */
  latest = new Float64Array(64)
  private now = 0
  private readonly caches: readonly Cache[]

  /** `capacities`: items that each cache contains. */
  constructor(capacities: readonly number[]) {
    this.caches = capacities.map((capacity) => ({
      capacity,
      count: 0,
      heap: new Int32Array(64),
      places: new Int32Array(64).fill(-1),
    }))
  }

  /** Uses an item (a small integer), and counts the caches that contain it: adds 1 to their `hits`. */
  use(item: number, hits: Float64Array): void {
    if (item >= this.uses.length) this.grow(item)
    this.uses[item]! += 1
    this.latest[item] = ++this.now
    for (let i = 0; i < this.caches.length; i++) {
      const cache = this.caches[i]!
      const place = cache.places[item]!
      if (place >= 0) {
        hits[i]! += 1
        this.sink(cache, place)
      } else this.insert(cache, item)
    }
  }

  private insert(cache: Cache, item: number): void {
    const { capacity, count, places } = cache
    if (capacity === 0) return
    if (count === capacity) {
      places[cache.heap[0]!] = -1
      put(cache, 0, item)
      return this.sink(cache, 0)
    }
    if (count === cache.heap.length) cache.heap = resized(cache.heap, 2 * count)
    const { heap } = cache
    cache.count++
    let place = count
    while (place > 0) {
      const parent = (place - 1) >> 1
      if (!this.isBefore(item, heap[parent]!)) break
      put(cache, place, heap[parent]!)
      place = parent
    }
    put(cache, place, item)
  }

  /** Moves an item, whose uses became more, away from the root. */
  private sink(cache: Cache, from: number): void {
    const { heap, count } = cache
    const item = heap[from]!
    let place = from
    for (;;) {
      let child = 2 * place + 1
      if (child >= count) break
      if (child + 1 < count && this.isBefore(heap[child + 1]!, heap[child]!)) child++
      if (!this.isBefore(heap[child]!, item)) break
      put(cache, place, heap[child]!)
      place = child
    }
    put(cache, place, item)
  }

  /** Is `a` replaced before `b`? */
  private isBefore(a: number, b: number): boolean {
    const difference = this.uses[a]! - this.uses[b]!
    return difference < 0 || (difference === 0 && this.latest[a]! < this.latest[b]!)
  }

  private grow(item: number): void {
    const size = Math.max(item + 1, 2 * this.uses.length)
    const known = this.uses.length
    growColumns(this, ['uses', 'latest'], size)
    for (const cache of this.caches) cache.places = resized(cache.places, size).fill(-1, known)
  }
}

function put({ heap, places }: Cache, place: number, item: number): void {
  heap[place] = item
  places[item] = place
}
