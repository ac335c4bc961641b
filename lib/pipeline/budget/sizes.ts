import { type ByteRange, type ByteSource, besideOf, rangeOf } from '../../input/byte-source.ts'
import { GZIP_BYTES, isGzip } from '../../input/gunzip.ts'
import type { Definitions } from '../../model/definitions.ts'
import type { TraceEvent } from '../../model/events.ts'
import type { Names } from '../../model/names.ts'
import { type Input, type Reading, readEvents } from '../inputs.ts'

/** gzip shrinks logs at least to a third. */
const GZIP_RATIO = 3
/** gzip stores the size of the content modulo 4 GiB: of larger files, this much is assumed. */
const [GZIP_TRUSTED_BYTES, GZIP_RATIO_MAX] = [2 ** 27, 32]

/** An input that can be read again, from its start. */
export interface Rereadable {
  readonly range: ByteRange
  /** Decompressed bytes, as far as they are known without reading: Infinity if not. */
  readonly bytes: number
}

/** An input that can be read again; undefined for streams, and for events that a program creates. */
export async function rereadable(input: Input): Promise<Rereadable | undefined> {
  if ('events' in input) return undefined
  const range = rangeOf(input.source)
  if (!range) return undefined
  const stored = await sizeOf(input.source)
  if (stored === 0) return { range, bytes: Infinity }
  if (!isGzip(await bytesOf(range, 0, GZIP_BYTES))) return { range, bytes: stored }
  if (stored > GZIP_TRUSTED_BYTES) return { range, bytes: stored * GZIP_RATIO_MAX }
  const end = await bytesOf(range, stored - 4, stored)
  const content = end.length === 4 ? new DataView(end.buffer).getUint32(0, true) : Infinity
  return { range, bytes: Math.max(content, GZIP_RATIO * stored) }
}

/** The events of an input once more, issues among them; undefined for an input that can be read only once. */
export async function eventsAgain(
  input: Input,
  names: Names,
  options: Reading,
  definitions?: Definitions,
): Promise<AsyncIterable<TraceEvent[]> | undefined> {
  const reading = { ...options, strict: false }
  if ('events' in input) return readEvents(input, names, reading, definitions)
  const again = await rereadable(input)
  if (!again) return undefined
  const { range } = again
  const source = Object.assign(range(0, Number.MAX_SAFE_INTEGER), { range, beside: besideOf(input.source) })
  return readEvents({ name: input.name, source }, names, reading, definitions)
}

/** 0: not known. */
async function sizeOf(source: ByteSource): Promise<number> {
  const sized = source as { readonly byteLength?: number; readonly size?: number }
  return sized.byteLength ?? sized.size ?? (await besideOf(source)?.('')) ?? 0
}

async function bytesOf(range: ByteRange, start: number, end: number): Promise<Uint8Array> {
  const bytes: number[] = []
  for await (const chunk of range(start, end)) bytes.push(...chunk)
  return Uint8Array.from(bytes)
}
