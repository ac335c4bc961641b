import type { InputEvent, TraceEvent } from '../../model/events.ts'
import { LeftOut } from '../../model/left-out.ts'

/** A window over the chunks of an input: a ByteCursor or a LineCursor. */
interface Window {
  /** Adds the next chunk; false at the end of the input. */
  fill(): Promise<boolean>
  close(): Promise<void>
}

/** A format's reader of the window. */
export interface ChunkReader {
  readonly batch: EventBatch
  /** True: no further bytes are needed. */
  readonly isAtEnd?: boolean
  /**
   * Reads the whole records in the window; with `isLast`, no more bytes follow: reads the rest, and ends. Returns true where
   * the batch is large enough: it is called again before the next chunk.
   */
  readChunk(isLast: boolean): boolean | Promise<boolean>
}

/** The loop of all readers: the next chunk, its whole records, the batch of their events. */
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

/** The events of the next batch. The input event is the first: events that are added earlier wait for it. */
export class EventBatch {
  /** Was the input event added? */
  hasBegun = false
  /** What is left out of the input; see {@link end}. */
  readonly leftOut = new LeftOut()
  private events: TraceEvent[] = []

  /** Number of events, with those that wait. */
  get size(): number {
    return this.events.length
  }

  add(event: TraceEvent): void {
    const { events } = this
    events[events.length] = event // in place of `push`, which V8 calls for arrays that begin empty
  }

  /** Adds the input event ahead of all, with the events `next` after it. */
  begin(input: InputEvent, ...next: readonly TraceEvent[]): void {
    this.hasBegun = true
    this.events.unshift(input, ...next)
  }

  /** Adds what was left out of the input, also lines that were too long: once, when all of it was read. */
  end(lines?: { readonly longLines: number }): void {
    this.leftOut.add('lines of more than 1 MiB', lines?.longLines ?? 0)
    this.events.push(...this.leftOut.events())
  }

  /** The events since the last call; none before the input event. */
  take(): TraceEvent[] {
    if (!this.hasBegun) return []
    const { events } = this
    this.events = []
    return events
  }
}
