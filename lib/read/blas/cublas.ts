import { computeOf, type Found, isProduct, productOf, transposesOf, typesByName, typesOf } from './calls.ts'

// A record of cuBLAS (CUBLAS_LOGINFO_DBG=1, cublasLoggerConfigure):
//
//   I! cuBLAS (v13.4.1) function cublasStatus_t cublasSgemm_v2(cublasHandle_t, …) called:
//   i!  transa: type=cublasOperation_t; val=CUBLAS_OP_T(1)
//   i!  m: type=int; val=512
//   i! Time: 2026-09-11T18:39:31 elapsed from start 0.000000 minutes or 0.000000 seconds
//   i!Process=14477; Thread=137882905268224; GPU=0; Handle=…; StreamId=…; MathMode=CUBLAS_DEFAULT_MATH

const FIRST = /^I! cuBLAS \(v([\d.]+)\) function \w+ (?:__cdecl )?(\w+)\(/
const PARAMETER = /^i! {2}(\w+): type=[^;]*; val=(.*)$/
const TIME = /^i! Time: (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)/
/** Parameters of a function that are held. */
const PARAMETERS_MAX = 64

/** A record of which the first lines were read. */
export class CublasRecord {
  /** Local time, without a zone; undefined until its line. */
  time: string | undefined
  private readonly parameters = new Map<string, string>()

  private constructor(
    readonly version: string,
    readonly name: string,
  ) {}

  /** The record that begins with a line. */
  static begin(line: string): CublasRecord | undefined {
    const [, version, name] = FIRST.exec(line) ?? []
    return version === undefined ? undefined : new CublasRecord(version, name!)
  }

  /** Takes a further line; false: it is not of the record. */
  take(line: string): boolean {
    if (!line.startsWith('i!')) return false
    const [, key, value] = PARAMETER.exec(line) ?? []
    if (key !== undefined && this.parameters.size < PARAMETERS_MAX) this.parameters.set(key, value!.trim())
    this.time ??= TIME.exec(line)?.[1]
    return true
  }

  /** The call; `unreadable`: without its sizes; undefined: no matrix product. */
  finish(): Found | 'unreadable' | undefined {
    const { name, parameters } = this
    if (!isProduct(name)) return undefined
    const isVector = /gemv/i.test(name)
    const [m, n] = [parameters.get('m'), parameters.get('n')]
    const sizes = isVector ? { m, n: '1', k: n } : { m, n, k: parameters.get('k') }
    const transposes = isVector ? '' : transposesOf(parameters.get('transa'), parameters.get('transb'))
    const product = productOf(sizes, transposes, parameters.get('batchCount'))
    if (!product) return 'unreadable'
    const types =
      typesOf(parameters.get('Atype'), parameters.get('Btype'), parameters.get('Ctype')) || typesByName(name)
    const compute = computeOf(parameters.get('computeType') ?? '')
    const algorithm = (parameters.get('algo') ?? '').replace(/\(-?\d+\)$/, '')
    const facts = { library: 'cublas', name, product, problem: '', types, compute, algorithm } as const
    return { library: 'cublas', facts, count: 1, form: 'call' }
  }
}
