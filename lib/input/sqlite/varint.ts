/** Decodes a database's texts. */
export type Decoder = Pick<TextDecoder, 'decode'>

/** SQLite's variable-length integer: 7 bits a byte, the highest first, all 8 bits of a ninth byte. Inexact above 2^53. */
export function readVarint(bytes: Uint8Array, at: number): number {
  let value = 0
  for (let i = 0; i < 8; i++) {
    const byte = bytes[at + i] ?? 0
    value = value * 0x80 + (byte & 0x7f)
    if (byte < 0x80) return value
  }
  return value * 0x100 + (bytes[at + 8] ?? 0)
}

/** Number of bytes of such an integer. */
export function varintBytes(bytes: Uint8Array, at: number): number {
  for (let i = 0; i < 8; i++) if ((bytes[at + i] ?? 0) < 0x80) return i + 1
  return 9
}

/** A rowid, which is signed: those below 0 have nine bytes. Inexact above 2^53. */
export function readRowid(bytes: Uint8Array, at: number): number {
  if (varintBytes(bytes, at) < 9) return readVarint(bytes, at)
  let value = 0n
  for (let i = 0; i < 8; i++) value = (value << 7n) | BigInt((bytes[at + i] ?? 0) & 0x7f)
  return Number(BigInt.asIntN(64, (value << 8n) | BigInt(bytes[at + 8] ?? 0)))
}
