import type { Position } from '../../errors.ts'
import type { JsonItem, JsonItems } from '../../input/json-items.ts'
import type { TraceEvent } from '../../model/events.ts'
import type { IssueCode } from '../../model/issues.ts'
import { type EventBatch, readBatches } from './batches.ts'

/** Events of a batch, approximately. */
const BATCH_EVENTS = 1024

const CODES = { damaged: 'json-damaged', torn: 'json-without-end', large: 'json-large-event' } as const

/** The issue of something wrong in a JSON document. */
export function jsonIssue(
  item: Exclude<JsonItem, { readonly what: 'item' }>,
): [code: IssueCode, detail: string, at: Position] {
  return [CODES[item.what], item.detail, { byte: item.byte }]
}

/** What makes events of the items of a JSON document. */
export interface ItemReader {
  readonly batch: EventBatch
  /** The document has ended. */
  finish(): void
}

/** Reads a JSON document item by item: `take` gets each, and what is wrong. */
export function readItems(
  items: JsonItems,
  reader: ItemReader,
  take: (item: JsonItem) => void,
): AsyncGenerator<TraceEvent[]> {
  return readBatches(items, {
    batch: reader.batch,
    readChunk(isLast) {
      for (let item = items.next(isLast); item; item = items.next(isLast)) {
        take(item)
        if (reader.batch.size >= BATCH_EVENTS) return true
      }
      if (isLast) reader.finish()
      return false
    },
  })
}
