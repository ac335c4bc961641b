import type { Position } from '../../errors.ts'
import type { JsonItem } from '../../input/json-items.ts'
import type { IssueCode } from '../../model/issues.ts'

const CODES = { damaged: 'json-damaged', torn: 'json-without-end', large: 'json-large-event' } as const

/** The issue of something wrong in a JSON document. */
export function jsonIssue(
  item: Exclude<JsonItem, { readonly what: 'item' }>,
): [code: IssueCode, detail: string, at: Position] {
  return [CODES[item.what], item.detail, { byte: item.byte }]
}
