/** Rows from which the number of GPUs is found. */
const HEAD_ROWS = 256
/** Longest time between two GPUs of one reading: nvidia-smi takes some ms for each. Readings are further apart. */
const TOGETHER_NS = 50_000_000n
/** Readings are further apart than the GPUs of one by at least this factor. */
const APART = 4n

interface Waiting<T> {
  readonly ns: bigint
  readonly row: T
}

/**
 * Rows of which nothing says what GPU they are of. A tool writes one for each GPU, in the same order in each reading: rows that are close
 * together in time, again and again as many, are one reading.
 */
export class UnnamedGpus<T> {
  /** How many GPUs there are; 0: not known yet. */
  count = 0
  private head: Waiting<T>[] = []
  /** Readings are further apart in time than this. */
  private togetherNs = 0n
  private reading: Waiting<T>[] = []

  /**
   * @param onRow a row, and the place of its GPU in the order
   * @param onOther a reading of another number of rows, whose GPUs are not known
   */
  constructor(
    private readonly onRow: (row: T, gpu: number) => void,
    private readonly onOther: (rows: number) => void,
  ) {}

  add(ns: bigint, row: T): void {
    if (this.count > 0) return this.pass({ ns, row })
    this.head.push({ ns, row })
    if (this.head.length >= HEAD_ROWS) this.decide()
  }

  /** No further rows come. */
  end(): void {
    if (this.count === 0) this.decide()
    this.release()
  }

  private decide(): void {
    const head = this.head.splice(0)
    const gaps = head.slice(1).map(({ ns }, i) => ns - head[i]!.ns)
    this.togetherNs = longestTogether(gaps)
    this.count = rowsOf(sizesOf(gaps, this.togetherNs))
    for (const row of head) this.pass(row)
  }

  private pass(row: Waiting<T>): void {
    if (this.count === 1) return this.onRow(row.row, 0)
    const last = this.reading.at(-1)
    if (last && isApart(row.ns - last.ns, this.togetherNs)) this.release()
    this.reading.push(row)
    if (this.reading.length > HEAD_ROWS) this.release()
  }

  private release(): void {
    const rows = this.reading.splice(0)
    if (rows.length !== this.count && rows.length > 0) return this.onOther(rows.length)
    for (const [gpu, { row }] of rows.entries()) this.onRow(row, gpu)
  }
}

/** The longest time between rows of one reading; below 0, where each row is one. */
function longestTogether(gaps: readonly bigint[]): bigint {
  const sorted = [...gaps].sort((a, b) => Number(a - b))
  for (let i = sorted.length - 1; i >= 0; i--) {
    const [gap, next] = [sorted[i]!, sorted[i + 1]]
    if (gap < 0n || gap > TOGETHER_NS) continue
    // Of one reading alone, only the same time shows that its rows belong together.
    if (next === undefined ? gap === 0n : gap * APART < next) return gap
  }
  return -1n
}

const isApart = (gap: bigint, togetherNs: bigint) => gap < 0n || gap > togetherNs

/** Numbers of rows of readings. */
function sizesOf(gaps: readonly bigint[], togetherNs: bigint): number[] {
  const sizes = [1]
  for (const gap of gaps) {
    if (isApart(gap, togetherNs)) sizes.push(1)
    else sizes[sizes.length - 1]!++
  }
  return sizes
}

/** The number of rows that nearly all readings have, and none more; 1: there is no such number. */
function rowsOf(sizes: readonly number[]): number {
  const most = Math.max(...sizes)
  // The log may begin and end within a reading.
  const whole = sizes.length > 2 ? sizes.slice(1, -1) : sizes
  return whole.filter((size) => size === most).length * 4 >= whole.length * 3 ? most : 1
}
