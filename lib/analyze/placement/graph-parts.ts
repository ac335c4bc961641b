import type { GraphNodesEvent, TensorEvent } from '../../model/events.ts'
import { copiedName, formatShape, parseTensorName } from '../../model/tensors.ts'
import type { Defined } from '../graph/defined.ts'

/** Equal nodes of a graph. */
export interface NodeGroup {
  readonly op: string
  /** -1: in none. */
  readonly layer: number
  /** Role of the node; the same for all where it reads a weight outside layers. */
  readonly role: string
  /** Name of the buffer of a weight that it reads; undefined: it reads none. */
  readonly weights: string | undefined
  /** Name of the buffer of a KV cache that it reads or writes. */
  readonly cache: string | undefined
  count: number
}

/** What a graph consists of. Graphs that differ in sizes only have the same parts. */
export interface GraphParts {
  readonly backend: number
  readonly groups: readonly NodeGroup[]
  readonly nodes: number
}

/** A graph: its parts, and what the scheduler copies to its backend for it. */
export interface KnownGraph {
  readonly parts: GraphParts
  /** Ids of one node of each group of the parts. */
  readonly examples: Int32Array
  /** Ids of the copies that it reads. */
  readonly copies: readonly number[]
}

/** Name of a model's file that is mapped: its pages are memory of the host. */
export const MAPPED_FILE = 'mapped file'

const KV_CACHE = /^cache_[a-z]+_l\d+/

/** Finds what graphs consist of. */
export class GraphPartsFinder {
  private readonly byKey = new Map<string, GraphParts>()
  /** Weights and caches by name: a copy has the name of what it is a copy of. */
  private readonly byName = new Map<string, TensorEvent>()
  private looked = 0

  constructor(private readonly defined: Defined) {}

  of({ backend, nodes }: Pick<GraphNodesEvent, 'backend' | 'nodes'>): KnownGraph {
    this.lookUp()
    const { tensors, names } = this.defined
    const layers = this.layersOf(nodes)
    const groups = new Map<string, NodeGroup>()
    const copies = new Set<number>()
    const examples: number[] = []
    for (const [i, node] of nodes.entries()) {
      const tensor = tensors[node]
      if (!tensor) continue
      for (const source of tensor.sources) if (this.isCopy(source)) copies.add(this.defined.views.root(source))
      const layer = layers[i]!
      const [op, role] = [names.text(tensor.op), parseTensorName(names.text(tensor.name)).role]
      const [weights, cache] = [this.weightsOf(tensor), this.cacheOf(tensor)]
      const key = [
        op,
        layer,
        layer < 0 ? role : '',
        weights ?? '',
        cache ?? '',
        weights === undefined ? '' : role,
      ].join('\0')
      const group = groups.get(key)
      if (group) group.count++
      else {
        examples.push(node)
        groups.set(key, { op, layer, role, weights, cache, count: 1 })
      }
    }
    const found = { backend, groups: [...groups.values()], nodes: nodes.length }
    const key = [backend, ...[...groups].map(([key, { count }]) => `${key}\0${count}`)].join('\u0001')
    const parts = this.byKey.get(key) ?? found
    this.byKey.set(key, parts)
    return { parts, examples: Int32Array.from(examples), copies: [...copies] }
  }

  /** Types and shapes of a node and of its sources: `f32 64×8 of q f32 64×1×8, k q5_1 64×256×2`. */
  describe(id: number): string {
    const { tensors, names } = this.defined
    const node = tensors[id]
    if (!node) return ''
    const text = ({ type, ne }: TensorEvent) => [names.text(type), ne ? formatShape(ne) : ''].filter(Boolean).join(' ')
    const sources = node.sources.flatMap((source) => tensors[source] ?? []).map(text)
    return [text(node), ...(sources.length > 0 ? ['of', sources.join(', ')] : [])].join(' ')
  }

  /** By node, its layer: of a node without one, that of the nodes before and after it, if they agree; or -1. */
  private layersOf(nodes: Int32Array): number[] {
    const { tensors, layerOf } = this.defined
    const layers = [...nodes].map((node) => (tensors[node] ? layerOf(node) : -1))
    let before = -1
    for (let i = 0; i < layers.length; i++) {
      if (layers[i]! >= 0) {
        before = layers[i]!
        continue
      }
      let after = i
      while (after < layers.length && layers[after]! < 0) after++
      const fill = after < layers.length && layers[after] === before ? before : -1
      for (; i < after; i++) layers[i] = fill
      i--
    }
    return layers
  }

  private isCopy(source: number): boolean {
    const tensor = this.defined.tensors[source]
    return tensor !== undefined && copiedName(this.defined.names.text(tensor.name)) !== undefined
  }

  /** What a source is, or is a copy of. */
  private originalOf(source: number): TensorEvent | undefined {
    const tensor = this.defined.tensors[source]
    if (!tensor) return undefined
    const name = copiedName(this.defined.names.text(tensor.name))
    return name === undefined ? tensor : (this.byName.get(nameOfBase(name)) ?? tensor)
  }

  /** Names of the weights that a node reads. */
  weightsRead(node: number): string[] {
    const { tensors, names, isWeight } = this.defined
    const sources = (tensors[node]?.sources ?? []).flatMap((source) => this.originalOf(source) ?? [])
    return sources.filter(isWeight).map(({ name }) => names.text(name))
  }

  private weightsOf({ sources }: TensorEvent): string | undefined {
    const { isWeight } = this.defined
    const weight = sources.map((source) => this.originalOf(source)).find((tensor) => tensor && isWeight(tensor))
    return weight && this.bufferOf(weight)
  }

  private cacheOf({ id, sources }: TensorEvent): string | undefined {
    const { tensors, views, names } = this.defined
    for (const source of [id, ...sources]) {
      const original = this.originalOf(source)
      const base = original && tensors[views.root(original.id)]
      if (base && KV_CACHE.test(names.text(base.name))) return this.bufferOf(base)
    }
    return undefined
  }

  /** Name of the buffer of a tensor; empty: not known. */
  bufferOf({ buffer }: TensorEvent): string {
    const { buffers, names } = this.defined
    const found = buffers.get(buffer)
    return names.text(found?.name ?? 0) || (found?.file === undefined ? '' : MAPPED_FILE)
  }

  private lookUp(): void {
    const { tensors, names, isWeight } = this.defined
    for (; this.looked < tensors.length; this.looked++) {
      const tensor = tensors[this.looked]
      if (!tensor) continue
      const name = names.text(tensor.name)
      if (isWeight(tensor) || (KV_CACHE.test(name) && !name.includes(' '))) this.byName.set(name, tensor)
    }
  }
}

/** Of `cache_k_l0 (view) (permuted)`, the cache. */
const nameOfBase = (name: string) => name.split(' (', 1)[0]!
