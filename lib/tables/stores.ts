import { resized } from '../bytes/resized.ts'
import { getOrMake } from '../model/default-map.ts'
import type { ChunkData, Item } from '../write/column-data.ts'
import type { Column } from './column.ts'

/** Values of a dictionary that are kept from one row group to the next. */
const VALUES_MAX = 1 << 16
/** Whole numbers below it are looked up without a hash. */
const DIRECT = 1 << 12

/** A value of a table. */
export type Value = Item | boolean | null

/** The values of one column, for the rows that are collected. */
export interface Store {
  /** Makes room for rows below `capacity`. */
  reserve(capacity: number): void
  set(row: number, value: Value): void
  /** The values of some rows, in their order. */
  data(rows: Int32Array): ChunkData
  /** By row: numbers in the order of its values; nulls first, texts by their bytes. */
  keys(count: number): ArrayLike<number>
  /** Keeps some rows, in their order, as the first ones. */
  keep(rows: Int32Array): void
}

/** Makes the store of a column. */
export function storeOf({ type, encoding }: Column): Store {
  if (type === 'boolean') return new Flags()
  if (encoding === 'dictionary') return new Codes()
  return type === 'string' ? new Texts() : new Numbers(encoding === 'delta')
}

/** Numbers: NaN is null. */
export class Numbers implements Store {
  /** Empty until the column has a value. */
  numbers = new Float64Array(0)
  private capacity = 0

  constructor(private readonly isDelta: boolean) {}

  reserve(capacity: number): void {
    this.capacity = capacity
    if (this.numbers.length > 0) this.use()
  }

  /** Makes room for values: the column has some. */
  use(): void {
    const from = this.numbers.length
    if (from >= this.capacity) return
    this.numbers = resized(this.numbers, this.capacity)
    this.numbers.fill(NaN, from)
  }

  set(row: number, value: Value): void {
    if (this.numbers.length === 0) {
      if (value === null) return
      this.use()
    }
    this.numbers[row] = value === null ? NaN : (value as number)
  }

  data(rows: Int32Array): ChunkData {
    const numbers = new Float64Array(rows.length)
    if (this.numbers.length === 0) numbers.fill(NaN)
    else for (let i = 0; i < rows.length; i++) numbers[i] = this.numbers[rows[i]!]!
    return { kind: 'numbers', numbers, isDelta: this.isDelta }
  }

  keys(count: number): ArrayLike<number> {
    if (this.numbers.length === 0) return new Float64Array(count)
    return this.numbers.subarray(0, count).map((value) => (Number.isNaN(value) ? -Infinity : value))
  }

  keep(rows: Int32Array): void {
    if (this.numbers.length === 0) return
    for (let i = 0; i < rows.length; i++) this.numbers[i] = this.numbers[rows[i]!]!
  }
}

/** Numbers and texts of few distinct values, as codes; -1 is null. */
export class Codes implements Store {
  /** Empty until the column has a value. */
  codes = new Int32Array(0)
  private values: Item[] = []
  private readonly known = new Map<Item, number>()
  private readonly direct = new Int32Array(DIRECT).fill(-1)
  private capacity = 0
  /** Another number whenever codes of before are no longer valid. */
  generation = 0

  reserve(capacity: number): void {
    this.capacity = capacity
    if (this.codes.length > 0) this.use()
  }

  /** Makes room for codes: the column has some. */
  use(): void {
    const from = this.codes.length
    if (from >= this.capacity) return
    this.codes = resized(this.codes, this.capacity)
    this.codes.fill(-1, from)
  }

  /** The code of a value, valid until the generation changes. */
  codeOf(value: Item | null): number {
    if (value === null) return -1
    if (this.codes.length === 0) this.use()
    if (typeof value === 'number' && value >= 0 && value < DIRECT && Number.isInteger(value)) {
      const code = this.direct[value]!
      if (code >= 0) return code
      this.direct[value] = this.values.length
      return this.values.push(value) - 1
    }
    // One value has one code, whichever type it comes as.
    if (typeof value === 'bigint' && Number.isSafeInteger(Number(value))) return this.codeOf(Number(value))
    return getOrMake(this.known, value, () => this.values.push(value) - 1)
  }

