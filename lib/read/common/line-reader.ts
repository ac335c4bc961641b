import type { LineCursor } from '../../input/line-cursor.ts'
import type { TraceEvent } from '../../model/events.ts'
import { type ChunkReader, EventBatch, readBatches } from './batches.ts'

/** Reads a log line by line. Subclasses read a line. */
export abstract class LineReader implements ChunkReader {
  readonly batch = new EventBatch()

  /** `batchMax`: events of a batch, after which the next one begins. */
  constructor(
    protected readonly lines: LineCursor,
    private readonly batchMax = Infinity,
  ) {}

  /** All events, a batch per chunk. */
  batches(): AsyncGenerator<TraceEvent[]> {
    return readBatches(this.lines, this)
  }

  readChunk(isLast: boolean): boolean {
    while (this.lines.next()) {
      this.readLine(this.lines)
      if (this.batch.size >= this.batchMax) return true
    }
    if (isLast) this.finish()
    return false
  }

  /** Reads the current line. */
  protected abstract readLine(lines: LineCursor): void

  /** All lines were read. */
  protected abstract finish(): void
}
