import {
  computeOf,
  type Found,
  isProduct,
  productOf,
  sizeOf,
  transposesOf,
  typeOf,
  typesByName,
  typesOf,
} from './calls.ts'

// Lines of rocBLAS (ROCBLAS_LAYER=1: trace, 2: bench, 4: profile) and of hipBLASLt (HIPBLASLT_LOG_MASK=32: bench, 64: profile). None has a time.
//
//   rocblas_gemm_ex,N,N,1024,16,27,1,0x7be683213a00,f32_r,1024,0x7be683203000,f32_r,27,0,0x7be683203a00,f32_r,1024,…,f32_r,0,0,none,…
//   ./rocblas-bench -f gemm_ex --transposeA N --transposeB N -m 1024 -n 16 -k 27 --alpha 1 --a_type f32_r --lda 1024 …
//   hipblaslt-bench --api_method c -m 48 -n 176 -k 1024 --lda 48 … --transA N --transB T --batch_count 1 … --solution_index 218160 …
//   - { rocblas_function: "rocblas_gemm_ex", a_type: "bf16_r", …, transA: 'T', transB: 'N', M: 12288, N: 4547, K: 4608, …, call_count: 136 }

const BENCH = /^(?:\S*\/)?(hipblaslt|rocblas)-bench\s+(.*)/
const TRACE = /^(rocblas_\w+),(.*)$/
const PROFILE = /^- \{ ?(.*)\}\s*$/
/** Types of elements in the traces. */
const TYPE = /^(?:bf|f|i|u)\d+(?:_\w+)?_[rc]$/

/** Reads a line: a call; `unreadable`: a product without its sizes; `other`: another function; undefined: no such line. */
export function readRocmLine(text: string): Found | 'unreadable' | 'other' | undefined {
  const [, program, options] = BENCH.exec(text) ?? []
  if (program !== undefined) return ofBench(program as 'hipblaslt' | 'rocblas', options!)
  const [, name, values] = TRACE.exec(text) ?? []
  if (name !== undefined) return isProduct(name) ? ofTrace(name, values!.split(',')) : 'other'
  const [, entries] = PROFILE.exec(text) ?? []
  return entries === undefined ? undefined : ofProfile(entries)
}

/** The last value of each option of a command. */
function optionsOf(text: string): Map<string, string> {
  const options = new Map<string, string>()
  const words = text.trim().split(/\s+/)
  for (let i = 0; i < words.length; i++) {
    const option = /^--?([A-Za-z]\w*)$/.exec(words[i]!)?.[1]
    if (option === undefined) continue
    const value = words[i + 1]
    options.set(option, value === undefined || /^--?[A-Za-z]/.test(value) ? '' : value)
  }
  return options
}

function ofBench(library: 'hipblaslt' | 'rocblas', text: string): Found | 'unreadable' | 'other' {
  const options = optionsOf(text)
  const name =
    library === 'rocblas' ? `rocblas_${options.get('f') ?? options.get('function') ?? ''}` : 'hipblasLtMatmul'
  if (!isProduct(name)) return 'other'
  const either = (...keys: readonly string[]) =>
    keys.map((key) => options.get(key)).find((value) => value !== undefined)
  const transposes = transposesOf(either('transposeA', 'transA'), either('transposeB', 'transB'))
  const product = productOf(
    { m: options.get('m'), n: options.get('n'), k: options.get('k') },
    transposes,
    options.get('batch_count'),
  )
  if (!product) return 'unreadable'
  const one = either('r', 'precision')
  const types = typesOf(
    options.get('a_type') ?? one,
    options.get('b_type') ?? one,
    options.get('d_type') ?? options.get('c_type') ?? one,
  )
  const compute = computeOf(either('compute_type') ?? '')
  const algorithm = solutionOf(options.get('algo'), options.get('solution_index'))
  return { library, facts: { library, name, product, problem: '', types, compute, algorithm }, count: 1, form: 'bench' }
}

/** `solution 56073`, `algorithm 1`; empty where the library chose by itself and did not write what. */
function solutionOf(algo: string | undefined, solution: string | undefined): string {
  if (solution !== undefined && solution !== '0' && solution !== '') return `solution ${solution}`
  return algo === undefined || algo === '0' || algo === '' ? '' : `algorithm ${algo}`
}

function ofTrace(name: string, values: readonly string[]): Found | 'unreadable' {
  const isVector = /gemv/.test(name)
  const [a, b] = values
  const [m, n, k] = isVector ? [values[1], '1', values[2]] : values.slice(2, 5)
  const batch = /batched/.test(name) ? (batchOf(values) ?? '') : '1'
  const product = productOf({ m, n, k }, isVector ? '' : transposesOf(a, b), batch)
  if (!product) return 'unreadable'
  const types = values.filter((value) => TYPE.test(value))
  const [ofA, ofB, , ofD, compute = ''] = types // of A, B, C, D, and for computing
  const facts = {
    library: 'rocblas' as const,
    name,
    product,
    problem: '',
    types: typesOf(ofA, ofB, ofD) || typesByName(name),
    compute: computeOf(compute),
    algorithm: types.length < 5 ? '' : solutionsAfter(values),
  }
  return { library: 'rocblas', facts, count: 1, form: 'trace' }
}

/** After the type of the computation: algorithm, solution. */
function solutionsAfter(values: readonly string[]): string {
  const compute = values.findLastIndex((value) => TYPE.test(value))
  return solutionOf(values[compute + 1], values[compute + 2])
}

/** The number of batches is before the type of the computation; functions without types have it last. */
function batchOf(values: readonly string[]): string | undefined {
  const compute = values.findLastIndex((value) => TYPE.test(value))
  if (compute > 0) return values[compute - 1]
  return values.findLast((value) => /^\d+$/.test(value))
}

function ofProfile(text: string): Found | 'unreadable' | 'other' | undefined {
  const parameters = new Map(
    [...text.matchAll(/(?<!\w)(\w+):\s*("[^"]*"|'[^']*'|[^,\s]+)/g)].map(([, key, value]) => [
      key!,
      value!.replace(/^["']|["']$/g, ''),
    ]),
  )
  const rocblas = parameters.get('rocblas_function')
  const called = rocblas ?? parameters.get('function')
  if (called === undefined || !parameters.has('call_count')) return undefined
  if (!isProduct(called)) return 'other'
  const transposes = transposesOf(parameters.get('transA'), parameters.get('transB'))
  const product = productOf(
    { m: parameters.get('M'), n: parameters.get('N'), k: parameters.get('K') },
    transposes,
    parameters.get('batch_count'),
  )
  const count = sizeOf(parameters.get('call_count'))
  if (!product || !(count > 0)) return 'unreadable'
  const library = rocblas === undefined ? 'hipblaslt' : 'rocblas'
  const facts = {
    library,
    name: rocblas ?? 'hipblasLtMatmul',
    product,
    problem: '',
    types:
      typesOf(
        parameters.get('a_type'),
        parameters.get('b_type'),
        parameters.get('d_type') ?? parameters.get('c_type'),
      ) || typesByName(called),
    compute: typeOf(parameters.get('compute_type') ?? ''),
    algorithm: solutionOf(parameters.get('algo'), parameters.get('solution_index')),
  } as const
  return { library, facts, count, form: 'call' }
}