  set(row: number, value: Value): void {
    const code = this.codeOf(value as Item | null)
    if (this.codes.length > 0) this.codes[row] = code
  }

  data(rows: Int32Array): ChunkData {
    const codes = new Int32Array(rows.length)
    if (this.codes.length === 0) codes.fill(-1)
    else for (let i = 0; i < rows.length; i++) codes[i] = this.codes[rows[i]!]!
    const { values } = this
    return { kind: 'codes', codes, values }
  }

  keys(count: number): ArrayLike<number> {
    if (this.codes.length === 0) return new Float64Array(count)
    const { values } = this
    const order = values.map((_, code) => code).sort((a, b) => (isBefore(values[a]!, values[b]!) ? -1 : 1))
    const ranks = new Int32Array(values.length)
    for (const [rank, code] of order.entries()) ranks[code] = rank
    return this.codes.subarray(0, count).map((code) => (code < 0 ? -1 : ranks[code]!))
  }

  keep(rows: Int32Array): void {
    if (this.codes.length === 0) return
    for (let i = 0; i < rows.length; i++) this.codes[i] = this.codes[rows[i]!]!
    if (this.values.length > VALUES_MAX) this.renew(rows.length)
  }

  /** Forgets values that no row has. */
  private renew(count: number): void {
    const kept = Array.from(this.codes.subarray(0, count), (code) => (code < 0 ? null : this.values[code]!))
    this.values = []
    this.known.clear()
    this.direct.fill(-1)
    this.generation++
    for (const [row, value] of kept.entries()) this.set(row, value)
  }
}

/** Order of values in files: that of texts is of their bytes in UTF-8, which is that of code points. */
function isBefore(a: Item, b: Item): boolean {
  if (typeof a !== 'string' || typeof b !== 'string') return a < b
  const length = Math.min(a.length, b.length)
  let i = 0
  while (i < length && a.charCodeAt(i) === b.charCodeAt(i)) i++
  if (i === length) return a.length < b.length
  const [x, y] = [a.charCodeAt(i), b.charCodeAt(i)]
  // Halves of a pair (U+10000 and above) come after all other characters, also after those from U+E000.
  return isHalf(x) === isHalf(y) ? x < y : isHalf(y)
}

const isHalf = (unit: number) => unit >= 0xd800 && unit < 0xe000

/** Texts that are all different. */
class Texts implements Store {
  private texts: (string | null)[] = []

  reserve(): void {}

  set(row: number, value: Value): void {
    while (this.texts.length < row) this.texts.push(null)
    this.texts[row] = value as string | null
  }

  data(rows: Int32Array): ChunkData {
    return { kind: 'texts', texts: Array.from(rows, (row) => this.texts[row] ?? null) }
  }

  keys(count: number): ArrayLike<number> {
    return new Float64Array(count)
  }

  keep(rows: Int32Array): void {
    this.texts = Array.from(rows, (row) => this.texts[row] ?? null)
  }
}

/** Yes or no. */
export class Flags implements Store {
  flags = new Uint8Array(0)

  reserve(capacity: number): void {
    this.flags = resized(this.flags, capacity)
  }

  set(row: number, value: Value): void {
    this.flags[row] = value === true ? 1 : 0
  }

  data(rows: Int32Array): ChunkData {
    const flags = new Uint8Array(rows.length)
    for (let i = 0; i < rows.length; i++) flags[i] = this.flags[rows[i]!]!
    return { kind: 'flags', flags }
  }

  keys(count: number): ArrayLike<number> {
    return this.flags.subarray(0, count)
  }

  keep(rows: Int32Array): void {
    for (let i = 0; i < rows.length; i++) this.flags[i] = this.flags[rows[i]!]!
  }
}
