import { NumberList } from '../../bytes/number-list.ts'
import { orderOf } from '../../bytes/order.ts'
import { firstIndex } from '../../bytes/search.ts'

/** Times in which something is so, of which those that overlap or follow each other are one. */
export class Intervals {
  private readonly starts = new NumberList(Float64Array)
  private readonly ends = new NumberList(Float64Array)

  /** Returns whether it is a further one; one that follows or extends the latest becomes part of it. */
  add(startNs: number, endNs: number): boolean {
    const { starts, ends } = this
    const last = starts.length - 1
    if (last >= 0 && startNs >= starts.at(last) && startNs <= ends.at(last)) {
      if (endNs > ends.at(last)) ends.set(last, endNs)
      return false
    }
    starts.push(startNs)
    ends.push(endNs)
    return true
  }

  /** In order and without overlaps. */
  merged(): Intervals {
    const { starts, ends } = this
    const order = orderOf(starts.length, (a, b) => starts.at(a) - starts.at(b))
    if (!order) return this
    const merged = new Intervals()
    for (const id of order) merged.add(starts.at(id), ends.at(id))
    return merged
  }

  /** The length of what is in others, too. */
  within(others: Intervals): number {
    const { starts, ends } = this
    let sumNs = 0
    for (let at = 0; at < starts.length; at++) {
      const [from, until] = [starts.at(at), ends.at(at)]
      sumNs += until - from - others.outside(from, until, [])
    }
    return sumNs
  }

  /** Adds what of a time is in none of the intervals to `rest`; returns its length. */
  outside(fromNs: number, untilNs: number, rest: [number, number][]): number {
    const { starts, ends } = this
    let [atNs, sumNs] = [fromNs, 0]
    const take = (toNs: number) => {
      if (toNs <= atNs) return
      rest.push([atNs, toNs])
      sumNs += toNs - atNs
    }
    for (let at = firstIndex(0, ends.length, (i) => ends.at(i) > fromNs); at < starts.length; at++) {
      if (starts.at(at) >= untilNs) break
      take(starts.at(at))
      atNs = Math.max(atNs, ends.at(at))
    }
    take(untilNs)
    return sumNs
  }
}
