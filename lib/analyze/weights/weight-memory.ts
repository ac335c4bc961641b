import { DefaultMap } from '../../model/default-map.ts'
import type { WeightMemoryEvent } from '../../model/events.ts'
import { describeWeight, isRepacking } from '../../model/refused-weights.ts'
import { parseTensorName } from '../../model/tensors.ts'
import type { Statistic } from '../common/statistic.ts'
import type { Defined } from '../graph/defined.ts'
import { GraphPartsFinder } from '../placement/graph-parts.ts'
import { backendOfBuffer, HOST } from '../placement/homes.ts'

/** Answers that are held; the recorder writes one for each weight and type of memory. */
const ANSWERS_MAX = 1 << 16

/** What devices answered about a weight, by the op that reads it. */
export interface AnswersOfOp {
  readonly op: string
  /** Types of memory. */
  readonly taken: Set<string>
  readonly refused: Set<string>
}

/** A weight in memory of the host. */
export interface HostWeight {
  readonly name: string
  readonly role: string
  readonly type: string
  /** Type and shape: `q4_0 64×30`. */
  readonly description: string
  readonly buffer: string
  readonly bytes: number
  readonly answers: readonly AnswersOfOp[]
}

/** The weights of an input in memory of the host, with what devices answered when their memory was chosen. */
export interface WeightMemoryOfInput {
  readonly repacking: readonly string[]
  readonly weights: readonly HostWeight[]
}

/** Joins the answers of devices with the weights of graphs. */
export class WeightMemoryStatistic
  implements Statistic<{ readonly weightMemory: WeightMemoryOfInput | null }, 'weight-memory'>
{
  readonly kinds = ['weight-memory'] as const
  /** By name, type and shape of a weight: two models have weights of the same name. */
  private readonly answers = new DefaultMap<string, Map<number, AnswersOfOp>>(() => new Map())
  private readonly repacking = new Set<string>()
  private readonly devices = new Set<string>()
  private count = 0

  constructor(private readonly defined: Defined) {}

  event({ answer, device, memory, op, tensor, type, ne }: WeightMemoryEvent): void {
    if (++this.count > ANSWERS_MAX) return
    const { names } = this.defined
    const [deviceName, memoryName] = [names.text(device), names.text(memory)]
    if (isRepacking(deviceName, memoryName)) this.repacking.add(memoryName)
    if (deviceName !== HOST) this.devices.add(deviceName)
    const ofWeight = this.answers.of(`${names.text(tensor)} ${describeWeight(names.text(type), ne)}`)
    const ofOp = ofWeight.get(op) ?? { op: names.text(op), taken: new Set(), refused: new Set() }
    ofWeight.set(op, ofOp)
    if (answer) ofOp.taken.add(memoryName)
    else ofOp.refused.add(memoryName)
  }

  finish(): { readonly weightMemory: WeightMemoryOfInput | null } {
    if (this.count === 0) return { weightMemory: null }
    const { names, tensors, isWeight } = this.defined
    const finder = new GraphPartsFinder(this.defined)
    const weights = new Map<string, HostWeight>()
    for (const tensor of tensors) {
      if (tensor?.op !== 0 || !isWeight(tensor)) continue
      const [name, type, buffer] = [names.text(tensor.name), names.text(tensor.type), finder.bufferOf(tensor)]
      const description = describeWeight(type, tensor.ne ?? [])
      const key = `${buffer} ${name} ${description}`
      const isOfHost = this.repacking.has(buffer) || backendOfBuffer(buffer, [...this.devices]) === HOST
      if (!isOfHost || weights.has(key)) continue
      weights.set(key, {
        ...{ name, type, buffer, description, role: parseTensorName(name).role },
        bytes: Math.max(0, tensor.sizeBytes),
        answers: [...(this.answers.get(`${name} ${description}`)?.values() ?? [])],
      })
    }
    return { weightMemory: { repacking: [...this.repacking], weights: [...weights.values()] } }
  }
}
