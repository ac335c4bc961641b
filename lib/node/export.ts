import { createHash, randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readdir, rm, rmdir, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { Summary } from '../analyze/summary/figures.ts'
import { checkNames, UsageError } from '../errors.ts'
import { EXPORT_RUN_OPTIONS } from '../generated/option-names.ts'
import { gunzip } from '../input/gunzip.ts'
import type { ReadingOptions } from '../pipeline/inputs.ts'
import { type RunTables, tablesOf } from '../pipeline/tables/tables-of.ts'
import { TABLE_NAMES, TABLES_VERSION, type TableName, tablePath } from '../tables/schema.ts'
import { exists, fileSource, readFileChunks } from './files.ts'
import { isLeft, ownerMark } from './left-overs.ts'
import { REPLACING, type RunFile, RunFiles } from './run-files.ts'

/** Folder of files that are being written, in the dataset: engines read folders of tables only. */
const UNFINISHED = '.unfinished'
/** To replace the files of a run takes some milliseconds: after this time, its export, in another container, was killed. */
const MOMENT_MS = 60e3
/** Level of gzip: higher ones make files 2 % smaller in twice the time. */
const LEVEL = 4
const DAY = /^\d{4}-\d{2}-\d{2}$/

/** How a run is exported. */
export interface ExportOptions extends ReadingOptions {
  /** Day of the run, `YYYY-MM-DD`, where its log contains no real time. */
  readonly day?: string | undefined
  /** Also write runs again that are in the dataset already. */
  readonly again?: boolean | undefined
  /** Also write a run whose logs contain nothing that is drawn. */
  readonly allowEmpty?: boolean | undefined
  /** Clocks of inputs, as {@link ConvertOptions} has them. */
  readonly clocks?: Readonly<Record<string, string>> | undefined
  /** Called with the index of an input and the number of bytes read so far. */
  readonly onRead?: ((input: number, bytes: number) => void) | undefined
}

/** A run that was exported. */
export interface ExportedRun {
  readonly traceId: string
  /** `false`: the run was in the dataset already, and nothing was written. */
  readonly isNew: boolean
  readonly day: string | undefined
  readonly rows: RunTables['rows']
  /** Size of all its files. */
  readonly bytes: number
}

/**
 * Adds one run to a dataset: one Parquet file for each table, which appears only when it is complete; that of `trace` last. `logs` are
 * those of one run. The same logs are always the same run: they are not written twice, and files that are written again replace those
 * of before, also where these are of another day. Throws as {@link convert} does, and UsageError
 * where a file cannot be read or written.
 */
export async function exportRun(
  logs: string | readonly string[],
  dataset: string,
  exporter: string,
  options: ExportOptions = {},
): Promise<ExportedRun> {
  checkNames('exportRun', options, EXPORT_RUN_OPTIONS)
  const { day: givenDay, again, allowEmpty, onRead, ...reading } = options
  const paths = [logs].flat()
  const traceId = await traceIdOf(paths)
  const known = again ? undefined : await dayOfRun(dataset, traceId)
  if (known) return { traceId, isNew: false, day: known.day, rows: {}, bytes: 0 }
  const inputs = paths.map((path, i) => ({ name: path, source: fileSource(path, (bytes) => onRead?.(i, bytes)) }))
  const compression = { codec: 'gzip', compress: (bytes: Uint8Array) => gzipSync(bytes, { level: LEVEL }) } as const
  const pieces = tablesOf(inputs, { ...reading, traceId, compression }, { name: 'ggml2perfetto', version: exporter })
  const files = new RunFiles(unfinished(dataset, traceId))
  try {
    const { day, rows, summaries } = await files.write(pieces)
    if (!allowEmpty) refuseEmpty(paths, summaries)
    const pathOf = (table: TableName) => join(dataset, tablePath(table, givenDay ?? day, traceId))
    const bytes = await files.place(pathOf, await filesOfRun(dataset, traceId))
    await keepOneDay(dataset, traceId)
    return { traceId, isNew: true, day: givenDay ?? day, rows, bytes }
  } finally {
    await files.remove()
  }
}

/** Throws UsageError for a run without anything to draw: its row would look as if nothing had happened. */
export function refuseEmpty(paths: readonly string[], summaries: readonly Summary[]): void {
  if (summaries.some(({ drawn }) => drawn > 0)) return
  const lines = summaries.map(({ format, left_out, contents = 'no events' }, i) => {
    const counts = left_out.map(({ what, count }) => `${count} ${what}`).join(', ')
    return `${paths[i]}: nothing in it can be exported: as ${format} it contains ${counts || contents}`
  })
  const hints = new Set(summaries.flatMap(({ left_out }) => left_out.flatMap(({ hint }) => hint ?? [])))
  throw new UsageError([...lines, ...[...hints].map((hint) => `hint: ${hint}`)].join('\n'))
}

/** The id of a run: the first 128 bits of the SHA-256 of its log, decompressed; of several, of their hashes in rising order. */
export async function traceIdOf(paths: readonly string[]): Promise<string> {
  const hashes: string[] = []
  for (const path of paths) {
    const hash = createHash('sha256')
    for await (const chunk of gunzip(readFileChunks(path), () => undefined)) hash.update(chunk)
    hashes.push(hash.digest('hex'))
  }
  const [first] = hashes
  const whole = hashes.length === 1 ? first! : createHash('sha256').update(hashes.sort().join('')).digest('hex')
  return whole.slice(0, 32)
}

/** Is this a day that a dataset has folders for? */
export function isDay(text: string): boolean {
  return DAY.test(text) && !Number.isNaN(Date.parse(text))
}

/** All files of a run, of all days: one that was exported before, or of which an export that was killed left files. */
async function filesOfRun(dataset: string, traceId: string): Promise<RunFile[]> {
  const files: RunFile[] = []
  for (const table of TABLE_NAMES) {
    const folder = join(dataset, table, `v=${TABLES_VERSION}`)
    for (const day of await readdir(folder).catch(() => [])) {
      const path = join(folder, day, `${traceId}.parquet`)
      if (existsSync(path)) files.push({ table, path })
    }
  }
  return files
}

/**
 * Removes a run's files of all days but the latest. Two exports of one run at the same time, as of different days, see each other's files only after they
 * have placed their own: both decide alike.
 */
async function keepOneDay(dataset: string, traceId: string): Promise<void> {
  const files = (await filesOfRun(dataset, traceId)).map((file) => ({ ...file, day: basename(dirname(file.path)) }))
  const days = files.flatMap(({ table, day }) => (table === 'trace' ? [day] : [])).sort()
  const others = files.filter(({ day }) => days.slice(0, -1).includes(day))
  // Without its file of `trace`, a run does not count.
  for (const isTrace of [true, false])
    for (const { table, path } of others) if ((table === 'trace') === isTrace) await rm(path, { force: true })
}

/** The folder of days in which a run is complete. */
async function dayOfRun(dataset: string, traceId: string): Promise<{ readonly day: string | undefined } | undefined> {
  const folder = join(dataset, 'trace', `v=${TABLES_VERSION}`)
  for (const name of await readdir(folder).catch(() => [])) {
    if (!(await exists(join(folder, name, `${traceId}.parquet`)))) continue
    const day = name.replace(/^day=/, '')
    return { day: DAY.test(day) ? day : undefined }
  }
  return undefined
}

/** A new folder for files of a run that are being written; this process may export one run twice at once. */
export function unfinished(dataset: string, traceId: string): string {
  return join(dataset, UNFINISHED, `${traceId}.${randomBytes(4).toString('hex')}-${ownerMark()}`)
}

/** Removes what exports that were killed left in a dataset. */
export async function removeLeftOvers(dataset: string): Promise<void> {
  for await (const { path, isLeftOver } of foldersIn(dataset))
    if (isLeftOver) await rm(path, { recursive: true, force: true })
  await rmdir(join(dataset, UNFINISHED)).catch(() => undefined) // others may write there
}

/** Is a run incomplete for a moment, because an export replaces its files? */
export async function isReplaced(dataset: string): Promise<boolean> {
  for await (const { path, isLeftOver } of foldersIn(dataset)) {
    const marker = isLeftOver ? undefined : await stat(join(path, REPLACING)).catch(() => undefined)
    if (marker && Date.now() - marker.mtimeMs < MOMENT_MS) return true
  }
  return false
}

/** Folders of runs whose files are being written. */
async function* foldersIn(dataset: string): AsyncGenerator<{ path: string; isLeftOver: boolean }> {
  const folder = join(dataset, UNFINISHED)
  for (const name of await readdir(folder).catch(() => [])) {
    const [, mark] = /^[0-9a-f]{32}(?:\.[0-9a-f]{8})?-(.+)$/.exec(name) ?? []
    const path = join(folder, name)
    if (mark !== undefined) yield { path, isLeftOver: await isLeft(path, mark) }
  }
}
