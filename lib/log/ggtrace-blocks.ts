import { UsageError } from '../errors.ts'
import { checksum, HEADER_BYTES, Header, MAGIC, NONE, RECORD_BYTES_MAX } from './ggtrace-layout.ts'

const encoder = new TextEncoder()

/** The writer that blocks belong to. */
export interface BlockOwner {
  readonly kind: number
  /** Number of the writer, from 0. */
  readonly writer: number
  readonly tid: number
  readonly worker: number
}

/** A block that is being filled with records, field by field. */
export class OpenBlock {
  private readonly bytes: Uint8Array
  private readonly view: DataView
  private at = HEADER_BYTES

  constructor(
    size: number,
    { kind, writer, tid, worker }: BlockOwner,
    sequence: number,
    baseNs: bigint,
    call: number,
    readonly needs: number,
  ) {
    this.bytes = new Uint8Array(size)
    this.view = new DataView(this.bytes.buffer)
    const { view } = this
    view.setUint32(Header.magic, MAGIC, true)
    view.setUint16(Header.kind, kind, true)
    view.setUint16(Header.writer, writer, true)
    view.setUint32(Header.sequence, sequence, true)
    view.setUint32(Header.tid, tid, true)
    view.setBigUint64(Header.base, baseNs, true)
    view.setUint32(Header.needs, needs, true)
    view.setUint32(Header.worker, worker < 0 ? NONE : worker, true)
    view.setUint32(Header.call, call < 0 ? NONE : call, true)
  }

  /** Is there room for a record of `size` bytes? */
  fits(size: number): boolean {
    return this.at + size <= this.bytes.length
  }

  /** Starts a record; its fields follow, in order. */
  begin(type: number, size: number): this {
    this.view.setUint16(this.at, type, true)
    this.view.setUint16(this.at + 2, size, true)
    this.at += 4
    return this
  }

  u16(value: number): this {
    this.view.setUint16(this.at, value, true)
    this.at += 2
    return this
  }

  u32(value: number): this {
    this.view.setUint32(this.at, value, true)
    this.at += 4
    return this
  }

  /** Numbers of 32 bits, one after the other; -1 is the largest of them. */
  u32s(...values: readonly number[]): this {
    for (const value of values) this.u32(value)
    return this
  }

  u64(value: number | bigint): this {
    this.view.setBigUint64(this.at, BigInt(value), true)
    this.at += 8
    return this
  }

  f32(value: number): this {
    this.view.setFloat32(this.at, value, true)
    this.at += 4
    return this
  }

  f64(value: number): this {
    this.view.setFloat64(this.at, value, true)
    this.at += 8
    return this
  }

  text(text: Uint8Array): this {
    this.u32(text.length)
    this.bytes.set(text, this.at)
    this.at += Math.ceil(text.length / 4) * 4
    return this
  }

  /** Sets the number of records that its writer has dropped so far. */
  setDropped(records: number): void {
    this.view.setUint32(Header.dropped, records, true)
  }

  /** The block as a killed process would leave it. */
  unsealed(): Uint8Array {
    return this.bytes
  }

  /** The block with its size and checksum; `needs` is final now. */
  sealed(needs: number): Uint8Array {
    const { view } = this
    const size = Math.ceil(this.at / 8) * 8
    view.setUint32(Header.needs, needs, true)
    view.setUint32(Header.checksum, checksum(view, 0, size), true)
    view.setUint32(Header.size, size, true)
    return this.bytes.subarray(0, size)
  }
}

/** The blocks of one writer. */
export class BlockWriter {
  /** Records that could not be written; block headers contain this number. */
  dropped = 0
  private block: OpenBlock | undefined
  private sequence = 0

  constructor(
    private readonly owner: BlockOwner,
    private readonly blockBytes: number,
    private readonly originNs: bigint,
    /** Called with a full block, to seal it. */
    private readonly seal: (block: OpenBlock) => void,
  ) {}

  /** Makes room for `size` bytes; true if this needed a new block, which starts at `atNs` and with `call`. */
  reserve(size: number, atNs = 0, call = -1, needs = 0): boolean {
    if (size > RECORD_BYTES_MAX) throw new UsageError(`a record has ${RECORD_BYTES_MAX} bytes at most, not ${size}`)
    if (this.block?.fits(size)) return false
    this.finish()
    const bytes = Math.max(this.blockBytes, Math.ceil((HEADER_BYTES + size) / 8) * 8)
    const baseNs = this.originNs + BigInt(atNs)
    this.block = new OpenBlock(bytes, this.owner, this.sequence++, baseNs, call, needs)
    return true
  }

  /** Starts a record, for which there must be room. */
  record(type: number, size: number): OpenBlock {
    return this.block!.begin(type, size)
  }

  /** Passes the current block to `seal`. */
  finish(): void {
    const { block } = this
    this.block = undefined
    if (!block) return
    block.setDropped(this.dropped)
    this.seal(block)
  }

  /** The current block, as a killed process would leave it. */
  unsealed(): Uint8Array[] {
    return this.block ? [this.block.unsealed()] : []
  }
}

/** A text as UTF-8 bytes. */
export function encodeText(text: string): Uint8Array {
  return encoder.encode(text)
}

/** Number of bytes of a text in a record. */
export function textBytes(text: Uint8Array): number {
  return 4 + Math.ceil(text.length / 4) * 4
}
