import { MEASURED_TYPES } from '../../generated/analysis-schema.ts'
import { typeNamed } from '../../model/ggml-types.ts'
import {
  checkDocument,
  type DocumentKind,
  documentOf,
  foundOf,
  wrongDocument,
  wrongMeasurement,
} from '../common/json-check.ts'
import type { AttentionShape } from '../series/figures.ts'
import { isAsInFile, isIn, type Memory } from './memory.ts'

/** Version of {@link KernelTimes}. */
export const KERNELS_SCHEMA = 'ggml2perfetto.kernels/1'

/** What ggml's own matrix products take on a machine: what `ggml2perfetto peaks <log> --types …` measures. Times are ns. */
export interface KernelTimes {
  readonly schema: typeof KERNELS_SCHEMA
  /** The processor's name, and the number of CPUs of the machine. */
  readonly cpu: string
  readonly cpus: number
  /** Version of ggml. */
  readonly build: string
  readonly products: readonly ProductTime[]
  /** Of flash attention; earlier versions did not measure it. */
  readonly attention?: readonly AttentionTime[] | undefined
  readonly nodes: readonly NodeTime[]
}

/** A product of a matrix of weights with the activations of some tokens, with its barrier. */
export interface ProductTime {
  readonly type: string
  /** Of the matrix: elements of a row, and rows. */
  readonly columns: number
  readonly rows: number
  /** Matrices, or sets of experts, that were read by turns: each is read again after all others. */
  readonly copies: number
  /** Matrices of a set, and how many of them each token uses; 0 or absent: no experts. */
  readonly experts?: number | undefined
  readonly used?: number | undefined
  /** ggml's type of buffer that they were in, such as `CPU_REPACK`; or `mapped file`. */
  readonly buffer: string
  readonly tokens: number
  readonly threads: number
  /** Of a node that was measured in several rounds: the least of their medians, the second least, and the least of all; without `second_ns`, of one round. */
  readonly ns: number
  readonly second_ns?: number | undefined
  readonly best_ns: number
}

/** Flash attention of some tokens over a cache, with its barrier. */
export interface AttentionTime extends AttentionShape {
  /** Caches that were read by turns. */
  readonly copies: number
  readonly tokens: number
  /** One token of each of so many sequences, which share the cache; absent: of one sequence. */
  readonly sequences?: number | undefined
  /** Tokens before them in the cache, of their own sequence, and its places that are read, with masked ones. */
  readonly context: number
  readonly cache: number
  readonly threads: number
  /** As of a product. */
  readonly ns: number
  readonly second_ns?: number | undefined
  readonly best_ns: number
}

/** A node that computes nearly nothing: what its start and its barrier take. */
export interface NodeTime {
  readonly threads: number
  readonly ns: number
  readonly second_ns?: number | undefined
  readonly best_ns: number
}

/** A matrix, or a set of experts. */
export type Matrix = Pick<ProductTime, 'type' | 'columns' | 'rows' | 'experts' | 'used'>

/** What is looked up: `bytes`, what is read between two reads of a matrix. */
export interface Wanted extends Matrix, Pick<ProductTime, 'tokens' | 'threads'> {
  readonly bytes: number
  readonly memory: Memory
}

/** More weights than this are in no cache: matrices of so many bytes are measured in place of all. */
export const BYTES_MAX = 512 * 2 ** 20
/** From so many tokens on, a product takes about as long for each of them. */
const MANY_TOKENS = 32
/** Matrices whose bytes together differ by this factor are in the same caches. */
const BYTES_ALIKE = 1.6
/** The error of a measurement whose rounds differ by more than this is not known better: the least time is of the round that was disturbed least. */
const ROUNDS_ERROR_MAX = 1
/** Attention is made from a measurement with a context that differs by this factor at most. */
const CONTEXTS_ALIKE = 1.5

/** Bytes of a matrix, of experts of each. */
export function bytesOf({ type, columns, rows }: Pick<ProductTime, 'type' | 'columns' | 'rows'>): number {
  const { elements, bytes } = typeNamed(type)!
  return ((columns * rows) / elements) * bytes
}

/** How many are read by turns where so many bytes are read between two reads of one. */
export function copiesOf(matrix: Matrix, bytes: number): number {
  const own = bytesOf(matrix)
  const fitting = Math.floor(BYTES_MAX / (own * (matrix.experts || 1)))
  return Math.max(Math.min(Math.round(bytes / (own * (matrix.used || 1))), fitting), 1)
}

