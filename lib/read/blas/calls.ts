import type { BlasCall, BlasLibrary, BlasProduct } from '../../model/blas-events.ts'
import { getOrMake } from '../../model/default-map.ts'

/** Sizes above this are damaged. */
const DIMENSION_MAX = 2 ** 31
/** A call before it has a number. */
export type CallFacts = Omit<BlasCall, 'id'>

/** The distinct calls of an input. */
export class CallSet {
  private readonly calls = new Map<string, BlasCall>()

  /** The call with these facts, new or known. */
  of(facts: CallFacts): BlasCall {
    const { library, name, product, problem, types, compute, algorithm } = facts
    const { m, n, k, batch, transposes } = product ?? { m: 0, n: 0, k: 0, batch: 0, transposes: '' }
    const key = [library, name, m, n, k, batch, transposes, problem, types, compute, algorithm].join('|')
    return getOrMake(this.calls, key, () => ({ id: this.calls.size, ...facts }))
  }
}

/** A product with sizes from texts; undefined where one is no positive integer. */
export function productOf(
  sizes: Readonly<Record<'m' | 'n' | 'k', string | undefined>>,
  transposes: string,
  batch = '1',
): BlasProduct | undefined {
  const [m, n, k, count] = [sizes.m, sizes.n, sizes.k, batch].map(sizeOf) as [number, number, number, number]
  return [m, n, k, count].every((size) => size > 0) ? { m, n, k, batch: count, transposes } : undefined
}

/** NaN for anything but an integer that a size may have. */
export function sizeOf(text: string | undefined): number {
  const size = text !== undefined && /^\d{1,10}$/.test(text) ? Number(text) : NaN
  return size <= DIMENSION_MAX ? size : NaN
}

/** `R_16BF` and `CUDA_R_16BF(14)` become `bf16`, `bf16_r` too; `R_8F_E4M3` `f8_e4m3`; `C_32F` `c32`. Others stay. */
export function typeOf(text: string): string {
  const plain = text.replace(/\(\d+\)$/, '').replace(/^(?:CUDA|HIPBLAS|HIP)_/, '')
  const [, field, bits, kind = '', rest = ''] = /^([RC])_(\d+)(F|BF|I|U)(_\w+)?$/.exec(plain) ?? []
  if (bits !== undefined) return `${field === 'C' ? 'c' : kind.toLowerCase()}${bits}${rest.toLowerCase()}`
  return plain.replace(/_r$/, '')
}

/** `CUBLAS_COMPUTE_32F_FAST_TF32(77)` becomes `f32 fast tf32`, `COMPUTE_32I` `i32`, `f32_r` `f32`. */
export function computeOf(text: string): string {
  const plain = text
    .replace(/\(\d+\)$/, '')
    .replace(/^(?:CU|HIP)BLAS_/, '')
    .replace(/^COMPUTE_/, '')
  const [, bits, kind = '', rest = ''] = /^(\d+)(F|I)(\w*)$/.exec(plain) ?? []
  if (bits === undefined) return typeOf(plain)
  return `${kind.toLowerCase()}${bits}${rest.toLowerCase().replaceAll('_', ' ')}`
}

/** Types of A, B and the result as one text; one of them missing: none. */
export function typesOf(...types: readonly (string | undefined)[]): string {
  return types.some((type) => type === undefined || type === '') ? '' : types.map((type) => typeOf(type!)).join(' ')
}

/** Types of functions whose name contains them: `cublasSgemm_v2`, `rocblas_hgemm`. */
const LETTERS: Readonly<Record<string, string>> = { s: 'f32', d: 'f64', c: 'c32', z: 'c64', h: 'f16' }

/** Types of A, B and C, which are one, by the letter before `gemm` or `gemv`; empty where there is none. */
export function typesByName(name: string): string {
  const letter = /(?:^cublas|_)([sdczh])gem[mv]/i.exec(name)?.[1]?.toLowerCase()
  const type = letter && LETTERS[letter]
  return type ? `${type} ${type} ${type}` : ''
}

/** Is it a matrix product, by the name of the function? */
export const isProduct = (name: string) => /gemm|matmul|gemv/i.test(name)

/** One of `N`, `T`, `C` of `CUBLAS_OP_T(1)`, `OP_T`, `T`; empty for anything else. */
export function transposeOf(text: string | undefined): string {
  return /^(?:(?:CU|HIP)?(?:BLAS)?_?OP_)?([NTC])(?:\(\d+\))?$/.exec(text ?? '')?.[1] ?? ''
}

/** Both transposes as one text; one of them missing: none. */
export function transposesOf(a: string | undefined, b: string | undefined): string {
  const [ofA, ofB] = [transposeOf(a), transposeOf(b)]
  return ofA === '' || ofB === '' ? '' : ofA + ofB
}

/** What a line of a log contains, before it has a time. */
export interface Found {
  readonly library: BlasLibrary
  readonly facts: CallFacts
  readonly count: number
  /** The other kind of line that the library writes of the same call may add the algorithm: see {@link merged}. */
  readonly form: 'call' | 'trace' | 'bench'
}

/** One call of which a library wrote two lines, a trace and a command of its benchmark; undefined: these are two calls. */
export function merged(first: Found, second: Found): Found | undefined {
  if (first.library !== second.library || first.form === second.form) return undefined
  if (first.form === 'call' || second.form === 'call') return undefined
  const [a, b] = [first.facts, second.facts]
  const isSame = JSON.stringify(a.product) === JSON.stringify(b.product)
  if (!isSame) return undefined
  const trace = first.form === 'trace' ? a : b
  const bench = first.form === 'trace' ? b : a
  const facts = {
    ...trace,
    types: bench.types || trace.types,
    compute: bench.compute || trace.compute,
    algorithm: bench.algorithm || trace.algorithm,
  }
  return { ...first, facts, form: 'call' }
}
