/** A text or a number; a bigint is one above 2^53. */
export type Item = string | number | bigint

/** A column of a file of tables. */
export interface FileColumn {
  readonly name: string
  readonly type: 'string' | 'int64' | 'double' | 'boolean'
  readonly nullable: boolean
}

/**
 * Values of a column in one row group, in the order of its rows. `codes`: indexes into `values`, -1 is null. `numbers`: NaN is null; with
 * `isDelta` Parquet stores them as differences. `flags`: 0 is false.
 */
export type ChunkData =
  | { readonly kind: 'codes'; readonly codes: Int32Array; readonly values: readonly Item[] }
  | { readonly kind: 'numbers'; readonly numbers: Float64Array; readonly isDelta: boolean }
  | { readonly kind: 'texts'; readonly texts: readonly (string | null)[] }
  | { readonly kind: 'flags'; readonly flags: Uint8Array }

/** Writes one file of a table, by row groups. */
export interface RowGroupWriter {
  /** Encodes a row group: the values of all columns, in their order. Its bytes follow those of the row groups before it. */
  encode(rows: number, data: readonly ChunkData[]): AsyncIterable<Uint8Array> | Iterable<Uint8Array>
  /** The end of the file. */
  finish(): Iterable<Uint8Array>
}

/**
 * By row: 1 where there is a value. In a column of numbers that is not nullable, NaN is one. (Loops: `Uint8Array.from` with a function took
 * half of the time of an export.)
 */
export function presenceOf(data: ChunkData, { nullable }: Pick<FileColumn, 'nullable'>): Uint8Array {
  switch (data.kind) {
    case 'codes': {
      const { codes } = data
      const isThere = new Uint8Array(codes.length)
      for (let i = 0; i < codes.length; i++) isThere[i] = codes[i]! < 0 ? 0 : 1
      return isThere
    }
    case 'numbers': {
      const { numbers } = data
      const isThere = new Uint8Array(numbers.length)
      for (let i = 0; i < numbers.length; i++) isThere[i] = nullable && Number.isNaN(numbers[i]!) ? 0 : 1
      return isThere
    }
    case 'texts':
      return Uint8Array.from(data.texts, (text) => (text === null ? 0 : 1))
    case 'flags':
      return new Uint8Array(data.flags.length).fill(1)
  }
}

/** Number of rows without a value. */
export function missingOf(isThere: Uint8Array): number {
  let missing = isThere.length
  for (let i = 0; i < isThere.length; i++) missing -= isThere[i]!
  return missing
}
