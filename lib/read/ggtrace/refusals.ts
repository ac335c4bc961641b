import { OP_PARAMETERS, QUESTIONS_OF_SCHEDULER, REFUSED_TENSOR_BYTES } from '../../log/ggtrace-layout.ts'
import type { AskedTensor, RefusalEvent } from '../../model/graph-events.ts'
import type { WeightMemoryEvent } from '../../model/weight-events.ts'
import { readU64 } from './fields.ts'

/** The event of a REFUSAL record; undefined for questions of later versions, and for one that is shorter than its tensors. */
export function readRefusal(
  view: DataView,
  at: number,
  end: number,
  nameOf: (id: number) => number,
): RefusalEvent | undefined {
  const question = QUESTIONS_OF_SCHEDULER[view.getUint32(at + 4, true)]
  const count = view.getUint32(at + 16, true)
  if (!question || at + 20 + count * REFUSED_TENSOR_BYTES > end) return undefined
  const tensors = Array.from({ length: count }, (_, i): AskedTensor => {
    const place = at + 20 + i * REFUSED_TENSOR_BYTES
    const [name, type] = [nameOf(view.getUint32(place, true)), nameOf(view.getUint32(place + 4, true))]
    return { name, type, ne: four(view, place + 8), nb: four(view, place + 40) }
  })
  const [device, op] = [nameOf(view.getUint32(at + 8, true)), nameOf(view.getUint32(at + 12, true))]
  const event = { kind: 'refusal', question, device, op, tensors } as const
  const place = at + 20 + count * REFUSED_TENSOR_BYTES
  if (count === 0 || place + 4 + 4 * OP_PARAMETERS > end) return event
  const parameters = Array.from({ length: OP_PARAMETERS }, (_, i) => view.getInt32(place + 4 + 4 * i, true))
  return { ...event, opNumber: view.getUint32(place, true), parameters }
}

const four = (view: DataView, place: number) => [0, 8, 16, 24].map((field) => readU64(view, place + field))

/** The event of a WEIGHT record. */
export function readWeightMemory(view: DataView, at: number, nameOf: (id: number) => number): WeightMemoryEvent {
  const word = (i: number) => view.getUint32(at + 4 + 4 * i, true)
  const name = (i: number) => nameOf(word(i))
  return {
    ...{ kind: 'weight-memory', answer: word(0) !== 0, device: name(1), memory: name(2), op: name(3) },
    ...{ opNumber: word(4), tensor: name(5), type: name(6), ne: four(view, at + 32) },
  }
}
