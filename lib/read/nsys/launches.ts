import { Order, Spans } from './spans.ts'

const PROCESSES = 2 ** 32

/** The GPU work of a report by who launched it: owner and correlation id. */
export class Launches {
  private readonly spans = new Spans()
  private order: Order | undefined

  /** Adds a piece of work. */
  add(owner: number, correlation: number, startNs: number, endNs: number): void {
    this.spans.push(startNs, endNs, owner, correlation)
  }

  /** Places of the work of one launch, from … up to: for {@link start} and {@link end}. Ends the adding. */
  find(owner: number, correlation: number): readonly [number, number] {
    this.order ??= new Order(this.spans.length, (a, b) => this.keyOf(a) - this.keyOf(b))
    const key = owner * PROCESSES + correlation
    const first = this.firstFrom(key)
    let last = first
    while (last < this.spans.length && this.keyOf(this.order.at(last)) === key) last++
    return [first, last]
  }

  start(place: number): number {
    return this.spans.start(this.order!.at(place))
  }

  end(place: number): number {
    return this.spans.end(this.order!.at(place))
  }

  private keyOf(id: number): number {
    return this.spans.a(id) * PROCESSES + this.spans.b(id)
  }

  private firstFrom(key: number): number {
    let [low, high] = [0, this.spans.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.keyOf(this.order!.at(middle)) < key) low = middle + 1
      else high = middle
    }
    return low
  }
}
