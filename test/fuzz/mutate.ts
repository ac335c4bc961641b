import { BLOCK_ALIGNMENT, checksum, HEADER_BYTES, Header, MAGIC } from '../../lib/log/ggtrace-layout.ts'
import { SEED_BYTES_MAX } from './corpus.ts'

/** Damage of any kind. */

/** Large inputs are sometimes used whole. */
const WHOLE_EVERY = 16

const joined = (...parts: readonly Uint8Array[]) => new Uint8Array(Buffer.concat(parts))

const [NAN_BITS, INFINITY_BITS] = [0x7ff8n << 48n, 0x7ff0n << 48n]
const INTERESTING = [0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff]
const INTERESTING_LONG = [
  2n ** 53n - 1n,
  2n ** 53n,
  2n ** 53n + 1n,
  2n ** 63n - 1n,
  2n ** 63n,
  2n ** 64n - 1n,
  NAN_BITS,
  INFINITY_BITS,
]
const TOKENS = [
  ',',
  '\n',
  '"',
  '-',
  '.',
  '0',
  '9'.repeat(20),
  ':',
  '{',
  '}',
  '[',
  ']',
  'null',
  '1e999',
  '1e400',
  '1e25',
  '-1',
  '9007199254740993',
  '18446744073709551615',
  '4000000000',
  'constructor',
  '__proto__',
  'Infinity',
  'NaN',
  '\\u0000',
  ' ==> ',
]

/** What each object of JavaScript has. */
const WORDS = ['constructor', '__proto__', 'toString']

const WORD = /[A-Za-z_]{2,}/g
const DIGITS = /\d+(?:\.\d+)?/g

/** A text in which the next number from `at` on is another, or the numbers of all lines that follow the same text. */
function withNumber(bytes: Uint8Array<ArrayBuffer>, at: number, token: string, inAllLines: boolean) {
  const text = Buffer.from(bytes).toString('latin1')
  DIGITS.lastIndex = at
  const found = DIGITS.exec(text)
  if (!found) return bytes
  const { index } = found
  const before = /[^\d\n]{1,12}$/.exec(text.slice(Math.max(0, index - 12), index))?.[0]
  const end = index + found[0].length
  if (!inAllLines || before === undefined)
    return new Uint8Array(Buffer.from(text.slice(0, index) + token + text.slice(end), 'latin1'))
  const parts = text.split(before)
  return new Uint8Array(
    Buffer.from(
      parts.map((part, i) => (i === 0 ? part : part.replace(/^\d+(?:\.\d+)?/, () => token))).join(before),
      'latin1',
    ),
  )
}

/** A text in which the next word from `at` on is another one, throughout: one that each object of JavaScript has. */
function withWord(bytes: Uint8Array<ArrayBuffer>, at: number, word: string) {
  const text = Buffer.from(bytes).toString('latin1')
  WORD.lastIndex = at
  const found = WORD.exec(text)?.[0]
  return found === undefined
    ? bytes
    : new Uint8Array(
        Buffer.from(
          text.replaceAll(found, () => word),
          'latin1',
        ),
      )
}

/** One to a few changes of any kind. */
export function mutated(bytes: Uint8Array, next: () => number, others: readonly Uint8Array[]): Uint8Array {
  const below = (limit: number) => Math.floor(next() * limit)
  // Mostly a short beginning: damage at the start of a log finds more than damage at its end.
  const isWhole = below(bytes.length > SEED_BYTES_MAX ? WHOLE_EVERY : 4) === 0
  const length = isWhole ? bytes.length : below(2) === 0 ? 200 + below(1000) : below(bytes.length)
  let out = bytes.slice(0, length)
  for (let changes = 1 + below(4); changes > 0 && out.length > 0; changes--) {
    const at = below(out.length)
    const view = new DataView(out.buffer, out.byteOffset, out.byteLength)
    switch (below(13)) {
      case 0:
        out[at]! ^= 1 << below(8)
        break
      case 1:
        out[at] = below(256)
        break
      case 2: {
        const value = INTERESTING[below(INTERESTING.length)]!
        if (at + 4 <= out.length) view.setUint32(at & ~3, value, true)
        break
      }
      case 7: {
        const value = INTERESTING_LONG[below(INTERESTING_LONG.length)]!
        if (at + 8 <= out.length) view.setBigUint64(at & ~3, value, true)
        break
      }
      case 3:
        out = out.slice(0, at)
        break
      case 4: {
        const end = Math.min(out.length, at + 1 + below(64))
        out = joined(out.subarray(0, at), out.subarray(end))
        break
      }
      case 5: {
        const end = Math.min(out.length, at + 1 + below(64))
        out = joined(out.subarray(0, end), out.subarray(at, end), out.subarray(end))
        break
      }
      case 6: {
        const other = others[below(others.length)]!
        const from = below(other.length)
        out = Uint8Array.from([
          ...out.subarray(0, at),
          ...other.subarray(from, from + 1 + below(200)),
          ...out.subarray(at),
        ])
        break
      }
      case 8:
      case 9:
        out = withNumber(out, at, TOKENS[below(TOKENS.length)]!, below(2) === 0)
        break
      case 10:
        out = withWord(out, at, WORDS[below(WORDS.length)]!)
        break
      default: {
        const token = Buffer.from(TOKENS[below(TOKENS.length)]!)
        out.set(token.subarray(0, out.length - at), at)
      }
    }
  }
  return out
}

