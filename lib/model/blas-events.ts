import { type Bounds, wrongAmount, wrongNumber, wrongSpan } from './bounds.ts'

/** Libraries whose logs of calls are read. */
export const BLAS_LIBRARIES = ['cublas', 'cublaslt', 'hipblaslt', 'rocblas', 'onednn'] as const
/** A library of {@link BLAS_LIBRARIES}. */
export type BlasLibrary = (typeof BLAS_LIBRARIES)[number]

/** Their names, as their makers write them. */
export const BLAS_TITLES: Readonly<Record<BlasLibrary, string>> = {
  cublas: 'cuBLAS',
  cublaslt: 'cuBLASLt',
  hipblaslt: 'hipBLASLt',
  rocblas: 'rocBLAS',
  onednn: 'oneDNN',
}

/** A matrix product C = A · B, `batch` times: A has m × k elements, B k × n, as the library counts them (BLAS: by columns). */
export interface BlasProduct {
  readonly m: number
  readonly n: number
  readonly k: number
  readonly batch: number
  /** Transposes of A and B: two of `N`, `T`, `C`; empty where the log does not contain them. */
  readonly transposes: string
}

/** What a library computed. Calls that are equal share one: its id is a small integer, unique in the input. */
export interface BlasCall {
  readonly id: number
  readonly library: BlasLibrary
  /** Function of the library; of oneDNN, the primitive. */
  readonly name: string
  /** Undefined: no matrix product. */
  readonly product: BlasProduct | undefined
  /** The library's description of its other problems; empty for products. */
  readonly problem: string
  /** Element types of A, B and the result, such as `f16 f16 f32`; empty where the log does not contain them. */
  readonly types: string
  /** Type in which it computes, such as `f32`; empty where the log does not contain it. */
  readonly compute: string
  /** What the library chose: an algorithm, a solution or an implementation; empty where the log does not contain it. */
  readonly algorithm: string
}

/** A call of a math library, or several equal ones that its log sums up. Times are whole nanoseconds since the input's origin. */
export interface BlasEvent {
  readonly kind: 'blas'
  readonly of: BlasCall
  readonly startNs: number
  /** `startNs` where the log contains no durations. */
  readonly endNs: number
  /** Number of calls. */
  readonly count: number
  /** {@link Inferred} bits: `NoEnd`, `Order`. */
  readonly inferred: number
}

/** Its ranges. */
export const BLAS_BOUNDS: Bounds<BlasEvent> = {
  blas: (event) =>
    wrongSpan(event.startNs, event.endNs) ??
    wrongNumber('count', event.count, Number.MAX_SAFE_INTEGER) ??
    wrongAmount(event),
}

/** Floating-point operations of a call; 0 where it is no matrix product. A multiplication and an addition count 2. */
export function flopOf({ product }: BlasCall): number {
  return product ? 2 * product.m * product.n * product.k * product.batch : 0
}

/** `32×1536×512`, `8× 32×32×64`: M×N×K. */
export function shapeOf({ m, n, k, batch }: BlasProduct): string {
  return `${batch === 1 ? '' : `${batch}× `}${m}×${n}×${k}`
}
