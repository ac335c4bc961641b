import type { BlasLibrary } from '../../model/blas-events.ts'
import type { Distribution } from '../common/figures.ts'

/** Calls of BLAS libraries and of oneDNN, from their logs. */
export interface BlasFigures {
  /** In the order in which they are found; calls that one library makes for another are in both. */
  readonly libraries: readonly BlasLibraryFigures[]
  /** Equal calls; most time first, without times most operations first, at most 200. */
  readonly calls: readonly BlasRow[]
  /** The further ones. */
  readonly other_calls: BlasRest | null
}

/** All calls of a library. */
export interface BlasLibraryFigures {
  readonly library: BlasLibrary
  readonly calls: number
  /** Matrix products. */
  readonly products: number
  /** Of the products; a multiplication and an addition count 2. */
  readonly flop: number
  /** Sum of the durations; null where the log has none. */
  readonly time_ns: number | null
}

/** Equal calls. */
export interface BlasRow {
  readonly library: BlasLibrary
  /** Function; of oneDNN, the primitive. */
  readonly name: string
  /** Null where it is no matrix product. A has m × k elements, B k × n, as the library counts them. */
  readonly m: number | null
  readonly n: number | null
  readonly k: number | null
  readonly batch: number | null
  /** Of A and B: two of `N`, `T`, `C`; empty where they are not known. */
  readonly transposes: string
  /** The library's description of what is no product. */
  readonly problem: string
  /** Of A, B and the result; empty where they are not known. */
  readonly types: string
  /** Type in which it computes; empty where it is not known. */
  readonly compute: string
  /** Algorithm, solution or implementation that was chosen; empty where it is not known. */
  readonly algorithm: string
  readonly calls: number
  readonly flop: number
  readonly time_ns: number | null
  /** `flop` by `time_ns`. */
  readonly flop_per_s: number | null
  readonly duration: Distribution | null
}

/** What the table of calls leaves out, summed up. */
export interface BlasRest {
  /** Kinds of calls. */
  readonly rows: number
  readonly calls: number
  readonly flop: number
  readonly time_ns: number | null
}
