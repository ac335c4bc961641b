import { ReorderWindow, type Timed } from '../input/reorder.ts'
import { othersIn } from '../model/batch.ts'
import type { InputEvent, TraceEvent } from '../model/events.ts'
import type { RequestSource, Requests } from '../model/requests/requests.ts'

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
  private requests: Requests | undefined
  private readonly window = new ReorderWindow<Waiting>(WAITING_MAX)
  private isOff = false
  /** Is there what makes a request evident: an output that was read, a change of a sequence, a task? Else there are none. */
  private areEvident = false

  /** Returns the batch, with the requests that ended. */
  take(batch: TraceEvent[]): TraceEvent[] | Promise<TraceEvent[]> {
    if (this.isOff) return batch
    const due: RequestSource[] = []
    for (const i of othersIn(batch)) {
      const earliest = this.push(batch[i]!)
      if (earliest) due.push(earliest.event)
    }
    const [first] = batch
    const begun = first?.kind === 'input' ? this.begin(first, batch) : batch
    return due.length > 0 && !this.isOff ? this.with(begun, due) : begun
  }

  private async with(batch: TraceEvent[], due: readonly RequestSource[]): Promise<TraceEvent[]> {
    const requests = await this.loaded()
    const added = due.flatMap((event) => requests.take(event))
    return added.length > 0 ? [...batch, ...added] : batch
  }

  /** What makes requests is loaded where one is evident, or too many calls wait to find out. */
  private async loaded(): Promise<Requests> {
    this.requests ??= new (await import('../model/requests/requests.ts')).Requests()
    return this.requests
  }

  /** The requests that are left at the end of the input, after `last`, its last events. */
  async *finish(last: TraceEvent[]): AsyncGenerator<TraceEvent[], void> {
    let batch = [...(await this.take(last))]
    if (this.isOff || !this.areEvident) return yield* nonEmpty(batch)
    for (const event of this.left(await this.loaded())) {
      batch.push(event)
      if (batch.length < BATCH_EVENTS) continue
      yield batch
      batch = []
    }
    yield* nonEmpty(batch)
  }

  private *left(requests: Requests): Generator<TraceEvent, void> {
    for (let next = this.window.shift(); next; next = this.window.shift()) yield* requests.take(next.event)
    yield* requests.finish()
  }

  private push(event: TraceEvent): Waiting | undefined {
    switch (event.kind) {
      case 'token':
        return this.window.push({ atNs: event.startNs, event })
      case 'function':
        this.areEvident ||= event.what === 'sample' || event.what === 'get-embeddings'
        return this.window.push({ atNs: event.startNs, event })
      case 'sequence':
      case 'task':
        this.areEvident = true
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
