import type { BlasProduct } from '../../model/blas-events.ts'
import { productOf, sizeOf } from './calls.ts'

/** A memory descriptor: `src:f32::blocked:ab::f0` (version 3), `src_f32::blocked:ab:f0` (version 2). */
export interface Memory {
  /** `src`, `wei`, `bia`, `dst`, … */
  readonly name: string
  readonly type: string
  /** Order of the dimensions in memory, outermost first: `ab`; empty where it is not plain. */
  readonly layout: string
}

/** The memory descriptors of a primitive. */
export function memoriesOf(text: string): Memory[] {
  return text.split(' ').flatMap((text): Memory[] => {
    const [, name, type, layout] = /^([a-z]+(?:_?\d+)?)[_:]([a-z][a-z0-9_]*):[^:]*:[^:]*:([^:]*)/.exec(text) ?? []
    return name === undefined ? [] : [{ name, type: type!, layout: layout! }]
  })
}

/** The matrix product of a primitive; undefined where it is none, or its sizes are not known. */
export function onednnProduct(
  primitive: string,
  problem: string,
  memories: readonly Memory[],
): BlasProduct | undefined {
  if (primitive === 'matmul') return matmulOf(problem, memories)
  return primitive === 'inner_product' ? innerProductOf(problem) : undefined
}

/** A product of groups of rows, each with its own matrix of weights: how the rows are divided is not in the log. */
export const isGrouped = (memories: readonly Memory[]) =>
  memories.some(({ name, layout }) => name === 'src' && layout === 'grouped')

/**
 * `32x512:512x1536`, in older versions with the result: `32x512:512x1536:32x1536`; dimensions before the last two are batches. Of groups,
 * the weights alone have them: `16x32:3x32x24`. Version 1: `b1408m52n64k52`.
 */
function matmulOf(problem: string, memories: readonly Memory[]): BlasProduct | undefined {
  const first = /^(?:b(?<b>\d+))?m(?<m>\d+)n(?<n>\d+)k(?<k>\d+)$/.exec(problem)?.groups
  if (first) return productOf({ m: first['m'], n: first['n'], k: first['k'] }, transposesOf(memories), first['b'])
  const [a, b] = problem.split(':').map((word) => word.split('x').map((text) => sizeOf(text)))
  if (!a || !b || a.length < 2) return undefined
  if (isGrouped(memories) && b.length === a.length + 1) b.shift()
  if (a.length !== b.length) return undefined
  const [m, k, n] = [a.at(-2)!, a.at(-1)!, b.at(-1)!]
  // A dimension of 1 is repeated.
  const batch = a.slice(0, -2).reduce((product, size, i) => product * Math.max(size, b[i]!), 1)
  const isWhole = m > 0 && k > 0 && n > 0 && b.at(-2) === k && batch > 0 && Number.isSafeInteger(batch)
  return isWhole ? { m, n, k, batch, transposes: transposesOf(memories) } : undefined
}

/** `mb32ic512oc1536`, with the sizes of an image: `mb1ic256ih6oc4096kh6`. */
function innerProductOf(problem: string): BlasProduct | undefined {
  const sizeOfKey = (key: string) => {
    const text = new RegExp(`(?:^|[\\d_])${key}(\\d+)`).exec(problem)?.[1]
    return text === undefined ? undefined : sizeOf(text)
  }
  const [m, n, channels] = [sizeOfKey('mb'), sizeOfKey('oc'), sizeOfKey('ic')]
  if (!m || !n || !channels) return undefined
  const k = channels * (sizeOfKey('id') ?? 1) * (sizeOfKey('ih') ?? 1) * (sizeOfKey('iw') ?? 1)
  return Number.isSafeInteger(k) && k > 0 ? { m, n, k, batch: 1, transposes: '' } : undefined
}

/** By the last two dimensions in memory: in order (N) or exchanged (T); empty where a layout is another. */
function transposesOf(memories: readonly Memory[]): string {
  const orderOf = (name: string) => {
    const layout = memories.find((memory) => memory.name === name)?.layout ?? ''
    if (!/^[a-l]{2,}$/.test(layout)) return ''
    const plain = [...layout].sort().join('')
    if (layout === plain) return 'N'
    return layout === `${plain.slice(0, -2)}${plain.at(-1)}${plain.at(-2)}` ? 'T' : ''
  }
  const [a, b] = [orderOf('src'), orderOf('wei')]
  return a === '' || b === '' ? '' : a + b
}
