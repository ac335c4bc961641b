import { Order, Spans } from '../../common/spans.ts'

/** GPU work of one process, by the correlation id of the call that launched it. */
export class LaunchedWork {
  private readonly spans = new Spans() // `a` is the correlation id
  private order: Order | undefined

  add(correlation: number, startNs: number, endNs: number): void {
    this.spans.push(startNs, endNs, correlation, 0)
  }

  /** Places of the work of one launch, from … up to: for {@link start} and {@link end}. Ends the adding. */
  find(correlation: number): readonly [number, number] {
    const { spans } = this
    this.order ??= new Order(spans.length, (x, y) => spans.a(x) - spans.a(y))
    const first = this.firstFrom(correlation)
    let last = first
    while (last < spans.length && spans.a(this.order.at(last)) === correlation) last++
    return [first, last]
  }

  start(place: number): number {
    return this.spans.start(this.order!.at(place))
  }

  end(place: number): number {
    return this.spans.end(this.order!.at(place))
  }

  private firstFrom(correlation: number): number {
    let [low, high] = [0, this.spans.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.spans.a(this.order!.at(middle)) < correlation) low = middle + 1
      else high = middle
    }
    return low
  }
}

/** The GPU work of a report by who launched it: correlation ids are each process's own. */
export class Launches {
  private readonly byOwner = new Map<number, LaunchedWork>()

  /** The work of a process, by its number. */
  of(owner: number): LaunchedWork {
    let work = this.byOwner.get(owner)
    if (!work) {
      work = new LaunchedWork()
      this.byOwner.set(owner, work)
    }
    return work
  }
}
