import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gunzipSync, gzipSync } from 'node:zlib'
import { parquetReadObjects } from 'hyparquet'
import { inputOf } from '../../lib/node.ts'
import { type TableName, tablesOf } from '../../lib/tables.ts'

export const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** A log of a machine with two NUMA nodes. */
export const NUMA_LOG = 'test/numa/distribute.ggtrace.gz'

/** Each fixture and example, by its path in the repository. */
export const LOGS = ['test/fixtures', 'test/gpu/logs', 'examples']
  .flatMap((place) =>
    readdirSync(join(ROOT, place), { recursive: true, encoding: 'utf8' }).map((name) => join(place, name)),
  )
  .filter(
    (path) =>
      statSync(join(ROOT, path)).isFile() && !/(README.*|SOURCES.*|\.md|\.mjs|\.json5|answers\.json)$/.test(path),
  )
  .concat(NUMA_LOG)
  .sort()

/** The tables of a log as Parquet files, in pieces; throws for a file that is no log. */
export async function tablesIn(path: string) {
  const input = inputOf(join(ROOT, path))
  const traceId = '0'.repeat(32)
  const compression = { codec: 'gzip', compress: (bytes: Uint8Array) => gzipSync(bytes) } as const
  const pieces = tablesOf(input, { traceId, compression }, { name: 'test', version: '1' })
  const files = new Map<TableName, Uint8Array[]>()
  let next = await pieces.next()
  for (; !next.done; next = await pieces.next())
    files.set(next.value.table, [...(files.get(next.value.table) ?? []), next.value.bytes])
  return { files, rows: next.value.rows }
}

/** Rows as texts, to be compared between readers. */
export const texts = (rows: readonly (readonly unknown[])[]) =>
  rows.map((row) => row.map((cell) => (cell === null || cell === undefined ? null : String(cell))))

/** The rows of a Parquet file, by an independent reader. */
export async function byHyparquet(bytes: Uint8Array) {
  const file = new Uint8Array(bytes).buffer
  const compressors = { GZIP: (page: Uint8Array) => gunzipSync(page) }
  return (await parquetReadObjects({ file, compressors })).map((row) => Object.values(row))
}
