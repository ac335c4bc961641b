import { rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { checkNames, UsageError } from '../errors.ts'
import { EXPORT_ARROW_OPTIONS } from '../generated/option-names.ts'
import { tablesOf } from '../pipeline/tables/tables-of.ts'
import { TABLE_NAMES, type TableName } from '../tables/schema.ts'
import { type ExportedRun, type ExportOptions, refuseEmpty, removeLeftOvers, traceIdOf, unfinished } from './export.ts'
import { explained, fileSource } from './files.ts'
import { makeOutputFolder } from './outputs.ts'
import { RunFiles } from './run-files.ts'

/** How a run is written as streams of Arrow. */
export interface ArrowOptions extends Omit<ExportOptions, 'day' | 'again'> {
  /** Only this table: `output` is its file. */
  readonly table?: TableName | undefined
}

/**
 * Writes the tables of one run as streams of Arrow (IPC): `<table>.arrows` in the folder `output`, or one table as the file `output`.
 * Files of those names are replaced when the new ones are complete; those of tables that this run lacks are removed, so that a folder is
 * of one run. `logs` are those of one run. Throws as {@link convert} does, and UsageError where a file cannot be read or written,
 * or where the run has no rows of `table`.
 */
export async function exportArrow(
  logs: string | readonly string[],
  output: string,
  exporter: string,
  options: ArrowOptions = {},
): Promise<ExportedRun> {
  checkNames('exportArrow', options, EXPORT_ARROW_OPTIONS)
  const { table, allowEmpty, onRead, ...reading } = options
  const paths = [logs].flat()
  const traceId = await traceIdOf(paths)
  const inputs = paths.map((path, i) => ({ name: path, source: fileSource(path, (bytes) => onRead?.(i, bytes)) }))
  const folder = table ? dirname(output) : output
  await explained(folder, 'write', makeOutputFolder(folder))
  await removeLeftOvers(folder)
  const files = new RunFiles(unfinished(folder, traceId), table)
  try {
    const common = { ...reading, traceId, format: 'arrow' } as const
    const { day, rows, summaries } = await files.write(
      tablesOf(inputs, common, { name: 'ggml2perfetto', version: exporter }),
    )
    if (!allowEmpty) refuseEmpty(paths, summaries)
    if (table && rows[table] === undefined) throw noRows(paths, table, Object.keys(rows))
    const pathOf = (name: TableName) => (table ? output : join(output, `${name}.arrows`))
    const bytes = await files.place(pathOf)
    if (!table) for (const name of TABLE_NAMES) if (rows[name] === undefined) await rm(pathOf(name), { force: true })
    return { traceId, isNew: true, day, rows: table ? { [table]: rows[table] } : rows, bytes }
  } finally {
    await files.remove()
  }
}

function noRows(paths: readonly string[], table: TableName, found: readonly string[]): UsageError {
  return new UsageError(`${paths.join(' ')}: expected rows of the table ${table}, found those of ${found.join(', ')}`)
}
