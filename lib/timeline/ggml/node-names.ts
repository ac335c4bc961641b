import type { TensorEvent } from '../../model/events.ts'
import type { Names } from '../../model/names.ts'
import { parseTensorName } from '../../model/tensors.ts'
import type { OpNaming } from '../options.ts'

/** The names of operator slices. */
export class NodeNames {
  /** `tensors`: by id. */
  constructor(
    private readonly context: { readonly names: Names; readonly tensors: readonly TensorEvent[] },
    private readonly naming: OpNaming,
  ) {}

  /** The name of a node's slices, as an id of the names; of fused nodes, `fusedTo` is the last one. */
  of(tensor: number, fusedTo: number | undefined): number {
    return fusedTo === undefined ? this.single(tensor) : this.fused(tensor, fusedTo)
  }

  private single(tensor: number): number {
    const { names, tensors } = this.context
    const { name, op, sources } = tensors[tensor]!
    // Some logs do not name results: use the name of the first source.
    const named = name || (sources.length > 0 ? tensors[sources[0]!]!.name : 0)
    const [tensorText, opText] = [names.text(named), names.text(op)]
    const text = {
      op: opText,
      tensor: tensorText,
      role: `${parseTensorName(tensorText).role} ${opText}`.trim(),
    }[this.naming]
    return names.id(text || opText || tensorText || 'operator')
  }

  /** `<role of the result> <OP>+<OP>`: the first and the last of the fused ops. */
  private fused(first: number, last: number): number {
    const { names, tensors } = this.context
    const [from, to] = [tensors[first]!, tensors[last]!]
    const ops = [from.op, to.op].map((op) => names.text(op)).filter(Boolean)
    const name = names.text(to.name)
    const text = { op: ops.join('+'), tensor: name, role: `${parseTensorName(name).role} ${ops.join('+')}`.trim() }
    return names.id(text[this.naming] || 'operator')
  }
}
