const BLOCK_BITS = 16
const BLOCK = 1 << BLOCK_BITS
const IN_BLOCK = BLOCK - 1

type TypedArray = Float64Array | Uint32Array | Uint16Array

/** A list of numbers that grows by blocks: it copies nothing, and reserves at most one block. */
export class NumberList<T extends TypedArray> {
  length = 0
  private readonly blocks: T[] = []

  constructor(private readonly make: new (length: number) => T) {}

  push(value: number): void {
    const at = this.length++ & IN_BLOCK
    if (at === 0) this.blocks.push(new this.make(BLOCK))
    this.blocks[this.blocks.length - 1]![at] = value
  }

  at(index: number): number {
    return this.blocks[index >>> BLOCK_BITS]![index & IN_BLOCK]!
  }

  /** Changes a value that was pushed. */
  set(index: number, value: number): void {
    this.blocks[index >>> BLOCK_BITS]![index & IN_BLOCK] = value
  }
}
