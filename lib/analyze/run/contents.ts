import { getOrMake } from '../../model/default-map.ts'
import type { BufferEvent, TensorEvent, TraceEvent } from '../../model/events.ts'
import { RECORDED_EVENTS, RECORDED_KINDS, type RecordedKind } from '../../model/issues.ts'
import type { Names } from '../../model/names.ts'
import type { EventPass } from '../../model/pass.ts'
import { isWeight } from '../../model/tensors.ts'
import type { WeightType } from './figures.ts'

/** Weights, files and kinds of data in an input. */
export interface Contents {
  readonly recorded: readonly RecordedKind[]
  readonly modelFiles: readonly string[]
  /** Null where weights have no shapes, or no types. */
  readonly parameters: number | null
  readonly weights: readonly WeightType[] | null
  readonly layers: number
}

/** The kinds of data of which an input contains events. */
export function recordedIn(kinds: ReadonlySet<TraceEvent['kind']>): RecordedKind[] {
  return RECORDED_KINDS.filter((recorded) => RECORDED_EVENTS[recorded].some((kind) => kinds.has(kind)))
}

/** Kinds of data of several inputs, in the order in which they are listed. */
export function allRecorded(contents: readonly Pick<Contents, 'recorded'>[]): RecordedKind[] {
  return RECORDED_KINDS.filter((kind) => contents.some(({ recorded }) => recorded.includes(kind)))
}

/** Collects the {@link Contents} of an input. */
export class ContentsPass implements EventPass<Contents> {
  private readonly kinds = new Set<TraceEvent['kind']>()
  private readonly buffers = new Map<number, BufferEvent>()
  private readonly layers = new Set<number>()
  /** By name and place, as a tensor whose sources change has another id. */
  private readonly weights = new Map<string, TensorEvent>()
  private hasOperators = false
  private hasExperts = false

  constructor(private readonly names: Names) {}

  take(batch: readonly TraceEvent[]): void {
    for (const event of batch) {
      if (event.kind === 'operator') {
        this.hasOperators = true
        if (event.experts) this.hasExperts = true
        continue
      }
      this.kinds.add(event.kind)
      if (event.kind === 'buffer') this.buffers.set(event.id, event)
      else if (event.kind === 'tensor') this.takeTensor(event)
    }
  }

  private takeTensor(event: TensorEvent): void {
    if (event.layer >= 0) this.layers.add(event.layer)
    if (event.op !== 0 || event.viewOf !== undefined) return
    if (!isWeight(event, this.buffers.get(event.buffer), this.names)) return
    this.weights.set(`${event.buffer} ${event.offset ?? event.address} ${event.name}`, event)
  }

  finish(): Contents {
    const { kinds, buffers, names } = this
    if (this.hasOperators) kinds.add('operator')
    if (this.hasExperts) kinds.add('experts')
    const weights = [...this.weights.values()]
    const hasShapes = weights.length > 0 && weights.every(({ ne }) => ne !== undefined)
    const files = [...new Set([...buffers.values()].map(({ file = 0 }) => names.text(file)))]
    const byType = new Map<string, { type: string; tensors: number; parameters: number; bytes: number }>()
    for (const weight of weights) {
      const type = names.text(weight.type)
      const sum = getOrMake(byType, type, () => ({ type, tensors: 0, parameters: 0, bytes: 0 }))
      sum.tensors++
      sum.parameters += elementsOf(weight)
      sum.bytes += Math.max(weight.sizeBytes, 0)
    }
    return {
      recorded: recordedIn(kinds),
      modelFiles: files.filter((path) => /\.gguf$/i.test(path)),
      parameters: hasShapes ? weights.reduce((sum, weight) => sum + elementsOf(weight), 0) : null,
      weights: hasShapes && !byType.has('') ? [...byType.values()].sort((a, b) => b.bytes - a.bytes) : null,
      layers: this.layers.size,
    }
  }
}

function elementsOf({ ne }: TensorEvent): number {
  return ne?.reduce((product, n) => product * n, 1) ?? 0
}
