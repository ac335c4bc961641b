import { blockOf, type ModelBlock } from '../../model/blocks.ts'
import { putAt } from '../../model/by-id.ts'
import { CounterSet } from '../../model/counters.ts'
import type { BufferEvent, CountedEvent, TensorEvent } from '../../model/events.ts'
import type { Names } from '../../model/names.ts'
import { isWeight, parseTensorName } from '../../model/tensors.ts'
import { layerOf } from './layers.ts'
import { Views } from './views.ts'
import { Works } from './work.ts'

/** What an input defines, and what follows from it: one for all statistics. */
export class Defined {
  /** By id; damaged logs leave gaps. */
  readonly tensors: TensorEvent[] = []
  readonly buffers = new Map<number, BufferEvent>()
  readonly counters = new CounterSet()
  readonly views: Views
  readonly works: Works
  private readonly blocks: (ModelBlock | undefined)[] = []

  constructor(readonly names: Names) {
    const opOf = ({ op }: TensorEvent) => names.text(op)
    this.views = new Views(this.tensors, opOf)
    this.works = new Works(this.tensors, opOf)
  }

  add(event: TensorEvent | BufferEvent | CountedEvent): void {
    if (event.kind === 'tensor') this.tensors[event.id] = event
    else if (event.kind === 'buffer') this.buffers.set(event.id, event)
    else this.counters.define(event, this.names.text(event.name))
  }

  /** Is the tensor a weight of the model? */
  readonly isWeight = (tensor: TensorEvent): boolean => isWeight(tensor, this.buffers.get(tensor.buffer), this.names)

  /** Index of the first of these counters in the counts of operators; -1: the input has none of them. */
  counterAt(...keys: readonly string[]): number {
    const { counters } = this.counters
    const found = keys.map((key) => counters.findIndex((counter) => counter?.key === key))
    return found.find((index) => index >= 0) ?? -1
  }

  /** The layer of a node; -1: in none. */
  readonly layerOf = (tensor: number): number => layerOf(this.tensors[tensor]!, this.tensors, this.names)

  /** The part of the model to which a node belongs. */
  readonly blockOf = (id: number): ModelBlock => {
    const known = this.blocks[id]
    if (known) return known
    const { name, op } = this.tensors[id]!
    const block = blockOf(parseTensorName(this.names.text(name)).role, this.names.text(op))
    putAt(this.blocks, id, block, undefined)
    return block
  }
}
