import { RECORD_BYTES, RecordType } from '../../log/ggtrace-layout.ts'

/** Bytes that a record must have to be read, by type; 0 = a type that we do not know. */
export const BYTES_MIN: readonly number[] = Array.from({ length: 64 }, (_, type) => RECORD_BYTES[type] ?? 0)

const decoder = new TextDecoder()

/** An unsigned integer of 64 bits; from 2^53 on it is rounded. */
export function readU64(view: DataView<ArrayBufferLike>, at: number): number {
  return view.getUint32(at + 4, true) * 2 ** 32 + view.getUint32(at, true)
}

/** Addresses of user space fit 53 bits, as numbers do; the top byte of a tagged pointer (arm64) is dropped. */
export function readAddress(view: DataView<ArrayBufferLike>, at: number): number {
  return (view.getUint32(at + 4, true) & 0x1fffff) * 2 ** 32 + view.getUint32(at, true)
}

/** A text that lies within `end`, and where the next field starts; undefined if it does not fit. */
export function readText(
  view: DataView<ArrayBufferLike>,
  at: number,
  end: number,
): { readonly text: string; readonly next: number } | undefined {
  if (at + 4 > end) return undefined
  const length = view.getUint32(at, true)
  if (length > end - at - 4) return undefined
  const bytes = new Uint8Array(view.buffer, view.byteOffset + at + 4, length)
  return { text: decoder.decode(bytes), next: at + 4 + Math.ceil(length / 4) * 4 }
}

/** What a record is called in messages. */
export function recordName(type: number): string {
  const name = RecordType[type]
  return name === undefined ? `type ${type}` : name.replace(/(?<!^)([A-Z])/g, '_$1').toUpperCase()
}
