const SLOTS_MIN = 1 << 10
/** Maximum load factor. */
const LOAD_MAX = 0.6

/** A hash table of 32-bit integers with a count, the first and the latest time, in about 45 bytes per distinct integer. */
export class Tally {
  private keys = new Uint32Array(SLOTS_MIN)
  private counts = new Uint32Array(SLOTS_MIN)
  private times = new Float64Array(SLOTS_MIN)
  private firsts = new Float64Array(SLOTS_MIN)
  private size = 0

  /** Counts a 32-bit integer, from `fromNs` to `atNs`. */
  add(key: number, atNs: number, fromNs = atNs): void {
    const slot = this.slotOf(key)
    if (this.counts[slot]!++ > 0) {
      if (atNs > this.times[slot]!) this.times[slot] = atNs
      if (fromNs < this.firsts[slot]!) this.firsts[slot] = fromNs
      return
    }
    this.keys[slot] = key
    this.times[slot] = atNs
    this.firsts[slot] = fromNs
    if (++this.size > this.keys.length * LOAD_MAX) this.grow()
  }

  /** Count of a number. */
  of(key: number): number {
    return this.counts[this.slotOf(key)]!
  }

  /** The latest time of a number; -Infinity if it was not counted. */
  latest(key: number): number {
    const slot = this.slotOf(key)
    return this.counts[slot] === 0 ? -Infinity : this.times[slot]!
  }

  /** The first time of a number; Infinity if it was not counted. */
  first(key: number): number {
    const slot = this.slotOf(key)
    return this.counts[slot] === 0 ? Infinity : this.firsts[slot]!
  }

  private slotOf(key: number): number {
    const { keys, counts } = this
    const mask = keys.length - 1
    let slot = (Math.imul(key, 0x9e3779b1) >>> 7) & mask
    while (counts[slot] !== 0 && keys[slot] !== key) slot = (slot + 1) & mask
    return slot
  }

  private grow(): void {
    const { keys, counts, times, firsts } = this
    this.keys = new Uint32Array(keys.length * 2)
    this.counts = new Uint32Array(keys.length * 2)
    this.times = new Float64Array(keys.length * 2)
    this.firsts = new Float64Array(keys.length * 2)
    for (let i = 0; i < keys.length; i++) {
      if (counts[i] === 0) continue
      const slot = this.slotOf(keys[i]!)
      this.keys[slot] = keys[i]!
      this.counts[slot] = counts[i]!
      this.times[slot] = times[i]!
      this.firsts[slot] = firsts[i]!
    }
  }
}
