import { rangeAccess } from '../../input/random-access.ts'
import type { ReadContext } from '../format.ts'
import type { About } from './about.ts'

/** What stands behind the events is in so many bytes at the end of a file. */
const END_BYTES = 1 << 17
/** A key and its value are not longer, so that no cut hides them. */
const OVERLAP = 256
const latin1 = new TextDecoder('latin1')

/**
 * Looks for what a file tells behind its events, but which must be known before: at its end, where any part of it can be
 * had; else by reading all of it once before it is read.
 */
export async function lookBehind(about: About, { range, again }: ReadContext): Promise<void> {
  if (range) {
    const access = rangeAccess(range)
    const has = async (offset: number) => (await access.read(offset, 1)).length > 0
    let [low, high] = [0, END_BYTES]
    for (; await has(high); high *= 2) low = high
    while (high - low > END_BYTES) {
      const middle = Math.floor((low + high) / 2)
      if (await has(middle)) low = middle
      else high = middle
    }
    const start = Math.max(0, low - END_BYTES)
    about.search(latin1.decode(await access.read(start, high - start)))
  } else if (again) {
    let rest = ''
    for await (const chunk of again()) {
      const text = latin1.decode(chunk)
      if (MARKS.test(rest + text.slice(0, OVERLAP)) || MARKS.test(text)) about.search(rest + text)
      rest = text.slice(-OVERLAP)
    }
  }
}

const MARKS = /"baseTimeNanoseconds"|"origin_ns"/
