import { resized } from '../../bytes/resized.ts'

const SLOTS_MIN = 256

/**
 * Stack distances (Mattson et al., 1970): how many different items were used since an item's last use. A Fenwick tree marks the last
 * use of each item in order of time; its slots are numbered again when they are used up, so that memory grows with items, not uses.
 */
export class StackDistances {
  /** By item: slot of its last use; 0: none. */
  private last = new Int32Array(64)
  /** By slot, from 1: the item that was used then. */
  private items = new Int32Array(SLOTS_MIN + 1)
  private tree = new Int32Array(SLOTS_MIN + 1)
  private slot = 0
  private live = 0

  /** Uses an item (a small integer). Returns its distance: 0 if no other item was used since; -1 if it is its first use. */
  use(item: number): number {
    if (item >= this.last.length) this.last = resized(this.last, Math.max(item + 1, 2 * this.last.length))
    if (this.slot + 1 === this.items.length) this.renumber()
    const before = this.last[item]!
    let distance = -1
    if (before > 0) {
      distance = this.live
      for (let i = before; i > 0; i &= i - 1) distance -= this.tree[i]!
      this.mark(before, -1)
    } else this.live++
    const slot = ++this.slot
    this.items[slot] = item
    this.last[item] = slot
    this.mark(slot, 1)
    return distance
  }

  private mark(slot: number, by: number): void {
    const { tree } = this
    for (let i = slot; i < tree.length; i += i & -i) tree[i]! += by
  }

  /** Drops slots of uses that are not the last one of their item. */
  private renumber(): void {
    const slots = Math.max(SLOTS_MIN, 4 * this.live)
    const items = new Int32Array(slots + 1)
    let end = 0
    for (let slot = 1; slot <= this.slot; slot++) {
      const item = this.items[slot]!
      if (this.last[item] !== slot) continue
      items[++end] = item
      this.last[item] = end
    }
    this.items = items
    this.slot = end
    this.tree = new Int32Array(slots + 1)
    for (let slot = 1; slot <= slots; slot++) {
      if (slot <= end) this.tree[slot]! += 1
      const parent = slot + (slot & -slot)
      if (parent <= slots) this.tree[parent]! += this.tree[slot]!
    }
  }
}
