import { typeNamed } from '../../model/ggml-types.ts'

/** Version of {@link KernelTimes}. */
export const KERNELS_SCHEMA = 'ggml2perfetto.kernels/1'

/** What ggml's own matrix products take on a machine: what `ggml2perfetto peaks --types` measures. Times are ns. */
export interface KernelTimes {
  readonly schema: typeof KERNELS_SCHEMA
  /** The processor's name, and the number of CPUs of the machine. */
  readonly cpu: string
  readonly cpus: number
  /** Version of ggml. */
  readonly build: string
  readonly products: readonly ProductTime[]
  readonly nodes: readonly NodeTime[]
}

/** A product of a matrix of weights with the activations of some tokens, with its barrier. */
export interface ProductTime {
  readonly type: string
  /** Of the matrix: elements of a row, and rows. */
  readonly columns: number
  readonly rows: number
  /** Matrices that were read by turns: each is read again after all others. */
  readonly copies: number
  /** ggml's type of buffer that they were in, such as `CPU_REPACK`. */
  readonly buffer: string
  readonly tokens: number
  readonly threads: number
  /** The median, and the least. */
  readonly ns: number
  readonly best_ns: number
}

/** A node that computes nearly nothing: what its start and its barrier take. */
export interface NodeTime {
  readonly threads: number
  readonly ns: number
  readonly best_ns: number
}

/** What is looked up: `bytes`, what is read between two reads of a matrix. */
export interface Wanted extends Pick<ProductTime, 'type' | 'columns' | 'rows' | 'tokens' | 'threads'> {
  readonly bytes: number
}

/** More weights than this are in no cache: matrices of so many bytes are measured in place of all. */
export const BYTES_MAX = 512 * 2 ** 20
/** From so many tokens on, a product takes about as long for each of them. */
const MANY_TOKENS = 32
/** Matrices whose bytes together differ by this factor are in the same caches. */
const BYTES_ALIKE = 1.6

/** Bytes of a matrix. */
export function bytesOf({ type, columns, rows }: Pick<ProductTime, 'type' | 'columns' | 'rows'>): number {
  const { elements, bytes } = typeNamed(type)!
  return ((columns * rows) / elements) * bytes
}

/** The time of a product, in ns; undefined where it was not measured. That of many tokens is made from the nearest number of them, up to twice or half of it. */
export function productNs({ products }: KernelTimes, wanted: Wanted): number | undefined {
  const { type, columns, rows, tokens, threads } = wanted
  const bytes = Math.min(wanted.bytes, BYTES_MAX)
  const distanceOf = (product: ProductTime) => Math.abs(Math.log(product.tokens / tokens))
  const found = products.filter(
    (product) =>
      product.type.toLowerCase() === type.toLowerCase() &&
      product.columns === columns &&
      product.rows === rows &&
      product.threads === threads &&
      (tokens < MANY_TOKENS ? product.tokens === tokens : distanceOf(product) <= Math.LN2) &&
      Math.abs(Math.log((product.copies * bytesOf(product)) / Math.max(bytes, bytesOf(product)))) <=
        Math.log(BYTES_ALIKE),
  )
  const [nearest] = found.toSorted((a, b) => distanceOf(a) - distanceOf(b))
  return nearest && (nearest.ns * tokens) / nearest.tokens
}

/** The time of a node that computes nearly nothing, in ns; undefined where it was not measured. */
export const nodeNs = ({ nodes }: KernelTimes, threads: number): number | undefined =>
  nodes.find((node) => node.threads === threads)?.ns

/** The content of a file of `peaks --types --json`; undefined if it is none. */
export function parseKernelFile(text: string): KernelTimes | undefined {
  try {
    const times = JSON.parse(text) as Partial<KernelTimes>
    const { schema, cpu, cpus, build, products, nodes } = times
    const isTime = ({ ns, threads }: { readonly ns: unknown; readonly threads: unknown }) =>
      isPositive(ns) && isPositive(threads)
    const isProduct = (product: ProductTime) =>
      isTime(product) &&
      [product.columns, product.rows, product.copies, product.tokens].every(isPositive) &&
      typeNamed(product.type) !== undefined
    const isWhole =
      schema === KERNELS_SCHEMA &&
      [cpu, build].every((fact) => typeof fact === 'string') &&
      isPositive(cpus) &&
      products!.every(isProduct) &&
      nodes!.every(isTime)
    return isWhole ? (times as KernelTimes) : undefined
  } catch {
    return undefined // not JSON, or not such an object
  }
}

const isPositive = (value: unknown): value is number => Number.isFinite(value) && (value as number) > 0
