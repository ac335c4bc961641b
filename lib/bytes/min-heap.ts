/** Binary heap of numbers by key, the least key first, of the same keys the least number. */
export class MinHeap {
  private readonly keys: number[] = []
  private readonly values: number[] = []

  /** `step` is called for each visited place. */
  constructor(private readonly step: () => void = () => {}) {}

  get size(): number {
    return this.keys.length
  }

  /** The least key; Infinity where there is none. */
  get least(): number {
    return this.keys[0] ?? Infinity
  }

  push(key: number, value: number): void {
    const { keys, values } = this
    let at = keys.length
    for (; at > 0; at = (at - 1) >>> 1) {
      this.step()
      const parent = (at - 1) >>> 1
      if (!isBefore(key, value, keys[parent]!, values[parent]!)) break
      keys[at] = keys[parent]!
      values[at] = values[parent]!
    }
    keys[at] = key
    values[at] = value
  }

  /** Removes the value with the least key; there must be one. */
  pop(): number {
    const { keys, values } = this
    const first = values[0]!
    const [key, value] = [keys.pop()!, values.pop()!]
    let at = 0
    for (let child = 1; child < keys.length; child = 2 * at + 1) {
      this.step()
      const next = child + 1
      if (next < keys.length && isBefore(keys[next]!, values[next]!, keys[child]!, values[child]!)) child = next
      if (!isBefore(keys[child]!, values[child]!, key, value)) break
      keys[at] = keys[child]!
      values[at] = values[child]!
      at = child
    }
    if (keys.length > 0) {
      keys[at] = key
      values[at] = value
    }
    return first
  }
}

const isBefore = (key: number, value: number, otherKey: number, otherValue: number) =>
  key < otherKey || (key === otherKey && value < otherValue)
