import { DefaultMap } from '../../model/default-map.ts'
import type { AskedTensor, RefusalEvent, TensorEvent } from '../../model/events.ts'
import type { Names } from '../../model/names.ts'
import { describeRefusal, isAbsent } from '../../model/refusals.ts'

/** Refusals that are held; the recorder writes at most 16 of each op and types. */
const REFUSALS_MAX = 1 << 14

/** What devices refused, by device and op. */
export class Refusals {
  private readonly byOp = new DefaultMap<string, RefusalEvent[]>(() => [])
  private count = 0

  constructor(private readonly names: Names) {}

  add(event: RefusalEvent): void {
    if (++this.count > REFUSALS_MAX) return
    this.byOp.of(this.keyOf(event.question, this.names.text(event.device), this.names.text(event.op))).push(event)
  }

  /** Ops that a device refused, whatever was asked. */
  get all(): readonly RefusalEvent[] {
    return [...this.byOp.values()].flat()
  }

  /**
   * The refusal of a node by a device. A scheduler asks with the node as it is; of many shapes, the log contains the first ones of the same
   * op and types, which are returned then.
   */
  ofNode(
    question: RefusalEvent['question'],
    device: string,
    node: TensorEvent,
    sources: readonly TensorEvent[],
  ): RefusalEvent | undefined {
    const asked = this.byOp.get(this.keyOf(question, device, this.names.text(node.op))) ?? []
    const tensors = [node, ...sources]
    const alike = asked.filter((refusal) => hasTypes(refusal, tensors))
    return alike.find((refusal) => hasShapes(refusal, tensors)) ?? alike[0]
  }

  /** The refusal of a weight: llama.cpp asks with an operator that reads it before it chooses its memory. */
  ofWeight(device: string, weight: string): RefusalEvent | undefined {
    const names = (tensors: readonly AskedTensor[]) => tensors.slice(1).map(({ name }) => this.names.text(name))
    return this.all.find(
      (refusal) =>
        refusal.question === 'supports-op' &&
        this.names.text(refusal.device) === device &&
        names(refusal.tensors).includes(weight),
    )
  }

  /** `f32 64×8 of f32 64×1×8, q5_1 64×256×2` */
  describe(refusal: RefusalEvent): string {
    return describeRefusal(refusal, this.names)
  }

  private keyOf(question: string, device: string, op: string): string {
    return [question, device, op].join('\0')
  }
}

/** The sources of a tensor are those that it has, one after the other. */
const present = ({ tensors }: RefusalEvent) => tensors.filter((tensor) => !isAbsent(tensor))

function hasTypes(refusal: RefusalEvent, nodes: readonly TensorEvent[]): boolean {
  const tensors = present(refusal)
  return tensors.length === nodes.length && tensors.every(({ type }, i) => type === nodes[i]!.type)
}

const hasShapes = (refusal: RefusalEvent, nodes: readonly TensorEvent[]) =>
  present(refusal).every(({ ne }, i) => nodes[i]!.ne?.every((size, dimension) => size === ne[dimension]))
