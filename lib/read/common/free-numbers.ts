import { MinHeap } from '../../bytes/min-heap.ts'

/** Small numbers that are taken and released; the smallest free one is found without a look at the others. */
export class FreeNumbers {
  private readonly taken = new Set<number>()
  /** The free ones below `next`; also some that were taken as `wanted`. */
  private readonly heap = new MinHeap()
  private readonly inHeap = new Set<number>()

  constructor(private next: number) {}

  /** Takes `wanted` if it was released, else the smallest free number. */
  take(wanted = this.next): number {
    const number = wanted < this.next && !this.taken.has(wanted) ? wanted : this.smallest()
    this.taken.add(number)
    return number
  }

  release(number: number): void {
    if (!this.taken.delete(number) || this.inHeap.has(number)) return
    this.inHeap.add(number)
    this.heap.push(number, number)
  }

  private smallest(): number {
    while (this.heap.size > 0) {
      const number = this.heap.pop()
      this.inHeap.delete(number)
      if (!this.taken.has(number)) return number
    }
    return this.next++
  }
}
