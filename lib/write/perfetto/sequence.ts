import { resized } from '../../bytes/resized.ts'
import type { Piece } from '../byte-writer.ts'
import { IidSet } from './iids.ts'
import type { Begins, SequenceName } from './packet-writer.ts'

/** Labels from this id on are not prepared: there is memory for each smaller id in each sequence. */
const PREPARED_MAX = 1 << 13

/** The packet sequence of one track, and the ids that are interned in it. */
export class Sequence {
  readonly names = new IidSet()
  readonly categories = new IidSet()
  readonly argNames = new IidSet()
  readonly argTexts = new IidSet()
  readonly colours = new IidSet()
  readonly labels = new IidSet()
  /** By id of labels: places in {@link Begins}; 0: none. */
  private begins = new Int32Array(64)

  constructor(readonly name: SequenceName) {}

  /** The place of what begins slices of a label; 0: it is not prepared. */
  beginOf(label: number): number {
    return label < this.begins.length ? this.begins[label]! : 0
  }

  /** Prepares a label, of which a slice was written. */
  prepare(label: number, fields: Piece, begins: Begins): void {
    if (label >= PREPARED_MAX || this.beginOf(label) !== 0) return
    const place = begins.add(this.name, fields)
    if (place === 0) return
    if (label >= this.begins.length) this.begins = resized(this.begins, Math.max(label + 1, 2 * this.begins.length))
    this.begins[label] = place
  }
}
