import { resized } from './resized.ts'

const BLOCK_BITS = 16
const BLOCK = 1 << BLOCK_BITS
const IN_BLOCK = BLOCK - 1
/** Length of a first block: of lists there may be one for each thread of a file. */
const FIRST = 64

type TypedArray = Float64Array | Uint32Array | Uint16Array

/** A list of numbers that grows by blocks: it copies only a first block that is small, and reserves at most one block. */
export class NumberList<T extends TypedArray> {
  length = 0
  private readonly blocks: T[] = []

  constructor(private readonly make: new (length: number) => T) {}

  push(value: number): void {
    const at = this.length++ & IN_BLOCK
    const block = this.blocks[this.blocks.length - 1]
    if (at === 0 || at === block!.length) this.grow(at)[at] = value
    else block![at] = value
  }

  private grow(at: number): T {
    const { blocks } = this
    if (at > 0) blocks[0] = resized(blocks[0]!, 4 * at)
    else blocks.push(new this.make(blocks.length === 0 ? FIRST : BLOCK))
    return blocks[blocks.length - 1]!
  }

  at(index: number): number {
    return this.blocks[index >>> BLOCK_BITS]![index & IN_BLOCK]!
  }

  /** Changes a value that was pushed. */
  set(index: number, value: number): void {
    this.blocks[index >>> BLOCK_BITS]![index & IN_BLOCK] = value
  }
}
