import { ReorderWindow, type Timed } from '../input/reorder.ts'
import type { InputEvent, TraceEvent } from '../model/events.ts'
import { type RequestSource, Requests } from '../model/requests/requests.ts'
import { othersIn } from './event-bounds.ts'

/**
 * Events that wait until earlier ones of other threads came: a log contains the space of one thread after the other, at most some
 * 5000 of these events each, and of threads that write rarely, all that they wrote meanwhile.
 */
const WAITING_MAX = 1 << 16
/** Events of a batch of those that are left: passes need them one batch after the other, not all at once. */
const BATCH_EVENTS = 512

interface Waiting extends Timed {
  readonly event: RequestSource
}

/**
 * Adds the requests of an input to its events: each after the events that it is made of, at the end of a batch. Inputs whose first
 * event states that their requests are known pass unchanged.
 */
export class RequestStage {
  private readonly requests = new Requests()
  private readonly window = new ReorderWindow<Waiting>(WAITING_MAX)
  private isOff = false

  /** Returns the batch, with the requests that ended. `others`: places of the events that are no operators. */
  take(batch: TraceEvent[], others: readonly number[] = othersIn(batch)): TraceEvent[] {
    if (this.isOff) return batch
    const added: TraceEvent[] = []
    for (const i of others) {
      const earliest = this.push(batch[i]!)
      if (earliest) added.push(...this.requests.take(earliest.event))
    }
    const [first] = batch
    const begun = first?.kind === 'input' ? this.begin(first, batch) : batch
    return added.length > 0 && !this.isOff ? [...begun, ...added] : begun
  }

  /** The requests that are left at the end of the input, after `last`, its last events. */
  *finish(last: TraceEvent[]): Generator<TraceEvent[], void> {
    let batch = [...this.take(last)]
    if (this.isOff) return yield* nonEmpty(batch)
    for (const event of this.left()) {
      batch.push(event)
      if (batch.length < BATCH_EVENTS) continue
      yield batch
      batch = []
    }
    yield* nonEmpty(batch)
  }

  private *left(): Generator<TraceEvent, void> {
    for (let next = this.window.shift(); next; next = this.window.shift()) yield* this.requests.take(next.event)
    yield* this.requests.finish()
  }

  private push(event: TraceEvent): Waiting | undefined {
    switch (event.kind) {
      case 'token':
      case 'function':
        return this.window.push({ atNs: event.startNs, event })
      case 'sequence':
      case 'task':
        return this.window.push({ atNs: event.atNs, event })
      default:
        return undefined
    }
  }

  /** Marks the input: whoever reads these events again makes no second requests of them. */
  private begin(input: InputEvent, batch: TraceEvent[]): TraceEvent[] {
    if (input.capabilities?.requests) {
      this.isOff = true
      return batch
    }
    const capabilities = { ...input.capabilities, requests: true }
    return [{ ...input, capabilities }, ...batch.slice(1)]
  }
}

const nonEmpty = (batch: TraceEvent[]) => (batch.length > 0 ? [batch] : [])
