import { growColumns } from '../../bytes/resized.ts'
import type { MeterEvent } from '../../model/events.ts'

/** Readings that are held of a meter; of more, every second one is dropped, and the rate of those that follow is halved. */
const HELD_MAX = 1 << 20

const COLUMNS = ['starts', 'ends', 'values'] as const

/** The readings of one meter, in order of time. */
export class Readings {
  count = 0
  starts = new Float64Array(64)
  ends = new Float64Array(64)
  values = new Float64Array(64)
  /** Every so many readings are held. */
  private every = 1
  private skipped = 0

  constructor(
    readonly meter: MeterEvent,
    readonly device: string,
    readonly name: string,
    readonly input: string,
  ) {}

  add(startNs: number, endNs: number, value: number): void {
    if (this.count > 0 && endNs <= this.ends[this.count - 1]!) return
    if (++this.skipped < this.every) return
    this.skipped = 0
    if (this.count === HELD_MAX) this.halve()
    if (this.count === this.ends.length) growColumns(this, COLUMNS, 2 * this.count)
    this.starts[this.count] = startNs
    this.ends[this.count] = endNs
    this.values[this.count++] = value
  }

  private halve(): void {
    const { starts, ends, values, count } = this
    for (let i = 0; i < count / 2; i++) {
      // Means keep their time: the mean of both, since the start of the first.
      const [a, b] = [2 * i, 2 * i + 1]
      const [ofA, ofB] = [ends[a]! - starts[a]!, ends[b]! - starts[b]!]
      values[i] = ofA + ofB > 0 ? (values[a]! * ofA + values[b]! * ofB) / (ofA + ofB) : values[b]!
      starts[i] = ofA + ofB > 0 ? starts[a]! : starts[b]!
      ends[i] = ends[b]!
    }
    this.count = count / 2
    this.every *= 2
  }
}
