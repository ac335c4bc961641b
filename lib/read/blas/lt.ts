import { computeOf, type Found, productOf, transposeOf, typesOf } from './calls.ts'

// Lines of cuBLASLt (CUBLASLT_LOG_LEVEL=2) and hipBLASLt (HIPBLASLT_LOG_LEVEL=2), which have one grammar:
//
//   [2026-05-04 15:08:47][cublasLt][53055][Trace][cublasLtMatmul] A=0X32F600000 Adesc=[type=R_16BF rows=2048 cols=1024 ld=2048] …
//   [2025-02-28 11:24:46][HIPBLASLT][1862601][Trace][rocblaslt_matmul] A=0x7f667d700000 Adesc=[type=R_16BF rows=48 …] …

const LINE =
  /^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\]\[(cublasLt|HIPBLASLT)\](?:\[\d+\])?\[(Trace|Api|Info|Hints?|Error|\w+)\]\[(\w+)\]\s?(.*)$/

/** A line of these libraries. */
export interface LtLine {
  /** Local time, without a zone. */
  readonly time: string
  /** The call; `unreadable`: without its sizes; undefined: none. */
  readonly found: Found | 'unreadable' | undefined
}

/** Reads a line; undefined: it is of no such library. */
export function readLtLine(text: string): LtLine | undefined {
  const [, time, logger, level, name, rest] = LINE.exec(text) ?? []
  if (time === undefined) return undefined
  const isCall = level === 'Trace' && /matmul$/i.test(name!)
  return { time, found: isCall ? callOf(logger === 'cublasLt' ? 'cublaslt' : 'hipblaslt', name!, rest!) : undefined }
}

function callOf(library: 'cublaslt' | 'hipblaslt', name: string, text: string): Found | 'unreadable' {
  const fields = fieldsOf(text)
  const [a, b, d] = ['Adesc', 'Bdesc', 'Ddesc'].map((key) => fieldsOf(fields.get(key) ?? ''))
  const compute = fieldsOf(fields.get('computeDesc') ?? '')
  // Without transposition the key is missing.
  const [ofA, ofB] = ['a', 'b'].map(
    (which) => transposeOf(compute.get(`trans${which}`) ?? compute.get(`trans${which.toUpperCase()}`)) || 'N',
  )
  const k = a!.get(ofA === 'N' ? 'cols' : 'rows')
  const sizes = { m: d!.get('rows'), n: d!.get('cols'), k }
  const product = productOf(sizes, `${ofA}${ofB}`, d!.get('batchCount') ?? d!.get('batch'))
  if (!product) return 'unreadable'
  const facts = {
    library,
    name,
    product,
    problem: '',
    types: typesOf(a!.get('type'), b!.get('type'), d!.get('type')),
    compute: computeOf(compute.get('computeType') ?? ''),
    algorithm: algorithmOf(fieldsOf(fields.get('algo') ?? '')),
  }
  return { library, facts, count: 1, form: 'trace' }
}

/** `67 tile 64x32 stages 64xAUTO`; empty without an algorithm. */
function algorithmOf(algo: ReadonlyMap<string, string>): string {
  const id = algo.get('algoId')
  if (id === undefined) return ''
  const [tile, stages, split] = ['tile', 'stages', 'numSplitsK'].map((key) => algo.get(key))
  const parts = [
    id,
    ...(tile === undefined ? [] : [`tile ${tile.replace('MATMUL_TILE_', '')}`]),
    ...(stages === undefined ? [] : [`stages ${stages.replace('MATMUL_STAGES_', '')}`]),
    ...(split === undefined || split === '1' ? [] : [`split-k ${split}`]),
  ]
  return parts.join(' ')
}

/** `key=value` and `key=[…]`, separated by spaces; brackets nest. */
function fieldsOf(text: string): Map<string, string> {
  const fields = new Map<string, string>()
  const key = /(\w+)=/y
  for (let at = 0; at < text.length; ) {
    key.lastIndex = at
    const found = key.exec(text)
    if (!found) {
      at++
      continue
    }
    const start = key.lastIndex
    const end = text[start] === '[' ? endOfBrackets(text, start) : endOfWord(text, start)
    fields.set(found[1]!, text[start] === '[' ? text.slice(start + 1, end - 1) : text.slice(start, end))
    at = end
  }
  return fields
}

function endOfWord(text: string, start: number): number {
  const space = text.indexOf(' ', start)
  return space < 0 ? text.length : space
}

/** After the bracket that closes the one at `start`. */
function endOfBrackets(text: string, start: number): number {
  let depth = 0
  for (let at = start; at < text.length; at++) {
    if (text[at] === '[') depth++
    else if (text[at] === ']' && --depth === 0) return at + 1
  }
  return text.length
}
