const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let rest = byte
  for (let bit = 0; bit < 8; bit++) rest = rest & 1 ? (rest >>> 1) ^ 0xedb8_8320 : rest >>> 1
  return rest
})

/** CRC-32 of bytes in pieces, by ZIP's polynomial, and their number. */
export class Crc32 {
  private state = 0xffff_ffff
  bytes = 0

  get value(): number {
    return ~this.state >>> 0
  }

  add(piece: Uint8Array): void {
    let { state } = this
    for (let i = 0; i < piece.length; i++) state = (state >>> 8) ^ TABLE[(state ^ piece[i]!) & 0xff]!
    this.state = state
    this.bytes += piece.length
  }
}
