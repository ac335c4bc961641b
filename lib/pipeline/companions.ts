import type { Summary } from '../analyze/summary/figures.ts'
import { SummaryPass } from '../analyze/summary/summary.ts'
import { UsageError } from '../errors.ts'
import { Definitions } from '../model/definitions.ts'
import type { InputEvent, TraceEvent } from '../model/events.ts'
import { TIME_NS_MAX } from '../model/limits.ts'
import type { Names } from '../model/names.ts'
import type { OpenInput } from './inputs.ts'

/** Events of a companion that are drawn with the log. */
interface Part {
  readonly name: string
  readonly input: InputEvent
  readonly events: readonly TraceEvent[]
}

/**
 * Inputs that complete a log (its buffers, its model's tensors, its graph). The log's reader uses their definitions; its timeline
 * draws their allocations and issues. Memory grows with the number of distinct tensors and buffers.
 */
export class Companions {
  readonly definitions: Definitions
  /** The inputs that are no companions; all inputs if each is a companion. */
  readonly logs: readonly OpenInput[]
  readonly summaries = new Map<OpenInput, Summary>()
  private readonly parts: Part[] = []
  private allocating: string | undefined

  private constructor(
    inputs: readonly OpenInput[],
    private readonly names: Names,
  ) {
    const logs = inputs.filter(({ isCompanion }) => !isCompanion)
    this.logs = logs.length > 0 ? logs : inputs
    this.definitions = new Definitions(names)
  }

  /** Reads all companions completely. Throws UsageError if two of them contain buffers. */
  static async read(inputs: readonly OpenInput[], names: Names): Promise<Companions> {
    const companions = new Companions(inputs, names)
    for (const input of inputs) if (!companions.logs.includes(input)) await companions.add(input)
    return companions
  }

  private async add(companion: OpenInput): Promise<void> {
    const { name } = companion
    const events: TraceEvent[] = []
    const summary = new SummaryPass(this.names)
    let input: InputEvent | undefined
    for await (const batch of companion.read()) {
      if (batch[0]?.kind === 'input') input = batch[0]
      summary.take(batch)
      this.definitions.add(batch)
      for (const event of batch) if (event.kind === 'allocation' || event.kind === 'issue') events.push(event)
    }
    this.summaries.set(companion, summary.finish())
    if (!input) return
    if (events.some(({ kind }) => kind === 'allocation')) {
      if (this.allocating !== undefined) {
        throw new UsageError(`${name}: contains buffers, and so does ${this.allocating}\nhint: give one of them`)
      }
      this.allocating = name
    }
    this.parts.push({ name, input, events })
  }

  /** The events that are not drawn yet, in times of the log. Throws UsageError if a companion runs on another clock. */
  take(log: InputEvent): TraceEvent[] {
    return this.parts.splice(0).flatMap(({ name, input, events }) => {
      if (input.clock !== 'none' && input.clock !== log.clock) {
        throw new UsageError(`${name}: runs on CLOCK_${input.clock}, the log on CLOCK_${log.clock}: no known relation`)
      }
      const shiftNs = input.clock === 'none' ? 0 : Number(input.originNs - log.originNs)
      if (Math.abs(shiftNs) > TIME_NS_MAX) {
        const days = Math.round(Math.abs(shiftNs) / 86_400e9)
        throw new UsageError(
          `${name}: begins ${days} days away from the log, expected at most 100: is it of another run?`,
        )
      }
      return events.map((event) => moved(event, shiftNs, name))
    })
  }
}

function moved(event: TraceEvent, shiftNs: number, name: string): TraceEvent {
  if (event.kind === 'allocation') return { ...event, atNs: event.atNs + shiftNs }
  if (event.kind === 'issue') return { ...event, atNs: event.atNs + shiftNs, detail: `${name}: ${event.detail}` }
  return event
}
