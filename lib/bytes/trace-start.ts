/** `{` or `[`, and what JSON permits after it. */
const JSON_START = /^\s*(?:\{\s*(?:["}]|$)|\[\s*(?:[[{\]]|$))/

/**
 * The kind of trace that a file with these first bytes (decompressed) can be: Chrome's JSON, or packets of Perfetto. A packet of 123 or
 * 91 bytes begins as JSON does after a line feed, so a whole packet before another one decides.
 */
export function traceStart(head: Uint8Array): 'json' | 'perfetto' | undefined {
  const packet = firstPacket(head)
  if (packet === 'sure') return 'perfetto'
  if (JSON_START.test(new TextDecoder('latin1').decode(head))) return 'json'
  return packet && 'perfetto'
}

const PACKET = 0x0a
/** Bytes of a value, by the wire type of its field. */
const FIXED: Readonly<Record<number, number>> = { 1: 8, 5: 4 }

/** Is there a packet at the start? `sure`: its fields fill it, and another one or the end follows; `likely`: what there is of it is sound. */
function firstPacket(head: Uint8Array): 'sure' | 'likely' | undefined {
  if (head[0] !== PACKET) return undefined
  const size = numberAt(head, 1)
  const end = size.end + size.value
  let at = size.end
  while (at < end && at < head.length) {
    const tag = numberAt(head, at)
    const wireType = tag.value % 8
    if (tag.value < 8 || tag.value >= 2 ** 32) return tag.end > head.length ? 'likely' : undefined
    const value = numberAt(head, tag.end)
    if (wireType === 0) at = value.end
    else if (wireType === 2) at = value.end + value.value
    else if (FIXED[wireType] !== undefined) at = tag.end + FIXED[wireType]
    else return undefined
  }
  if (end > head.length) return at <= end ? 'likely' : undefined
  if (at !== end) return undefined
  return end === head.length || head[end] === PACKET ? 'sure' : 'likely'
}

/** The number at a place; it ends after `head` where it is cut. */
function numberAt(head: Uint8Array, start: number): { readonly value: number; readonly end: number } {
  let value = 0
  for (let at = start, scale = 1; at < head.length; at++, scale *= 128) {
    value += (head[at]! & 127) * scale
    if (head[at]! < 128) return { value, end: at + 1 }
  }
  return { value, end: head.length + 1 }
}
