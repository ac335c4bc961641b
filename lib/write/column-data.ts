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

/** By row: 1 where there is a value. */
export function presenceOf(data: ChunkData): Uint8Array {
  switch (data.kind) {
    case 'codes':
      return Uint8Array.from(data.codes, (code) => (code < 0 ? 0 : 1))
    case 'numbers':
      return Uint8Array.from(data.numbers, (value) => (Number.isNaN(value) ? 0 : 1))
    case 'texts':
      return Uint8Array.from(data.texts, (text) => (text === null ? 0 : 1))
    case 'flags':
      return new Uint8Array(data.flags.length).fill(1)
  }
}