interface Place {
  readonly at: number
  readonly size: number
}

/** The complete blocks of a .ggtrace log, and their records by type. */
function partsOf(view: DataView): { blocks: Place[]; records: Map<number, Place[]> } {
  const blocks: Place[] = []
  const records = new Map<number, Place[]>()
  for (let at = 0; at + HEADER_BYTES <= view.byteLength; ) {
    const size = view.getUint32(at + Header.size, true)
    if (view.getUint32(at, true) !== MAGIC || size < HEADER_BYTES || at + size > view.byteLength) break
    blocks.push({ at, size })
    for (let record = at + HEADER_BYTES; record + 4 <= at + size; ) {
      const [type, bytes] = [view.getUint16(record, true), view.getUint16(record + 2, true)]
      if (bytes < 4 || record + bytes > at + size) break
      const same = records.get(type) ?? []
      records.set(type, same)
      same.push({ at: record, size: bytes })
      record += bytes
    }
    at += size
  }
  return { blocks, records }
}

/** Fields of a block's header that say whose its events are. */
const OWNERS = [Header.writer, Header.sequence, Header.tid, Header.base, Header.worker, Header.call]
/** A type that no version has: its records are skipped. */
const UNKNOWN_TYPE = 0xfff0

/**
 * A .ggtrace log whose records are whole and contradict each other: fields with the value of another record of the type, or with its neighbour;
 * records that are missing, or twice; blocks of other threads and calls, in another order.
 */
export function restructured(bytes: Uint8Array, next: () => number): Uint8Array {
  const below = (limit: number) => Math.floor(next() * limit)
  const out = bytes.slice()
  const view = new DataView(out.buffer)
  const { blocks, records } = partsOf(view)
  const types = [...records.values()]
  if (types.length === 0) return out
  const copy = (to: number, from: number, size: number) => out.copyWithin(to, from, from + size)
  for (let changes = 1 + below(8); changes > 0; changes--) {
    const same = types[below(types.length)]!
    const [one, other] = [same[below(same.length)]!, same[below(same.length)]!]
    const size = Math.min(one.size, other.size)
    const field = 4 + 4 * below((size - 4) >> 2)
    switch (size === 4 ? 5 : below(8)) {
      case 0:
      case 1:
        copy(one.at + field, other.at + field, 4)
        break
      case 2:
        copy(one.at + field, other.at + field, Math.min(8, size - field))
        break
      case 3:
        view.setUint32(one.at + field, view.getUint32(one.at + field, true) + below(5) - 2, true)
        break
      case 4:
        view.setUint32(one.at + field, INTERESTING[below(INTERESTING.length)]!, true)
        break
      case 5:
        view.setUint16(one.at, UNKNOWN_TYPE, true)
        break
      case 6:
        if (one.size === other.size) copy(one.at, other.at, size)
        break
      default: {
        const [a, b] = [blocks[below(blocks.length)]!, blocks[below(blocks.length)]!]
        if (a.size === b.size && below(2) === 0) copy(a.at, b.at, a.size)
        else {
          const owner = OWNERS[below(OWNERS.length)]!
          copy(a.at + owner, b.at + owner, owner === Header.base ? 8 : owner === Header.writer ? 2 : 4)
        }
      }
    }
  }
  return repaired(out)
}

/** Gives each block of a .ggtrace log a valid checksum; otherwise damage in it is never read (docs/reference/ggtrace-format.md §1.1). */
export function repaired(bytes: Uint8Array): Uint8Array {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  for (let at = 0; at + HEADER_BYTES <= bytes.length; at += BLOCK_ALIGNMENT) {
    if (view.getUint32(at, true) !== MAGIC) continue
    const size = view.getUint32(at + Header.size, true)
    if (size < HEADER_BYTES || size % BLOCK_ALIGNMENT !== 0 || at + size > bytes.length) continue
    view.setUint32(at + Header.checksum, checksum(view, at, size), true)
    at += size - BLOCK_ALIGNMENT
  }
  return bytes
}
