import type { Writer } from '../sink/writer.ts'
import type { Detail } from './options.ts'

/** Of a view of 100 ms, a pixel of a screen: shorter values are not visible. */
export const PIXEL_NS = 50e3

/**
 * A counter that changes with each operator. A sample is written where the value changes; of samples within a pixel only the largest and
 * the last one, unless the detail is `full`. So each peak is there, and each value that lasts longer is exact.
 */
export class CounterLine {
  private readonly pixelNs: number
  private value = Number.NaN
  /** The first of the samples that are held; Infinity: none is. */
  private fromNs = Infinity
  private peakNs = 0
  private peak = 0
  private lastNs = 0
  private last = 0

  constructor(
    private readonly writer: Writer,
    readonly track: number,
    detail: Detail,
  ) {
    this.pixelNs = detail === 'full' ? 0 : PIXEL_NS
  }

  sample(atNs: number, value: number): void {
    if (this.pixelNs === 0) return this.write(atNs, value)
    if (atNs - this.fromNs >= this.pixelNs || atNs < this.lastNs) this.finish()
    const isFirst = this.fromNs === Infinity
    if (value === (isFirst ? this.value : this.last)) return
    if (isFirst) this.fromNs = atNs
    if (isFirst || value > this.peak) {
      this.peakNs = atNs
      this.peak = value
    }
    this.lastNs = atNs
    this.last = value
  }

  /** Writes the samples that are held. */
  finish(): void {
    if (this.fromNs === Infinity) return
    this.fromNs = Infinity
    if (this.peakNs < this.lastNs && !(this.peak <= this.value)) this.write(this.peakNs, this.peak)
    this.write(this.lastNs, this.last)
  }

  private write(atNs: number, value: number): void {
    if (value === this.value) return
    this.value = value
    this.writer.counter(this.track, atNs, value)
  }
}
