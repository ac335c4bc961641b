import { NumberList } from '../../bytes/number-list.ts'
import { orderOf } from '../../bytes/order.ts'
import { firstIndex } from '../../bytes/search.ts'
import { NONE } from './work.ts'

/** Launches of one process: calls with GPU work, in 12 bytes each. Those of a thread come in order. */
export class Launches {
  private readonly starts = new NumberList(Float64Array)
  /** The correlation id; then whatever belongs to a launch while figures are made. */
  readonly values = new NumberList(Uint32Array)
  /** Threads of the launches, each from a place on. */
  readonly runs: { readonly from: number; readonly tid: number }[] = []

  get length(): number {
    return this.starts.length
  }

  add(startNs: number, correlation: number, tid: number): void {
    if (this.runs.at(-1)?.tid !== tid) this.runs.push({ from: this.length, tid })
    this.starts.push(startNs)
    this.values.push(correlation)
  }

  start(at: number): number {
    return this.starts.at(at)
  }

  /** Places by start; undefined: that is their order. */
  order(): Uint32Array | undefined {
    const { starts } = this
    return orderOf(this.length, (a, b) => starts.at(a) - starts.at(b))
  }

  /** Finds launches by correlation id: of calls within each other the outer one. {@link NONE}: there is none. */
  finder(): (correlation: number) => number {
    const { values, length } = this
    const order = orderOf(length, (a, b) => values.at(a) - values.at(b))
    const idAt = (place: number) => (order ? order[place]! : place)
    let place = 0
    return (correlation) => {
      if (correlation === NONE || length === 0) return NONE
      // Work often comes in the order of its launches.
      if (values.at(idAt(place)) !== correlation) {
        const next = place + 1
        if (next < length && values.at(idAt(next)) === correlation) place = next
        else {
          const found = firstIndex(0, length, (at) => values.at(idAt(at)) >= correlation)
          if (found === length || values.at(idAt(found)) !== correlation) return NONE
          place = found
        }
      }
      return idAt(place)
    }
  }
}
