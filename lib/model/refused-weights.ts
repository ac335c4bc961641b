import { isOnHost } from './backends.ts'
import { typeNamed } from './ggml-types.ts'
import type { Names } from './names.ts'
import { contiguous, type QuestionTensor, type Variation } from './refusals.ts'
import { formatShape } from './tensors.ts'
import type { WeightMemoryEvent } from './weight-events.ts'

/** A weight that memory which repacks did not take, as an operator to ask about. */
export interface WeightQuestion {
  readonly memory: string
  readonly op: string
  readonly opNumber: number
  /** Type and shape of the weight: `q4_0 64×30`. */
  readonly description: string
  /** The node, then its sources. */
  readonly tensors: readonly QuestionTensor[]
  /** Questions that differ in one property. */
  readonly variations: readonly Variation[]
}

/** Type and shape of a weight: `q4_0 64×30`. */
export const describeWeight = (type: string, ne: readonly number[]): string => `${type} ${formatShape(ne)}`

/** Is it memory of the CPU in which weights have another layout than in the file? Others are its usual memory, and memory of devices. */
export const isRepacking = (device: string, memory: string): boolean =>
  isOnHost(device) && !['CPU', 'CPU_HBM'].includes(memory)

/** Columns of what a weight is multiplied with, as llama.cpp asks. */
const TOKENS = 512
const EXPERTS_USED = 2
const TYPES = ['q4_0', 'q8_0', 'q4_K', 'f16']
const ROWS = [8, 16, 32, 64, 256]
const LENGTHS = [32, 64, 256]

/** Collects weights that memory which repacks refused: those of products, and tables of rows that products could read. */
export class RefusedWeights {
  private readonly found = new Map<string, WeightMemoryEvent>()
  private readonly opNumbers = new Map<string, number>()

  constructor(private readonly names: Names) {}

  add(event: WeightMemoryEvent): void {
    const { names } = this
    const [device, memory, op] = [event.device, event.memory, event.op].map((id) => names.text(id)) as [
      string,
      string,
      string,
    ]
    this.opNumbers.set(op, event.opNumber)
    if (event.answer || !isRepacking(device, memory) || !operatorOf(op, asked(event, memory, names))) return
    this.found.set([memory, op, describeWeight(names.text(event.type), event.ne)].join(' '), event)
  }

  /** One for each type of memory, op, type and shape. */
  get questions(): WeightQuestion[] {
    const { names } = this
    return [...this.found.values()].map((event) => {
      const [memory, op] = [names.text(event.memory), names.text(event.op)]
      const weight = asked(event, memory, names)
      return {
        ...{ memory, op, opNumber: event.opNumber, description: describeWeight(names.text(event.type), event.ne) },
        tensors: operatorOf(op, weight)!,
        variations: [...this.ofOp(op, weight), ...variationsOf(op, weight)],
      }
    })
  }

  private ofOp(op: string, weight: QuestionTensor): Variation[] {
    const opNumber = this.opNumbers.get('MUL_MAT')
    const tensors = operatorOf('MUL_MAT', weight)
    if (op !== 'GET_ROWS' || opNumber === undefined || !tensors) return []
    return [{ property: op, instead: 'MUL_MAT', tensors, opNumber }]
  }
}

const asked = ({ tensor, type, ne }: WeightMemoryEvent, memory: string, names: Names): QuestionTensor => ({
  ...{ name: names.text(tensor), type: names.text(type), memory, ne, nb: [] },
})

const dense = (type: string, ...ne: readonly number[]): QuestionTensor | undefined =>
  contiguous({ name: '', type, ne: [0, 1, 2, 3].map((i) => ne[i] ?? 1), nb: [] })

/** The operator that llama.cpp asks about before it chooses the memory of a weight; undefined: of another op. */
function operatorOf(op: string, weight: QuestionTensor): QuestionTensor[] | undefined {
  const [length, rows, third, fourth] = weight.ne as [number, number, number, number]
  const tensors = (): (QuestionTensor | undefined)[] => {
    switch (op) {
      case 'MUL_MAT':
        return [
          dense('f32', rows, TOKENS, third, fourth),
          contiguous(weight),
          dense('f32', length, TOKENS, third, fourth),
        ]
      case 'MUL_MAT_ID':
        return [
          ...[dense('f32', rows, EXPERTS_USED, TOKENS), contiguous(weight)],
          ...[dense('f32', length, EXPERTS_USED, TOKENS), dense('i32', EXPERTS_USED, TOKENS)],
        ]
      case 'GET_ROWS':
        return [dense('f32', length, TOKENS), contiguous(weight), dense('i32', TOKENS)]
      default:
        return []
    }
  }
  const found = tensors().filter((tensor) => tensor !== undefined)
  return found.length > 0 && found.length === tensors().length ? found : undefined
}

/** The same operator with a weight of another type, number of rows, or length of rows; nearest first. */
function variationsOf(op: string, weight: QuestionTensor): Variation[] {
  const [length, rows] = weight.ne as [number, number]
  const types = TYPES.filter((type) => type !== weight.type).map((type) => ({
    ...{ property: `weights of ${weight.type}`, instead: type, changed: { ...weight, type } },
  }))
  const sizes = (place: number, size: number, multiples: readonly number[]) =>
    [...new Set(multiples.map((by) => Math.ceil(size / by) * by))]
      .filter((other) => other !== size)
      .map((other) => ({ other, changed: { ...weight, ne: weight.ne.map((own, i) => (i === place ? other : own)) } }))
  const counts = sizes(1, rows, ROWS).map(({ other, changed }) => ({
    ...{ property: `${rows} rows`, instead: `${other}`, changed },
  }))
  const lengths = sizes(0, length, LENGTHS).map(({ other, changed }) => ({
    ...{ property: `rows of ${length}`, instead: `${other}`, changed },
  }))
  return [...types, ...counts, ...lengths].flatMap(({ changed, ...variation }) => {
    const tensors = fits(changed) ? operatorOf(op, changed) : undefined
    return tensors ? [{ ...variation, tensors }] : []
  })
}

/** Are its rows whole blocks of the type? */
const fits = ({ type, ne }: QuestionTensor) => ne[0]! % (typeNamed(type)?.elements ?? Number.NaN) === 0
