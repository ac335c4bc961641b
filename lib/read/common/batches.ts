import type { InputEvent, TraceEvent } from '../../model/events.ts'

/** What the chunks of an input are put into: a ByteCursor or a LineCursor. */
interface Window {
  /** Adds the next chunk; false at the end of the input. */
  fill(): Promise<boolean>
  close(): Promise<void>
}

/** What a format does with the window. */
export interface ChunkReader {
  readonly batch: EventBatch
  /** No further bytes are wanted. */
  readonly isAtEnd?: boolean
  /**
   * Reads what is whole in the window; with `isLast`, no more bytes follow: reads all that is left, and ends. True where it
   * stopped because the batch is large enough: it is called again before the next chunk.
   */
  readChunk(isLast: boolean): boolean | Promise<boolean>
}

/** The one loop of all readers: the next chunk, what is whole in it, the batch of its events. */
export async function* readBatches(window: Window, reader: ChunkReader): AsyncGenerator<TraceEvent[]> {
  try {
    for (let isLast = false; !isLast; ) {
      isLast = reader.isAtEnd === true || !(await window.fill())
      for (let isFull = true; isFull; ) {
        isFull = await reader.readChunk(isLast)
        const events = reader.batch.take()
        if (events.length > 0) yield events
      }
    }
  } finally {
    await window.close()
  }
}

/** The events of the next batch. The input event comes first: events that are made before it is known wait behind it. */
export class EventBatch {
  /** Was the input event added? */
  hasBegun = false
  private events: TraceEvent[] = []

  /** How many events there are, also of those that wait. */
  get size(): number {
    return this.events.length
  }

  add(event: TraceEvent): void {
    this.events.push(event)
  }

  /** Now it is known what the input is. `next` are events that come right behind it. */
  begin(input: InputEvent, ...next: readonly TraceEvent[]): void {
    this.hasBegun = true
    this.events.unshift(input, ...next)
  }

  /** The events since the last call; none before the input event. */
  take(): TraceEvent[] {
    if (!this.hasBegun) return []
    const { events } = this
    this.events = []
    return events
  }
}
