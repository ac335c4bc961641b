import { UsageError } from '../errors.ts'
import { Definitions } from '../model/definitions.ts'
import type { InputEvent, TraceEvent } from '../model/events.ts'
import { TIME_NS_MAX } from '../model/limits.ts'
import type { Names } from '../model/names.ts'

/** A companion's events that are drawn with the log. */
interface Told {
  readonly name: string
  readonly input: InputEvent
  readonly events: readonly TraceEvent[]
}

/**
 * Inputs that go with a log (its buffers, its model's tensors, its graph): what they define is for the log's reader, and
 * what they tell of (allocations, issues) is drawn in its timeline. They hold so much as there are distinct tensors and
 * buffers.
 */
export class Companions {
  readonly definitions: Definitions
  private readonly told: Told[] = []
  private allocating: string | undefined

  constructor(names: Names) {
    this.definitions = new Definitions(names)
  }

  /** Takes in a whole companion. Throws UsageError if another told of the same. */
  async add(name: string, batches: AsyncIterable<readonly TraceEvent[]>): Promise<void> {
    const events: TraceEvent[] = []
    let input: InputEvent | undefined
    for await (const batch of batches) {
      if (batch[0]?.kind === 'input') input = batch[0]
      this.definitions.add(batch)
      for (const event of batch) if (event.kind === 'allocation' || event.kind === 'issue') events.push(event)
    }
    if (!input) return
    if (events.some(({ kind }) => kind === 'allocation')) {
      if (this.allocating !== undefined) {
        throw new UsageError(`${name}: tells of buffers, and so does ${this.allocating}\nhint: give one of them`)
      }
      this.allocating = name
    }
    this.told.push({ name, input, events })
  }

  /** What was told and not yet drawn, on the clock of a log. Throws UsageError if that runs on another clock. */
  take(log: InputEvent): TraceEvent[] {
    return this.told.splice(0).flatMap(({ name, input, events }) => {
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
