import { isSame } from '../../input/byte-table.ts'

/** Longer ones, more of them behind one value, and more in all are not remembered: programs write few. */
const STEP_BYTES_MAX = 160
const FOLLOWERS_MAX = 24
const STEPS_MAX = 1 << 12

/** Instead of a field, of the step behind the last value. */
export const END = -2

/**
 * What stands between two values of an event, byte for byte: the key of the second one, brackets, white space. Programs write
 * events alike; so all but the values is compared, as words, with what came there before, and not read again.
 */
export class Step {
  /** What came next, the latest first. */
  private readonly followers: Step[] = []
  private readonly words: Int32Array
  /** Of the last word, the bytes that count. */
  private readonly mask: number
  private readonly bytes: Uint8Array

  /** `field`: what the value behind it is, or {@link END}; `key`: an argument's, or -1. */
  constructor(
    bytes: Uint8Array,
    readonly field: number,
    readonly key: number,
    private readonly budget: { steps: number },
  ) {
    this.words = new Int32Array((bytes.length + 3) >> 2)
    this.bytes = new Uint8Array(this.words.buffer, 0, bytes.length)
    this.bytes.set(bytes)
    const view = new DataView(this.words.buffer)
    for (let i = 0; i < this.words.length; i++) this.words[i] = view.getInt32(4 * i, true)
    const rest = bytes.length & 3
    this.mask = rest === 0 ? -1 : (1 << (8 * rest)) - 1
  }

  /** What events begin with follows it: nothing yet. */
  static root(): Step {
    return new Step(new Uint8Array(), END, -1, { steps: 0 })
  }

  get length(): number {
    return this.bytes.length
  }

  /** The step that stands at a place, if it is known, and all its words end before `end`. */
  at(view: DataView, place: number, end: number): Step | undefined {
    const { followers } = this
    for (let i = 0; i < followers.length; i++) {
      const step = followers[i]!
      if (!step.stands(view, place, end)) continue
      if (i > 0) {
        followers[i] = followers[0]!
        followers[0] = step
      }
      return step
    }
    return undefined
  }

  /** The step `[start, end)`, remembered from now on; undefined where that is too much. */
  learn(bytes: Uint8Array, start: number, end: number, field: number, key: number): Step | undefined {
    const { followers, budget } = this
    for (const step of followers) if (isSame(step.bytes, bytes, start, end)) return step
    if (end - start > STEP_BYTES_MAX || followers.length === FOLLOWERS_MAX || budget.steps === STEPS_MAX)
      return undefined
    budget.steps++
    const step = new Step(bytes.subarray(start, end), field, key, budget)
    followers.unshift(step)
    return step
  }

  private stands(view: DataView, place: number, end: number): boolean {
    const { words, mask } = this
    const last = words.length - 1
    if (place + 4 * words.length > end) return false
    for (let i = 0; i < last; i++, place += 4) if (view.getInt32(place, true) !== words[i]) return false
    return (view.getInt32(place, true) & mask) === words[last]
  }
}
