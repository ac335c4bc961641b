const MAGIC = 'SQLite format 3\0'

/** Is this the start of an SQLite database? */
export function isSqlite(head: Uint8Array): boolean {
  return head.length >= MAGIC.length && [...MAGIC].every((sign, i) => head[i] === sign.charCodeAt(0))
}
