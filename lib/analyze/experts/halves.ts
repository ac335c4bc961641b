/** Blocks of tokens at most; then two become one. */
const BLOCKS_MAX = 32

/** Counts of experts in the first half of an unknown number of tokens, in bounded memory: of blocks of tokens, which grow. */
export class Halves {
  private readonly blocks: Uint32Array[] = []
  /** Tokens of a block. */
  private size = 1
  private tokens = 0
  private block: Uint32Array | undefined

  constructor(private readonly experts: number) {}

  /** Begins a token. */
  next(): void {
    if (this.tokens++ % this.size !== 0) return
    if (this.blocks.length === BLOCKS_MAX) this.merge()
    this.block = new Uint32Array(this.experts)
    this.blocks.push(this.block)
  }

  /** Counts an expert of the token. */
  count(expert: number): void {
    this.block![expert]! += 1
  }

  private merge(): void {
    for (let i = 0; i < BLOCKS_MAX / 2; i++) {
      const [to, from] = [this.blocks[2 * i]!, this.blocks[2 * i + 1]!]
      for (let expert = 0; expert < to.length; expert++) to[expert]! += from[expert]!
      this.blocks[i] = to
    }
    this.blocks.length = BLOCKS_MAX / 2
    this.size *= 2
  }

  /** The counts of the first half of the tokens, in whole blocks; empty for fewer than 2 tokens. */
  first(): number[] {
    const blocks = this.blocks.slice(0, Math.floor(this.tokens / 2 / this.size))
    if (blocks.length === 0) return []
    return Array.from({ length: this.experts }, (_, expert) => blocks.reduce((sum, counts) => sum + counts[expert]!, 0))
  }
}
