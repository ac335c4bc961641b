const decoder = new TextDecoder()
const FNV_START = 0x811c9dc5 | 0
const FNV_PRIME = 0x01000193

interface Entry<T> {
  readonly bytes: Uint8Array
  readonly value: T
  readonly next: Entry<T> | undefined
}

/** Values by the bytes of a text, so that each distinct text is decoded once. */
export class ByteTable<T> {
  private buckets: (Entry<T> | undefined)[] = new Array(256).fill(undefined)
  private size = 0

  /** `make` returns the value of a new text. */
  constructor(private readonly make: (text: string) => T) {}

  /** The value of the text `[start, end)`. */
  get(bytes: Uint8Array, start: number, end: number): T {
    const hash = hashOf(bytes, start, end)
    const bucket = (hash ^ (hash >>> 15)) & (this.buckets.length - 1)
    for (let entry = this.buckets[bucket]; entry; entry = entry.next) {
      if (isSame(entry.bytes, bytes, start, end)) return entry.value
    }
    const copy = bytes.slice(start, end)
    const value = this.make(decoder.decode(copy))
    this.buckets[bucket] = { bytes: copy, value, next: this.buckets[bucket] }
    if (++this.size > this.buckets.length) this.grow()
    return value
  }

  private grow(): void {
    const entries = this.buckets
    this.buckets = new Array(entries.length * 4).fill(undefined)
    for (let chain of entries) {
      for (; chain; chain = chain.next) {
        const hash = hashOf(chain.bytes, 0, chain.bytes.length)
        const bucket = (hash ^ (hash >>> 15)) & (this.buckets.length - 1)
        this.buckets[bucket] = { ...chain, next: this.buckets[bucket] }
      }
    }
  }
}

/** Of long texts, only some bytes are hashed. */
function hashOf(bytes: Uint8Array, start: number, end: number): number {
  const step = 1 + ((end - start) >> 5)
  let hash = FNV_START ^ (end - start)
  for (let at = start; at < end; at += step) hash = Math.imul(hash ^ bytes[at]!, FNV_PRIME)
  return hash
}

/** Are the bytes equal? Compares four at a time, as long texts are common. */
export function isSame(known: Uint8Array, bytes: Uint8Array, start: number, end: number): boolean {
  const { length } = known
  if (length !== end - start) return false
  let i = 0
  for (let at = start; i + 3 < length; i += 4, at += 4) {
    const first = (known[i]! ^ bytes[at]!) | (known[i + 1]! ^ bytes[at + 1]!)
    if ((first | (known[i + 2]! ^ bytes[at + 2]!) | (known[i + 3]! ^ bytes[at + 3]!)) !== 0) return false
  }
  for (; i < length; i++) if (known[i] !== bytes[start + i]) return false
  return true
}
