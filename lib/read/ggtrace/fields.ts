import { NONE, RECORD_BYTES, RecordType } from '../../log/ggtrace-layout.ts'

/** Minimum bytes of a record, by type; 0 = an unknown type. */
export const BYTES_MIN: readonly number[] = Array.from({ length: 96 }, (_, type) => RECORD_BYTES[type] ?? 0)

const decoder = new TextDecoder()

/** An unsigned integer of 64 bits, rounded from 2^53 on. */
export function readU64(view: DataView, at: number): number {
  return view.getUint32(at + 4, true) * 2 ** 32 + view.getUint32(at, true)
}

/** A u32, -1 for none. */
export function readNumber(view: DataView, at: number): number {
  const number = view.getUint32(at, true)
  return number === NONE ? -1 : number
}

/** Addresses of user space fit 53 bits, as numbers do; the top byte of a tagged pointer (arm64) is dropped. */
export function readAddress(view: DataView, at: number): number {
  return (view.getUint32(at + 4, true) & 0x1fffff) * 2 ** 32 + view.getUint32(at, true)
}

/** A text that ends before `end`, and the start of the next field; undefined if it does not fit. */
export function readText(
  view: DataView,
  at: number,
  end: number,
): { readonly text: string; readonly next: number } | undefined {
  if (at + 4 > end) return undefined
  const length = view.getUint32(at, true)
  if (length > end - at - 4) return undefined
  const bytes = new Uint8Array(view.buffer, view.byteOffset + at + 4, length)
  return { text: decoder.decode(bytes), next: at + 4 + Math.ceil(length / 4) * 4 }
}

/** Name of a record for messages. */
export function recordName(type: number): string {
  const name = RecordType[type]
  return name === undefined ? `type ${type}` : name.replace(/(?<!^)([A-Z])/g, '_$1').toUpperCase()
}

/** A record of an unchecked block further than this from its neighbours is damaged: one day, in ns. */
const JUMP_NS_MAX = 86_400e9
/** High words from here on are damage: 146 years since boot. */
const HIGH_END = 1 << 30

/** Reads times of a log in nanoseconds since its origin, and detects damaged ones. */
export class LogClock {
  private originHigh = 0
  private originLow = 0
  private hasOrigin = false
  private earliestNs = -Number.MAX_SAFE_INTEGER
  private latestNs = Number.MAX_SAFE_INTEGER
  /** The latest time, for issues. */
  lastNs = 0

  /** Sets the origin, once, to a time in the log. Returns it in absolute nanoseconds. */
  begin(view: DataView, at: number): bigint {
    if (!this.hasOrigin && view.getUint32(at + 4, true) < HIGH_END) {
      this.originLow = view.getUint32(at, true)
      this.originHigh = view.getUint32(at + 4, true)
    }
    this.hasOrigin = true
    return (BigInt(this.originHigh) << 32n) | BigInt(this.originLow)
  }

  /** Moves to a time under a checksum: later issues are shown there. */
  goTo(view: DataView, at: number): void {
    this.earliestNs = -Number.MAX_SAFE_INTEGER
    this.latestNs = Number.MAX_SAFE_INTEGER
    this.lastNs = this.read(view, at) ?? this.lastNs
  }

  /** Prepares for a block: without a checksum, its times must be near the others. */
  enter(isSealed: boolean): void {
    const isTrusted = isSealed || this.lastNs === 0
    this.earliestNs = isTrusted ? -Number.MAX_SAFE_INTEGER : this.lastNs - JUMP_NS_MAX
    this.latestNs = isTrusted ? Number.MAX_SAFE_INTEGER : this.lastNs + JUMP_NS_MAX
  }

  /** A time; undefined for none (0) and for damage. */
  read(view: DataView, at: number): number | undefined {
    const low = view.getUint32(at, true)
    const high = view.getUint32(at + 4, true)
    if (high >= HIGH_END || (low === 0 && high === 0)) return undefined
    const atNs = (high - this.originHigh) * 2 ** 32 + (low - this.originLow)
    return atNs >= this.earliestNs && atNs <= this.latestNs ? atNs : undefined
  }
}

/** An absolute time; undefined for none (0) and for damage. */
export function readAbsolute(view: DataView, at: number): bigint | undefined {
  const ns = view.getBigUint64(at, true)
  return ns > 0n && ns < 1n << 62n ? ns : undefined
}
