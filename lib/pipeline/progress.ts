import { type ByteSource, besideOf } from '../input/byte-source.ts'

/** How far the reading of all inputs is. */
export interface Progress {
  /** Logs whose trace may be too large are read twice: the first reading counts, the second one makes the result. */
  readonly phase: 'first-reading' | 'reading'
  /** Bytes that were read, in both readings, as they are stored. Only grows. */
  readonly read: number
  /** Bytes to be read in all; undefined where a source does not have its size. */
  readonly total: number | undefined
}

/** Where {@link Progress} goes. */
export type OnProgress = (progress: Progress) => void

/** Counts the bytes that are read of the inputs of a run. */
export class ProgressCount {
  private phase: Progress['phase'] = 'reading'
  private read = 0

  private constructor(
    private readonly onProgress: OnProgress,
    private readonly sizes: ReadonlyMap<object, number>,
    private total: number,
  ) {}

  /** Undefined where nobody asks. */
  static async of(
    inputs: readonly ({ readonly source: ByteSource } | object)[],
    onProgress: OnProgress | undefined,
  ): Promise<ProgressCount | undefined> {
    if (!onProgress) return undefined
    const sizes = new Map<object, number>()
    for (const input of inputs) sizes.set(input, 'source' in input ? await sizeOf(input.source) : 0)
    return new ProgressCount(
      onProgress,
      sizes,
      [...sizes.values()].reduce((sum, size) => sum + size, 0),
    )
  }

  add(bytes: number): void {
    this.read += bytes
    this.say()
  }

  /** These inputs are read twice, now a first time. */
  beginFirst(inputs: readonly object[]): void {
    this.phase = 'first-reading'
    for (const input of inputs) this.total += this.sizes.get(input) ?? NaN
    this.say()
  }

  endFirst(): void {
    this.phase = 'reading'
    this.say()
  }

  private say(): void {
    const { phase, read, total } = this
    this.onProgress({ phase, read, total: Number.isNaN(total) ? undefined : Math.max(total, read) })
  }
}

/** NaN: not known. */
async function sizeOf(source: ByteSource): Promise<number> {
  const { byteLength, size } = source as { readonly byteLength?: unknown; readonly size?: unknown }
  if (typeof byteLength === 'number') return byteLength
  return typeof size === 'number' ? size : ((await besideOf(source)?.('')) ?? NaN)
}
