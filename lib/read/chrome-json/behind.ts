import type { ByteRange } from '../../input/byte-source.ts'
import { rangeAccess } from '../../input/random-access.ts'
import type { ReadContext } from '../format.ts'
import type { About } from './about.ts'

/** What stands behind the events is in so many bytes at the end of a file. */
const END_BYTES = 1 << 17
/** A key and its value are not longer, so that no cut hides them. */
const OVERLAP = 256
const latin1 = new TextDecoder('latin1')

/**
 * Looks for what a file contains behind its events but must be known before them: at its end, where any part of it can be read,
 * and where it is not there, though it must be somewhere, or where there are no parts, by reading all of it once.
 */
export async function lookBehind(about: About, { range, again }: ReadContext): Promise<void> {
  if (range) {
    await searchEnd(about, range)
    if (about.isKineto && about.baseNs === undefined) await searchAll(about, range(0, Number.MAX_SAFE_INTEGER))
  } else if (again) await searchAll(about, again())
}

async function searchEnd(about: About, range: ByteRange): Promise<void> {
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
}

async function searchAll(about: About, chunks: AsyncIterable<Uint8Array>): Promise<void> {
  let rest = ''
  for await (const chunk of chunks) {
    const text = latin1.decode(chunk)
    if (MARKS.test(rest + text.slice(0, OVERLAP)) || MARKS.test(text)) about.search(rest + text)
    rest = text.slice(-OVERLAP)
  }
}

const MARKS = /"baseTimeNanoseconds"|"origin_ns"/
