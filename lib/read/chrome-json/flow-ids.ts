/** Categories by which ids are told apart. */
const CATEGORIES = 2 ** 12
const NUMBERS = 2 ** 32

/** A number below 2^44 for an arrow's id, which is unique in its category: the id itself where it is a small number. */
export function flowId(category: number, bytes: Uint8Array, start: number, end: number): number {
  const base = (category % CATEGORIES) * NUMBERS
  let number = 0
  for (let at = start; at < end; at++) {
    const digit = bytes[at]! - 0x30
    if (digit < 0 || digit > 9 || number >= NUMBERS / 10 - 1) return hashed(category, bytes, start, end)
    number = number * 10 + digit
  }
  return base + number
}

/** Ids such as addresses: 44 bits of a hash (FNV-1a, twice). */
function hashed(category: number, bytes: Uint8Array, start: number, end: number): number {
  let [low, high] = [0x811c9dc5 ^ category, 0x01000193 + category]
  for (let at = start; at < end; at++) {
    low = Math.imul(low ^ bytes[at]!, 0x01000193)
    high = Math.imul(high ^ bytes[at]!, 0x85ebca6b)
  }
  return (high >>> 20) * NUMBERS + (low >>> 0)
}
