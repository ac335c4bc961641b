import { randomBytes } from 'node:crypto'
import { readdir, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { UsageError } from '../errors.ts'
import type { ColumnType } from '../tables/column.ts'
import { TABLE_NAMES, TABLES, TABLES_VERSION, type TableName } from '../tables/schema.ts'
import { operatorSumsSql } from '../tables/sums-sql.ts'
import { type DatasetRows, type DatasetStream, DuckDb, type DuckDbOptions, sqlText } from './duckdb.ts'
import { explainFileError } from './files.ts'

/** How a dataset is opened. */
export type DatasetOptions = Pick<DuckDbOptions, 'threads'>

/** A dataset, of which questions can be asked. */
export interface OpenDataset {
  /** Number of its runs. */
  readonly runs: number
  /**
   * Runs one SELECT in DuckDB's SQL, in which each table of the dataset is a view; the rows are held in memory. It cannot write, and reads
   * no files but those of the dataset.
   * @throws SqlError if the SQL is wrong, or not one SELECT
   */
  query(sql: string): Promise<DatasetRows>
  /** The same with rows that DuckDB holds, in less memory: read them once, before `close`. */
  stream(sql: string): Promise<DatasetStream>
  /** Frees the memory. */
  close(): void
}

/** Object stores that DuckDB's extension httpfs reads. */
const STORE = /^(s3|s3a|s3n|gs|gcs|r2):\/\//

/**
 * Opens a dataset that `export` wrote: a folder, or the URL of one in an object store (`s3://bucket/dataset`), for which DuckDB's extension
 * httpfs must be installed already. A run counts if its row of the table trace is there, which is written last.
 * @throws UsageError if DuckDB is not installed, or it is no dataset
 */
export async function openDataset(location: string, options: DatasetOptions = {}): Promise<OpenDataset> {
  const isStore = STORE.test(location)
  const root = isStore ? location.replace(/(?<!\/)\/+$/, '') : resolve(location)
  const files = isStore ? undefined : await filesOf(location, root)
  const database = await DuckDb.start({ ...options, spill: spillPath() })
  try {
    // Footers of files are read once.
    await database.run('set parquet_metadata_cache = true')
    // With that cache, DuckDB 1.5.4 fails to take aggregates of `day` from statistics (an internal error).
    await database.run("set disabled_optimizers = 'statistics_propagation'")
    if (isStore) await loadHttpfs(database, location)
    const dataset = new Dataset(database, root, files ?? (await storedFiles(database, location, root)))
    // Patterns are checked before they become paths.
    await database.lock([`${root}/`, `${globSafe(root)}/`])
    return dataset
  } catch (error) {
    database.close()
    throw error
  }
}

const spillPath = () => join(tmpdir(), `ggml2perfetto-${randomBytes(8).toString('hex')}`)

/** Paths of the files of each table, relative to the dataset. */
type Files = ReadonlyMap<TableName, readonly string[]>

class Dataset implements OpenDataset {
  readonly runs: number
  readonly #database: DuckDb
  readonly #root: string
  readonly #files: Files
  readonly #made = new Set<TableName>()

  constructor(database: DuckDb, root: string, files: Files) {
    this.#database = database
    this.#root = root
    this.#files = files
    this.runs = files.get('trace')!.length
  }

  async query(sql: string): Promise<DatasetRows> {
    await this.#makeViews(sql)
    return this.#database.select(sql)
  }

  async stream(sql: string): Promise<DatasetStream> {
    await this.#makeViews(sql)
    return this.#database.stream(sql)
  }

  async #makeViews(sql: string): Promise<void> {
    // A view of a thousand files takes 0.2 s to make: only those that the SQL can mean are made.
    const isMeant = (name: TableName) =>
      new RegExp(`\\b(${name}|show|describe|duckdb_\\w+|\\w+_schema)\\b`, 'i').test(sql)
    for (const name of TABLE_NAMES.filter((name) => !this.#made.has(name) && isMeant(name))) {
      await this.#makeView(name)
      this.#made.add(name)
    }
  }

  close(): void {
    this.#database.close()
  }

  async #makeView(name: TableName): Promise<void> {
    const rows = [await this.#rowsOf(name, this.#files.get(name)!)]
    if (name === 'operator_sum') rows.push(...(await this.#olderSums()))
    await this.#database.run(`create view ${name} as ${rows.join(' union all by name ')}`)
  }

  /** The sums of runs whose files are of a version that did not write them. */
  async #olderSums(): Promise<string[]> {
    const summed = new Set(this.#files.get('operator_sum')!.map(runOf))
    const operators = this.#files.get('operator')!.filter((path) => !summed.has(runOf(path)))
    if (operators.length === 0) return []
    const older = new Set(operators.map(runOf))
    const calls = this.#files.get('call')!.filter((path) => older.has(runOf(path)))
    const [operator, call] = [await this.#rowsOf('operator', operators), await this.#rowsOf('call', calls)]
    return [`(with operator as (${operator}), call as (${call}) ${operatorSumsSql(['day'])})`]
  }

  /** SQL of the rows of files. Columns that all files lack, as those of older versions do, are NULL; no files are no rows. */
  async #rowsOf(name: TableName, paths: readonly string[]): Promise<string> {
    const { columns } = TABLES[name]
    const nulls = (of: readonly string[]) =>
      of.map((column) => `null::${SQL_TYPE[(columns as Columns)[column]!.type]} as ${column}`)
    if (paths.length === 0) {
      const empty = [...nulls(Object.keys(columns)), 'null::date as day'].join(', ')
      return `select ${empty} where false`
    }
    const list = paths.map((path) => sqlText(globSafe(`${this.#root}/${path}`))).join(', ')
    const options = `union_by_name = true, hive_partitioning = true, hive_types = {'day': date, 'v': int}`
    const from = `read_parquet([${list}], ${options})`
    const there = await this.#database.run(`describe select * from ${from}`)
    const known = new Set(there.rows.map(([column]) => column))
    const missing = nulls(Object.keys(columns).filter((column) => !known.has(column)))
    return `select ${['* exclude (v)', ...missing].join(', ')} from ${from}`
  }
}

type Columns = Readonly<Record<string, { readonly type: ColumnType }>>

const SQL_TYPE: Readonly<Record<ColumnType, string>> = {
  string: 'varchar',
  int64: 'bigint',
  double: 'double',
  boolean: 'boolean',
}

/** Day and name of a run's files, which those of all of its tables have. */
const runOf = (path: string) => path.split('/').slice(-2).join('/')

/** Paths are patterns for DuckDB. */
const globSafe = (path: string) => path.replace(/[*?[]/g, (sign) => `[${sign}]`)

const VERSION = `v=${TABLES_VERSION}`

async function filesOf(location: string, root: string): Promise<Files> {
  const found = await stat(root).catch((error) => {
    throw explainFileError(location, 'read', error)
  })
  if (!found.isDirectory()) throw noDataset(location, 'a file')
  const paths = await Promise.all(
    TABLE_NAMES.map(async (name) => {
      const below = await readdir(join(root, name, VERSION), { recursive: true }).catch(() => [])
      return below.map((path) => `${name}/${VERSION}/${path.replaceAll('\\', '/')}`)
    }),
  )
  return complete(location, paths.flat())
}

async function loadHttpfs(database: DuckDb, location: string): Promise<void> {
  await database.run('load httpfs').catch(() => {
    throw new UsageError(
      `${location}: DuckDB reads object stores by its extension httpfs, which is not installed\n` +
        `hint: INSTALL httpfs, once, in DuckDB's own shell; or copy the dataset to a folder`,
    )
  })
}

async function storedFiles(database: DuckDb, location: string, root: string): Promise<Files> {
  const { rows } = await database
    .run(`select file from glob(${sqlText(`${root}/*/${VERSION}/*/*.parquet`)})`)
    .catch((error) => {
      throw new UsageError(`${location}: cannot read: ${(error as Error).message.trim()}`)
    })
  return complete(
    location,
    rows.map(([path]) => String(path).slice(root.length + 1)),
  )
}

/** Files of runs whose row of the table trace is there. */
function complete(location: string, paths: readonly string[]): Files {
  const files = new Map(TABLE_NAMES.map((name) => [name, [] as string[]]))
  const runs = new Set<string>()
  const parts = paths.flatMap((path) => {
    const [, table, run] = /^(\w+)\/v=\d+\/(day=[^/]+\/[^/.]+\.parquet)$/.exec(path) ?? []
    const name = TABLE_NAMES.find((name) => name === table)
    return name === undefined ? [] : [{ path, name, run: run! }]
  })
  for (const { name, run } of parts) if (name === 'trace') runs.add(run)
  for (const { path, name, run } of parts) {
    if (runs.has(run)) files.get(name)!.push(path)
  }
  if (runs.size === 0) throw noDataset(location, 'no such file')
  return files
}

function noDataset(location: string, found: string): UsageError {
  const example = `ggml2perfetto export <logs..> -o ${basename(location) === '' ? 'dataset' : location}`
  return new UsageError(
    `${location}: is not a dataset: expected ${tablePattern()}, found ${found}\nhint: ${example} writes one`,
  )
}

const tablePattern = () => `trace/${VERSION}/day=…/<trace_id>.parquet`
