/** Small numbers that are taken and released; the smallest free one is found without a look at the others. */
export class FreeNumbers {
  private readonly taken = new Set<number>()
  /** The free ones below `next`, as a binary heap with the smallest on top; also some that were taken as `wanted`. */
  private readonly heap: number[] = []
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
    this.push(number)
  }

  private smallest(): number {
    while (this.heap.length > 0) {
      const number = this.pop()
      this.inHeap.delete(number)
      if (!this.taken.has(number)) return number
    }
    return this.next++
  }

  private push(number: number): void {
    const { heap } = this
    let at = heap.push(number) - 1
    for (let above = (at - 1) >> 1; at > 0 && heap[above]! > number; above = (at - 1) >> 1) {
      heap[at] = heap[above]!
      at = above
    }
    heap[at] = number
  }

  private pop(): number {
    const { heap } = this
    const [smallest, last] = [heap[0]!, heap.pop()!]
    if (heap.length === 0) return smallest
    let at = 0
    for (;;) {
      let below = 2 * at + 1
      if (below + 1 < heap.length && heap[below + 1]! < heap[below]!) below++
      if (below >= heap.length || heap[below]! >= last) break
      heap[at] = heap[below]!
      at = below
    }
    heap[at] = last
    return smallest
  }
}