/** What was measured, and the share by which it may be off: two rounds of the measurement differ by it. */
export interface Measured {
  readonly ns: number
  readonly error: number
}

/** The time of a product; undefined where it was not measured. That of many tokens is made from the nearest number of them, up to twice or half of it. */
export function productTime({ products }: KernelTimes, wanted: Wanted): Measured | undefined {
  const { type, columns, rows, tokens, threads } = wanted
  const copies = copiesOf(wanted, wanted.bytes)
  const distanceOf = (product: ProductTime) => Math.abs(Math.log(product.tokens / tokens))
  const found = products.filter(
    (product) =>
      product.type.toLowerCase() === type.toLowerCase() &&
      product.columns === columns &&
      product.rows === rows &&
      (product.experts ?? 0) === (wanted.experts ?? 0) &&
      (product.used ?? 0) === (wanted.used ?? 0) &&
      product.threads === threads &&
      isIn(wanted.memory, product.buffer) &&
      (tokens < MANY_TOKENS ? product.tokens === tokens : distanceOf(product) <= Math.LN2) &&
      Math.abs(Math.log(product.copies / copies)) <= Math.log(BYTES_ALIKE),
  )
  // llama.cpp asks for memory that repacks first.
  const orderOf = ({ buffer }: ProductTime) => Number(isAsInFile(buffer))
  const [nearest] = found.toSorted((a, b) => orderOf(a) - orderOf(b) || distanceOf(a) - distanceOf(b))
  if (!nearest) return undefined
  const { ns, second_ns = ns } = nearest
  return { ns: (ns * tokens) / nearest.tokens, error: Math.min(second_ns / ns - 1, ROUNDS_ERROR_MAX) }
}

/** Attention of some tokens after others. */
export type Attended = Pick<AttentionTime, 'tokens' | 'sequences' | 'context' | 'threads'>

/** The time of attention, in ns; undefined where it was not measured. It is made from the nearest context, by the places that tokens see. */
export function attentionNs(
  { attention = [] }: KernelTimes,
  shape: AttentionShape,
  wanted: Attended,
): number | undefined {
  const seen = ({ tokens, context }: Omit<Attended, 'threads'>) => tokens * context + (tokens * (tokens + 1)) / 2
  const distanceOf = (time: AttentionTime) => Math.abs(Math.log(seen(time) / seen(wanted)))
  const found = attention.filter(
    (time) =>
      ATTENTION_KEYS.every((key) => time[key] === shape[key]) &&
      time.threads === wanted.threads &&
      time.tokens === wanted.tokens &&
      (time.sequences ?? 1) === (wanted.sequences ?? 1) &&
      distanceOf(time) <= Math.log(CONTEXTS_ALIKE),
  )
  const [nearest] = found.toSorted((a, b) => distanceOf(a) - distanceOf(b))
  return nearest && (nearest.ns * seen(wanted)) / seen(nearest)
}

const ATTENTION_KEYS = ['head_size', 'value_size', 'heads', 'kv_heads', 'k_type', 'v_type'] as const

/** The time of a node that computes nearly nothing, in ns; undefined where it was not measured. */
export const nodeNs = ({ nodes }: KernelTimes, threads: number): number | undefined =>
  nodes.find((node) => node.threads === threads)?.ns

const KIND: DocumentKind = {
  title: 'the JSON that `ggml2perfetto peaks <log> --types … --json` prints',
  types: MEASURED_TYPES,
  fields: MEASURED_TYPES['KernelTimes']!,
  wrongNumber: wrongMeasurement(['context', 'experts', 'used']),
}

/** The content of a file of `peaks <log> --types … --json`. Throws UsageError that states where it is none; `name` is that of the file there. */
export function parseKernelFile(text: string, name = 'the file of products'): KernelTimes {
  const document = documentOf(text, name, KIND)
  checkDocument(document, name, KIND)
  const times = document as KernelTimes
  for (const [i, { type }] of times.products.entries())
    if (!typeNamed(type))
      throw wrongDocument(name, KIND, `products[${i}].type: a type of ggml`, foundOf(type, { is: [] }))
  return times
}
