import type { Names } from '../../../model/names.ts'

/** Bytes of a name that the kernel keeps, without the zero behind it. */
const COMM_BYTES = 15

/** Threads' names, interned; a thread mostly has the name that it had last time, which costs four comparisons. */
export class Comms {
  private readonly last = new Map<
    number,
    { readonly words: readonly [number, number, number, number]; readonly id: number }
  >()

  constructor(private readonly names: Names) {}

  /** The name in bytes `[start, end)`, up to the first zero. */
  id(view: DataView<ArrayBufferLike>, start: number, end: number, tid: number): number {
    if (end - start !== COMM_BYTES + 1) return this.names.id(textOf(view, start, end))
    const a = view.getUint32(start, true)
    const b = view.getUint32(start + 4, true)
    const c = view.getUint32(start + 8, true)
    const d = view.getUint32(start + 12, true)
    const known = this.last.get(tid)
    if (known) {
      const { words } = known
      if (words[0] === a && words[1] === b && words[2] === c && words[3] === d) return known.id
    }
    const id = this.names.id(textOf(view, start, end))
    this.last.set(tid, { words: [a, b, c, d], id })
    return id
  }

  /** A text in bytes `[start, end)`, up to the first zero. */
  text(view: DataView<ArrayBufferLike>, start: number, end: number): number {
    return this.names.id(textOf(view, start, end))
  }

  /** The name that a thread gets from the file it executes, whose path the bytes hold. */
  ofFile(view: DataView<ArrayBufferLike>, start: number, end: number): number {
    const stop = endOf(view, start, end)
    let base = stop
    while (base > start && view.getUint8(base - 1) !== 0x2f) base--
    return this.names.id(textOf(view, base, Math.min(stop, base + COMM_BYTES)))
  }
}

function endOf(view: DataView<ArrayBufferLike>, start: number, end: number): number {
  let stop = start
  while (stop < end && view.getUint8(stop) !== 0) stop++
  return stop
}

function textOf(view: DataView<ArrayBufferLike>, start: number, end: number): string {
  return decoder.decode(new Uint8Array(view.buffer, view.byteOffset + start, endOf(view, start, end) - start))
}

const decoder = new TextDecoder()
