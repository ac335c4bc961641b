import { isFormatError } from '../../errors.ts'
import { ByteCursor } from '../../input/byte-cursor.ts'
import { type JsonObject, parseJson } from '../../input/json.ts'
import { type Choice, JsonWalk } from '../../input/json-walk.ts'
import type { IssueEvent, TraceEvent } from '../../model/events.ts'
import { type IssueCode, issueOf } from '../../model/issues.ts'
import { type ChunkReader, type EventBatch, readBatches } from './batches.ts'

/**
 * Reads a JSON document of any size, object by object. Damage ends the reading, with an issue: what was read before it remains.
 */
export abstract class JsonDocument implements ChunkReader {
  abstract readonly batch: EventBatch
  protected readonly walk: JsonWalk
  private readonly cursor: ByteCursor

  /** `choose`: what to do with the value at a path, see {@link JsonWalk}. */
  constructor(
    source: AsyncIterable<Uint8Array>,
    protected readonly format: string,
    choose: (path: string) => Choice,
  ) {
    this.cursor = new ByteCursor(source)
    this.walk = new JsonWalk(this.cursor, choose)
  }

  /** All events, a batch per chunk. */
  read(): AsyncGenerator<TraceEvent[]> {
    return readBatches(this.cursor, this)
  }

  get isAtEnd(): boolean {
    return this.walk.hasEnded
  }

  readChunk(isLast: boolean): boolean {
    const { walk } = this
    while (walk.next(isLast)) {
      const object = this.parsed()
      if (object) this.take(object, walk.path)
    }
    if (!isLast) return false
    this.reportEnd()
    this.finish()
    return false
  }

  /** An object at a path that was chosen; {@link JsonWalk.byte} is its place. */
  protected abstract take(object: JsonObject, path: string): void

  protected abstract report(issue: IssueEvent): void

  /** The document has ended. */
  protected abstract finish(): void

  /** Reports an issue of the current value, or at `byte`. */
  protected issue(code: IssueCode, detail: string, atNs: number, byte = this.walk.byte): void {
    this.report(issueOf(code, detail, { byte }, atNs))
  }

  /** The time of issues of the document as a whole. */
  protected get lastNs(): number {
    return 0
  }

  private parsed(): JsonObject | undefined {
    const { walk } = this
    try {
      return parseJson(walk.value, this.format, { byte: walk.byte })
    } catch (error) {
      if (!isFormatError(error)) throw error
      const detail = `expected ${error.expected}, found ${error.found}; left out`
      this.issue('json-damaged', detail, this.lastNs, error.at.byte)
      return undefined
    }
  }

  private reportEnd(): void {
    const { damage, tooLarge, byte } = this.walk
    if (tooLarge > 0)
      this.issue('json-large-event', `${tooLarge} objects are larger than 16 MiB: left out`, this.lastNs, byte)
    if (!damage) return
    const code = damage.found === 'the end' ? 'json-without-end' : 'json-damaged'
    const detail = `expected ${damage.expected}, found ${damage.found}; nothing after it is read`
    this.issue(code, detail, this.lastNs, damage.byte)
  }
}
