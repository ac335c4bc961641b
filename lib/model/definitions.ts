import type { BufferEvent, TensorEvent, TraceEvent } from './events.ts'
import type { KernelProfileEvent } from './kernel-profiles.ts'
import type { Names } from './names.ts'

/** Tensors and buffers of a log that its companions define, collected from their events. */
export class Definitions {
  private readonly weights = new Map<number, TensorEvent>()
  private readonly buffers = new Map<string, BufferEvent>()
  /** Layer by name of a node; -1 where nodes of that name are in several layers. */
  private readonly layers = new Map<number, number>()
  /** Kernels that a profiler measured, in its order. */
  readonly profiles: KernelProfileEvent[] = []
  private modelFile = -1

  /** `names` contains the texts of all inputs. */
  constructor(readonly names: Names) {}

  /** Adds the definitions of a companion; its first event must come first. */
  add(batch: readonly TraceEvent[]): void {
    for (const event of batch) {
      if (event.kind === 'input') this.modelFile = -1
      else if (event.kind === 'buffer') this.addBuffer(event)
      else if (event.kind === 'tensor') this.addTensor(event)
      else if (event.kind === 'kernel-profile') this.profiles.push(event)
    }
  }

  /** The tensor at a byte offset of the model file. */
  weightAt(offset: number): TensorEvent | undefined {
    return this.weights.get(offset)
  }

  /** The buffer with a label; see {@link BufferEvent.label}. */
  buffer(label: string): BufferEvent | undefined {
    return this.buffers.get(label)
  }

  /** The layer of the node with a name, or -1. */
  layerOf(name: string): number {
    return this.layers.get(this.names.id(name)) ?? -1
  }

  private addBuffer(event: BufferEvent): void {
    if (event.usage === 'weights') this.modelFile = event.id
    else this.buffers.set(event.label, event)
  }

  private addTensor(event: TensorEvent): void {
    const { buffer, offset, op, name, layer } = event
    if (op !== 0) this.layers.set(name, (this.layers.get(name) ?? layer) === layer ? layer : -1)
    if (buffer >= 0 && buffer === this.modelFile && offset !== undefined) this.weights.set(offset, event)
  }
}
