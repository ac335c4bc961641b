import { blockOf } from '../../model/blocks.ts'
import { copiedName, formatShape, parseTensorName } from '../../model/tensors.ts'
import { DataWriters } from '../graph/data-writers.ts'
import type { Defined } from '../graph/defined.ts'
import { layerOf } from '../graph/layers.ts'
import { nodesOf } from '../graph/plan.ts'
import { isView } from '../graph/views.ts'
import type { GraphLeaf, GraphNode } from './figures.ts'
import type { Split } from './splits.ts'

/** Nodes, and leaves, at most. */
export const NODES_MAX = 1 << 16
/** In place of a node that is left out. */
const LEFT_OUT = -1
const FIRST_LEAF = -2

/** What is read only elsewhere. */
export type Writable<T> = { -readonly [K in keyof T]: T[K] }

/** Collects the nodes of a call, step by step. */
export class GraphBuilder {
  readonly nodes: Writable<GraphNode>[] = []
  /** By node, its tensor. */
  readonly tensorIds: number[] = []
  readonly leaves: GraphLeaf[] = []
  leftOut = 0
  private run = 0
  /** By tensor: its node in the current graph run, and its leaf. */
  private ids = new Map<number, number>()
  private computed = new Set<number>()
  private readonly leafIds = new Map<number, number>()
  /** By name, the node of which a scheduler copies the result to another backend. */
  private readonly byName = new Map<string, number>()
  private splitOf = new Map<number, number>()
  private readonly writers: DataWriters<number>

  constructor(
    private readonly context: Defined,
    private readonly splits: readonly Split[],
  ) {
    this.writers = new DataWriters(context.tensors, context.views)
    for (const [i, { nodes }] of splits.entries()) for (const node of nodes) this.splitOf.set(node, i)
  }

  /** Adds the nodes of a split of which no operator was recorded. */
  unrecorded({ nodes }: Split): void {
    for (const node of nodes) {
      if (!this.context.tensors[node] || this.ids.has(node)) continue
      this.add(node)
      this.computedBy(node, node, this.nodes[this.ids.get(node)!])
    }
  }

  /** Does a step begin another graph run? It does where the current one contains its node already. */
  isNewRun(first: number): boolean {
    return this.computed.has(first)
  }

  /** Adds a step; returns its last node, or undefined where that is left out. */
  step(first: number, last: number): Writable<GraphNode> | undefined {
    if (this.isNewRun(first)) {
      this.run++
      this.ids = new Map()
      this.computed = new Set()
    }
    const fused = nodesOf(this.context.tensors, first, last)
    for (const node of fused) {
      this.computed.add(node)
      this.add(node)
    }
    const [result, ...others] = fused.reverse().map((node) => this.nodes[this.ids.get(node)!])
    this.computedBy(first, last, result)
    if (!result) return undefined
    result.kind = 'operator'
    for (const node of others) if (node) Object.assign(node, { kind: 'fused', fused_into: result.id })
    return result
  }

  private computedBy(first: number, last: number, result: Writable<GraphNode> | undefined): void {
    const reads = this.writers.step(first, last, result?.id ?? LEFT_OUT)
    if (result) result.reads_from = [...reads].filter((id) => id !== LEFT_OUT).sort((a, b) => a - b)
  }

  /** Adds a tensor, after those that it is computed from. */
  private add(tensor: number): void {
    const stack = [{ id: tensor, isOpen: false }]
    for (let top = stack.at(-1); top; top = stack.at(-1)) {
      if (!top.isOpen) {
        top.isOpen = true
        const missing = this.context.tensors[top.id]!.sources.filter((id) => !this.isKnown(id))
        stack.push(...missing.reverse().map((id) => ({ id, isOpen: false })))
        continue
      }
      stack.pop()
      // It may be a source of several of the tensors above.
      if (!this.ids.has(top.id)) this.push(top.id)
    }
  }

  /** Is a source a node already, or a leaf? */
  private isKnown(id: number): boolean {
    if (this.ids.has(id)) return true
    const { op, sources } = this.context.tensors[id]!
    if (op !== 0 || sources.length > 0) return false
    const copied = copiedName(this.context.names.text(this.context.tensors[id]!.name))
    if (copied !== undefined && this.byName.has(copied)) return true
    if (!this.leafIds.has(id)) this.addLeaf(id)
    return true
  }

  private push(id: number): void {
    if (this.nodes.length >= NODES_MAX) {
      this.leftOut++
      this.ids.set(id, LEFT_OUT)
      return
    }
    const { tensors } = this.context
    const number = this.nodes.length
    this.ids.set(id, number)
    this.tensorIds.push(id)
    this.byName.set(this.context.names.text(tensors[id]!.name), number)
    const sources = tensors[id]!.sources.map((source) => this.idOf(source))
    this.nodes.push({
      id: number,
      kind: isView(this.opOf(id)) ? 'view' : 'not recorded',
      ...this.described(id),
      ...this.placeOf(id),
      run: this.run,
      ...{ order: null, fused_into: null, sources, reads_from: [] },
      ...{ start_ns: null, wall_ns: null, operator_time_ns: null, wait_ns: null, workers: null, imbalance_share: null },
      by_core_kind: null,
      ...{ flop: null, bytes_read: null, bytes_written: null, weight_bytes: null, experts: null },
    })
  }

  /** Of a copy that a scheduler made for another backend, the node whose result it is. */
  private idOf(source: number): number {
    const copied = copiedName(this.context.names.text(this.context.tensors[source]!.name))
    const original = copied === undefined ? undefined : this.byName.get(copied)
    return original ?? this.ids.get(source) ?? this.leafIds.get(source) ?? LEFT_OUT
  }

  private placeOf(id: number) {
    const split = this.splitOf.get(id) ?? null
    return { backend: split === null ? null : this.context.names.text(this.splits[split]!.backend), split }
  }

  private addLeaf(id: number): void {
    if (this.leaves.length >= NODES_MAX) {
      this.leftOut++
      this.leafIds.set(id, LEFT_OUT)
      return
    }
    const { tensors, buffers, names, isWeight } = this.context
    const tensor = tensors[id]!
    const buffer = buffers.get(tensor.buffer)
    const number = FIRST_LEAF - this.leaves.length
    this.leafIds.set(id, number)
    const { op: _, ...described } = this.described(id)
    this.leaves.push({
      id: number,
      kind: isWeight(tensor) ? 'weight' : buffer?.usage === 'kv-cache' ? 'cache' : 'input',
      ...described,
      buffer: buffer?.usage ?? null,
      buffer_name: buffer ? names.text(buffer.name ?? 0) : null,
      offset: tensor.offset ?? null,
    })
  }

  private described(id: number) {
    const { tensors, names } = this.context
    const tensor = tensors[id]!
    const [name, op] = [names.text(tensor.name), this.opOf(id)]
    const { role } = parseTensorName(name)
    return {
      name,
      op,
      role,
      layer: layerOf(tensor, tensors, names),
      block: blockOf(role, op),
      type: names.text(tensor.type),
      shape: tensor.ne ? formatShape(tensor.ne) : '',
      size_bytes: tensor.sizeBytes < 0 ? null : tensor.sizeBytes,
    }
  }

  private opOf(id: number): string {
    return this.context.names.text(this.context.tensors[id]!.op)
  }
}
