/** Types of columns, which Parquet, Arrow and every engine have. Integers have 64 bits throughout: dictionaries make small ones small. */
export type ColumnType = 'string' | 'int64' | 'double' | 'boolean'

/**
 * How values are stored. `dictionary`: few distinct values, as names. `delta`: integers that follow one another, as times; or that are
 * all small. `plain`: any others.
 */
export type Encoding = 'dictionary' | 'delta' | 'plain'

/** A column of a table. */
export interface Column<T extends ColumnType = ColumnType, N extends boolean = boolean> {
  readonly type: T
  /** Values may be missing: not known, or not of this row. */
  readonly nullable: N
  readonly encoding: Encoding
  /** One sentence: what it is, and where its value is from. */
  readonly about: string
}

/** A table: one file of each run. */
export interface TableSchema {
  /** What one row is. */
  readonly about: string
  /** Columns by which the rows of a row group are sorted. */
  readonly sortedBy: readonly string[]
  readonly columns: Readonly<Record<string, Column>>
}

/** Value of a column in a row. Integers above 2^53 are bigints. */
export type ValueOf<T extends ColumnType> = T extends 'string'
  ? string
  : T extends 'boolean'
    ? boolean
    : T extends 'int64'
      ? number | bigint
      : number

/** A row of a table, as JavaScript's values; null is "not known". */
export type RowOf<T extends TableSchema> = {
  readonly [K in keyof T['columns']]: T['columns'][K] extends Column<infer C, infer N>
    ? ValueOf<C> | (N extends true ? null : never)
    : never
}

/** A column whose value is always known. */
function always<T extends ColumnType>(type: T, encoding: Encoding) {
  return (about: string): Column<T, false> => ({ type, nullable: false, encoding, about })
}

/** A column whose value may be missing. */
function maybe<T extends ColumnType>(type: T, encoding: Encoding) {
  return (about: string): Column<T, true> => ({ type, nullable: true, encoding, about })
}

/** Names and other texts of few distinct values. */
export const text = always('string', 'dictionary')
/** The same, where a value may be missing. */
export const textOrNull = maybe('string', 'dictionary')
/** Texts that are all different. */
export const proseOrNull = maybe('string', 'plain')
/** Small numbers of few distinct values: numbers of workers, layers, CPUs. */
export const small = always('int64', 'dictionary')
/** The same, where a value may be missing. */
export const smallOrNull = maybe('int64', 'dictionary')
/** Amounts of few distinct values: bytes, FLOP, tokens. */
export const amount = always('int64', 'dictionary')
/** The same, where a value may be missing. */
export const amountOrNull = maybe('int64', 'dictionary')
/** Times and other integers that follow one another. */
export const time = always('int64', 'delta')
/** The same, where a value may be missing. */
export const timeOrNull = maybe('int64', 'delta')
/** Numbers with fractions. */
export const fraction = always('double', 'plain')
/** The same, where a value may be missing. */
export const fractionOrNull = maybe('double', 'plain')
/** Yes or no. */
export const yes = always('boolean', 'plain')
