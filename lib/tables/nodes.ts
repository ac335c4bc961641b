import { Defined } from '../analyze/graph/defined.ts'
import type { TensorEvent } from '../model/events.ts'
import { inferredText } from '../model/inferred.ts'
import { parseTensorName } from '../model/tensors.ts'

/** What is the same in all rows of a node; null: not known. */
export interface NodeFacts {
  readonly node: number
  readonly op: string
  readonly role: string | null
  readonly layer: number | null
  readonly tensor: string | null
  readonly type: string | null
  readonly m: number | null
  readonly n: number | null
  readonly k: number | null
  readonly flop: number | null
  readonly bytes_read: number | null
  readonly bytes_written: number | null
  readonly inferred: string | null
}

/** Facts of nodes, from the tensors and buffers of the input. */
export class Nodes extends Defined {
  /** Facts of a node, or of fused ones up to `last`; `inferred` are bits of its operators. */
  factsOf(id: number, last: number, inferred: number): NodeFacts {
    const { tensors, names } = this
    const [first, result] = [tensors[id]!, tensors[last]!]
    const layer = this.layerOf(last)
    const { role } = parseTensorName(names.text(result.name))
    const work = this.works.step(id, last, this.isWeight)
    const type = first.sources.map((source) => tensors[source]!).find(this.isWeight) ?? result
    const bits = inferred | first.inferred
    return {
      node: id,
      op: (last === id ? [first] : [first, result]).map(({ op }) => names.text(op)).join('+'),
      role: role || null,
      layer: layer < 0 ? null : layer,
      tensor: names.text(result.name) || null,
      type: names.text(type.type) || null,
      ...this.shapeOf(first),
      flop: known(work.flop),
      bytes_read: known(work.bytesRead),
      bytes_written: known(work.bytesWritten),
      inferred: bits === 0 ? null : inferredText(bits),
    }
  }

  /** Is `bytes_read` of a node an upper bound? */
  isUpperBound(id: number, last: number): boolean {
    return this.works.step(id, last, this.isWeight).isUpperBound
  }

  private shapeOf({ op, ne, sources }: TensorEvent): Pick<NodeFacts, 'm' | 'n' | 'k'> {
    const isProduct = /^MUL_MAT(_ID)?$/.test(this.names.text(op))
    const k = isProduct && sources.length > 0 ? this.tensors[sources[0]!]!.ne?.[0] : undefined
    return { m: ne?.[0] ?? null, n: ne?.[1] ?? null, k: k ?? null }
  }
}

const known = (amount: number) => (amount < 0 ? null : Math.round(amount))
