import { typeNamed } from './ggml-types.ts'
import type { AskedTensor, RefusalEvent } from './graph-events.ts'
import type { Names } from './names.ts'
import { formatShape } from './tensors.ts'

/** A tensor of a question, with its name and that of its type; of an absent source, these are empty, and its sizes 0. */
export interface QuestionTensor {
  readonly name: string
  readonly type: string
  /** Type of the memory that it is in; undefined: in none yet. */
  readonly memory?: string
  readonly ne: readonly number[]
  readonly nb: readonly number[]
}

/** A question that differs from a refused one in one property. */
export interface Variation {
  /** What the refused one has: `heads of 48`. Several variations may have the same; the nearest is first. */
  readonly property: string
  /** What this one has in its place: `64`. */
  readonly instead: string
  readonly tensors: readonly QuestionTensor[]
  /** Of another op; undefined: of the same. */
  readonly opNumber?: number
}

/** Is it the place of a source that an op does not have: of attention without a mask, the fourth? */
export const isAbsent = ({ ne }: Pick<AskedTensor, 'ne'>): boolean => ne.every((size) => size === 0)

/** Types and shapes of what was refused: `f32 64×8 of f32 64×1×8, q5_1 64×256×2`. */
export function describeRefusal({ tensors }: RefusalEvent, names: Names): string {
  const there = tensors.filter((tensor) => !isAbsent(tensor))
  const [node, ...sources] = there.map(({ type, ne }) => `${names.text(type)} ${formatShape(ne)}`)
  return sources.length === 0 ? (node ?? '') : `${node} of ${sources.join(', ')}`
}

/** The tensors that a device was asked about: the node, then its sources. */
export const tensorsOf = ({ tensors }: RefusalEvent, names: Names): QuestionTensor[] =>
  tensors.map(({ name, type, ne, nb }) => ({ name: names.text(name), type: names.text(type), ne, nb }))

/** Questions about the same op that each differ in a type, a size or a layout. */
export function variationsOf(op: string, tensors: readonly QuestionTensor[]): Variation[] {
  return [...ofTypes(op, tensors), ...ofSizes(op, tensors), ...ofLayouts(tensors)]
}

const TYPES = ['f16', 'f32']

function ofTypes(op: string, tensors: readonly QuestionTensor[]): Variation[] {
  const types = [...new Set(tensors.slice(1).map(({ type }) => type))]
  return types.flatMap((type) => {
    const places = tensors.flatMap((tensor, i) => (i > 0 && tensor.type === type ? [i] : []))
    return TYPES.filter((other) => other !== type).flatMap((other): Variation[] => {
      const changed = tensors.map((tensor, i) => (places.includes(i) ? withType(tensor, other) : tensor))
      return changed.every((tensor) => tensor !== undefined)
        ? [{ property: `${sourcesText(op, places, tensors)} of ${type}`, instead: other, tensors: changed }]
        : []
    })
  })
}

/** The same elements at the same places, of another type; undefined where that is not possible. */
function withType(tensor: QuestionTensor, name: string): QuestionTensor | undefined {
  const [from, to] = [typeNamed(tensor.type), typeNamed(name)]
  if (!from || !to) return undefined
  const nb = tensor.nb.map((bytes, i) =>
    i === 0 ? to.bytes : ((bytes / from.bytes) * from.elements * to.bytes) / to.elements,
  )
  return nb.every(Number.isInteger) ? { ...tensor, type: name, nb } : undefined
}

function sourcesText(op: string, places: readonly number[], tensors: readonly QuestionTensor[]): string {
  if (places.every((place) => tensors[place]!.name.endsWith('.weight'))) return 'weights'
  if (op !== 'FLASH_ATTN_EXT') return places.length === 1 ? `source ${places[0]}` : `sources ${places.join(' and ')}`
  const what = places.filter((place) => place === 2 || place === 3)
  return what.length === 2 ? 'a KV cache' : what[0] === 2 ? 'keys' : what[0] === 3 ? 'values' : 'a query or mask'
}

const SIZES = [8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192]
const multiple = (size: number, by: number) => Math.ceil(size / by) * by

/** The first sizes of the sources: of heads, or of rows. A size is replaced wherever it occurs, so that shapes fit each other. */
function ofSizes(op: string, tensors: readonly QuestionTensor[]): Variation[] {
  const isAttention = op === 'FLASH_ATTN_EXT'
  const sizes = [...new Set(tensors.slice(1, isAttention ? 2 : undefined).map(({ ne }) => ne[0] ?? 1))]
  return sizes
    .filter((size) => size > 1)
    .flatMap((size) => {
      const others = new Set([multiple(size, 8), multiple(size, 16), multiple(size, 32), ...SIZES])
      const near = [...others].sort((a, b) => Math.abs(Math.log(a / size)) - Math.abs(Math.log(b / size)))
      return near
        .filter((other) => other !== size)
        .flatMap((other): Variation[] => {
          const changed = tensors.map((tensor) => withSize(tensor, size, other))
          const property = `${isAttention ? 'heads' : 'rows'} of ${size}`
          return changed.every((tensor) => tensor !== undefined)
            ? [{ property, instead: `${other}`, tensors: changed }]
            : []
        })
    })
}

/** The same tensor with another size; distances between its elements grow with the sizes within them. */
function withSize(tensor: QuestionTensor, size: number, other: number): QuestionTensor | undefined {
  const isChanged = tensor.ne.map((value) => value === size)
  const ne = tensor.ne.map((value) => (value === size ? other : value))
  if (ne[0]! % (typeNamed(tensor.type)?.elements ?? 1) !== 0) return undefined
  const nb = tensor.nb.map((bytes) => {
    const within = isChanged.filter((changed, i) => changed && tensor.nb[i]! < bytes).length
    return bytes * (other / size) ** within
  })
  return nb.every((bytes) => Number.isInteger(Math.round(bytes)) && Math.abs(bytes - Math.round(bytes)) < 1e-6)
    ? { ...tensor, ne, nb: nb.map(Math.round) }
    : undefined
}

function ofLayouts(tensors: readonly QuestionTensor[]): Variation[] {
  const dense = tensors.map(contiguous)
  return tensors.flatMap((tensor, i): Variation[] => {
    const other = dense[i]
    if (i === 0 || !other || other.nb.every((bytes, d) => tensor.ne[d] === 1 || bytes === tensor.nb[d])) return []
    const changed = tensors.map((own, place) => (place === i ? other : own))
    return [{ property: `source ${i} with its distances in memory`, instead: 'a contiguous one', tensors: changed }]
  })
}

/** The same tensor without gaps; undefined: of a type that is not known. */
export function contiguous(tensor: QuestionTensor): QuestionTensor | undefined {
  const type = typeNamed(tensor.type)
  if (!type) return undefined
  const nb = [type.bytes]
  for (let i = 1; i < tensor.ne.length; i++) {
    const count = i === 1 ? tensor.ne[0]! / type.elements : tensor.ne[i - 1]!
    nb.push(nb[i - 1]! * count)
  }
  return { ...tensor, nb }
}

/** What made a device refuse, from its answers to variations: `heads of 48 (it takes 64)`; undefined: no single property. */
export function decidedBy(variations: readonly Variation[], answers: readonly boolean[]): string | undefined {
  const found = new Map<string, string>()
  for (const [i, { property, instead }] of variations.entries())
    if (answers[i] && !found.has(property)) found.set(property, instead)
  const texts = [...found].map(([property, instead]) => `${property} (it takes ${instead})`)
  return texts.length > 0 ? texts.join(' with ') : undefined
}
