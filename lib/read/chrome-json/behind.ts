import type { ReadContext } from '../format.ts'
import type { About } from './about.ts'

/** A key and its value are not longer, so that no cut hides them. */
const OVERLAP = 256
const MARKS = /"baseTimeNanoseconds"|"origin_ns"/
const latin1 = new TextDecoder('latin1')

/**
 * Looks for what a file contains behind its events but must be known before them, by reading all of it once: any member may be
 * behind it, of any size.
 */
export async function lookBehind(about: About, { range, again }: ReadContext): Promise<void> {
  let rest = ''
  for await (const chunk of again?.() ?? range?.(0, Number.MAX_SAFE_INTEGER) ?? []) {
    const text = latin1.decode(chunk)
    if (MARKS.test(rest + text.slice(0, OVERLAP)) || MARKS.test(text)) about.search(rest + text)
    rest = text.slice(-OVERLAP)
  }
}
