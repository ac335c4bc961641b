import { readdir, stat } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { checkNames, UsageError } from '../errors.ts'
import { OPEN_DATASET_OPTIONS } from '../generated/option-names.ts'
import type { ColumnType } from '../tables/column.ts'
import { TABLE_NAMES, TABLES, TABLES_VERSION, type TableName } from '../tables/schema.ts'
import { operatorSumsSql } from '../tables/sums-sql.ts'
import { type DatasetRows, type DatasetStream, DuckDb, type DuckDbOptions, sqlText } from './duckdb.ts'
import { isReplaced } from './export.ts'
import { explained } from './files.ts'
import { temporaryFolder } from './left-overs.ts'

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
  /** Ends a query that runs: it fails. */
  interrupt(): void
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
  checkNames('openDataset', options, OPEN_DATASET_OPTIONS)
  const isStore = STORE.test(location)
  const root = isStore ? location.replace(/(?<!\/)\/+$/, '') : resolve(location)
  const files = isStore ? undefined : await filesOf(location, root)
  const spill = await temporaryFolder().catch(() => undefined)
  const database = await DuckDb.start({ ...options, spill: spill?.path }).catch((error) => {
    spill?.remove()
    throw error
  })
  const close = () => {
    database.close()
    spill?.remove()
  }
  try {
    // Footers of files are read once.
    await database.run('set parquet_metadata_cache = true')
    // With that cache, DuckDB 1.5.4 fails to take aggregates of `day` from statistics (an internal error).
    await database.run("set disabled_optimizers = 'statistics_propagation'")
    if (isStore) await loadHttpfs(database, location)
    const list = async () => (isStore ? storedFiles(database, location, root) : filesOf(location, root))
    const dataset = new Dataset(database, root, files ?? (await list()), isStore ? undefined : list, close)
    // Patterns are checked before they become paths.
    await database.lock([`${root}/`, `${globSafe(root)}/`])
    return dataset
  } catch (error) {
    close()
    throw error
  }
}

/** The files of each table: paths relative to the dataset, and the version of those of `trace`. */
interface Files {
  readonly tables: Tables
  readonly version: string | undefined
}

type Tables = ReadonlyMap<TableName, readonly string[]>

/** Does SQL use the table of this name? `isNamed`: by its name, and not only as one of all. */
const meantBy =
  (sql: string, isNamed = false) =>
  (name: TableName) =>
    new RegExp(`\\b(${name}${isNamed ? '' : '|show|describe|duckdb_\\w+|\\w+_schema'})\\b`, 'i').test(sql)

/** Which files of `trace` these are: a new file has another number or time. Undefined where one of them is gone. */
async function versionOf(root: string, traces: readonly string[]): Promise<string | undefined> {
  const all = await Promise.all(traces.map((path) => stat(join(root, path), { bigint: true }).catch(() => undefined)))
  const known = all.flatMap((file) => (file ? [`${file.ino} ${file.mtimeNs} ${file.size}`] : []))
  return known.length === all.length ? known.join(',') : undefined
}

/** How often files are listed, and a query is run, whose runs are exported again meanwhile; the pauses become longer. */
const ATTEMPTS = 20
const PAUSE_MS = 10

class Dataset implements OpenDataset {
  readonly #database: DuckDb
  readonly #root: string
  readonly #list: (() => Promise<Files>) | undefined
  readonly #close: () => void
  #files: Files
  readonly #made = new Set<TableName>()

  /** `list` lists the files again; undefined where files of others are not replaced. */
  constructor(
    database: DuckDb,
    root: string,
    files: Files,
    list: (() => Promise<Files>) | undefined,
    close: () => void,
  ) {
    this.#database = database
    this.#root = root
    this.#files = files
    this.#list = list
    this.#close = close
  }

  get runs(): number {
    return this.#files.tables.get('trace')!.length
  }

  query(sql: string): Promise<DatasetRows> {
    return this.#consistently(sql, () => this.#database.select(sql))
  }

  stream(sql: string): Promise<DatasetStream> {
    return this.#consistently(sql, () => this.#database.stream(sql))
  }

  /**
   * Runs it again as long as files were replaced meanwhile. Whoever replaces files of a run removes its file of `trace` first and places a new one
   * last: while that is the same file, all are of one export.
   */
  async #consistently<T>(sql: string, run: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      let result: T | undefined
      let failure: unknown
      try {
        await this.#makeViews(sql)
        result = await run()
      } catch (error) {
        failure = error
      }
      const isSame = !this.#list || (await this.#isSame())
      if (isSame && failure === undefined) return result!
      if (isSame) throw (await this.#damaged(sql, failure as Error)) ?? failure
      if (attempt === ATTEMPTS) throw againAndAgain(this.#root)
      await delay(PAUSE_MS * attempt)
      this.#files = await this.#list()
      this.#made.clear()
    }
  }

  async #isSame(): Promise<boolean> {
    const { tables, version } = this.#files
    return version !== undefined && (await versionOf(this.#root, tables.get('trace')!)) === version
  }

  /** The error of a damaged file, if that is why a query failed. */
  async #damaged(sql: string, { message }: Error): Promise<Error | undefined> {
    if (
      !/parquet|magic bytes|decompress|corrupt|thrift|gzip|zlib|miniz|utf-?8|no file|IO Error|Invalid Error/i.test(
        message,
      )
    )
      return undefined
    // The sums of older runs are made from operators and calls.
    const isMeant = meantBy(/operator_sum/i.test(sql) ? `${sql} operator call` : sql)
    for (const path of TABLE_NAMES.filter(isMeant).flatMap((name) => this.#files.tables.get(name)!)) {
      const list = sqlText(globSafe(`${this.#root}/${path}`))
      const reason = await this.#database.run(`select count(columns(*)) from read_parquet([${list}])`).then(
        () => undefined,
        (error: Error) => error.message.trim().split('\n')[0]!,
      )
      if (reason !== undefined)
        return new UsageError(
          `${this.#root}/${path}: is damaged: ${reason}\nhint: export its log again (--again), or remove all files of this name; other tables can be asked`,
        )
    }
    return undefined
  }

  async #makeViews(sql: string): Promise<void> {
    // A view of a thousand files takes 0.2 s to make: only those that the SQL can mean are made.
    const isMeant = meantBy(sql)
    const isNamed = meantBy(sql, true)
    for (const name of TABLE_NAMES.filter((name) => !this.#made.has(name) && isMeant(name))) {
      try {
        await this.#makeView(name)
        this.#made.add(name)
      } catch (error) {
        // A list of all tables does not need one whose file is damaged.
        if (isNamed(name)) throw error
      }
    }
  }

  interrupt(): void {
    this.#database.interrupt()
  }

  close(): void {
    this.#close()
  }

  async #makeView(name: TableName): Promise<void> {
    const rows = [await this.#rowsOf(name, this.#files.tables.get(name)!)]
    if (name === 'operator_sum') rows.push(...(await this.#olderSums()))
    await this.#database.run(`create or replace view ${name} as ${rows.join(' union all by name ')}`)
  }

  /** The sums of runs whose files are of a version that did not write them. */
  async #olderSums(): Promise<string[]> {
    const summed = new Set(this.#files.tables.get('operator_sum')!.map(runOf))
    const operators = this.#files.tables.get('operator')!.filter((path) => !summed.has(runOf(path)))
    if (operators.length === 0) return []
    const older = new Set(operators.map(runOf))
    const calls = this.#files.tables.get('call')!.filter((path) => older.has(runOf(path)))
    const [operator, call] = [await this.#rowsOf('operator', operators), await this.#rowsOf('call', calls)]
    return [`(with operator as (${operator}), call as (${call}) ${operatorSumsSql(['day'])})`]
  }

  /** SQL of the rows of files. Columns that all files lack, as those of older versions do, are NULL; no files are no rows. */
  async #rowsOf(name: TableName, paths: readonly string[]): Promise<string> {
    const { columns } = TABLES[name]
    const nulls = (names: readonly string[]) =>
      names.map((column) => `null::${SQL_TYPE[(columns as Columns)[column]!.type]} as ${column}`)
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
  const found = await explained(location, 'read', stat(root))
  if (!found.isDirectory()) throw noDataset(location, 'a file')
  const pathsOf = async (name: TableName) => {
    const below = await readdir(join(root, name, VERSION), { recursive: true }).catch(() => [])
    return below.map((path) => `${name}/${VERSION}/${path.replaceAll('\\', '/')}`)
  }
  for (let attempt = 1; ; attempt++) {
    // What is there before others are listed: see #consistently.
    const traces = await pathsOf('trace')
    const version = await versionOf(
      root,
      partsOf(traces).map(({ path }) => path),
    )
    const others = await Promise.all(TABLE_NAMES.filter((name) => name !== 'trace').map(pathsOf))
    const isReplacing = await isReplaced(root)
    // A run whose files were replaced meanwhile has its file of `trace` again.
    const isSame = sameNames(traces, await pathsOf('trace'))
    if (isReplacing && attempt === ATTEMPTS) throw againAndAgain(root)
    if (!isReplacing && (isSame || attempt === ATTEMPTS))
      return { tables: complete(location, [...traces, ...others.flat()]), version }
    await delay(PAUSE_MS * attempt)
  }
}

const sameNames = (a: readonly string[], b: readonly string[]) => a.toSorted().join() === b.toSorted().join()

const againAndAgain = (root: string) =>
  new UsageError(`${root}: its runs are exported again and again: no query sees all files of a run`)

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
  const paths = rows.map(([path]) => String(path).slice(root.length + 1))
  return { tables: complete(location, paths), version: '' }
}

/** The parts of paths of files of tables. */
function partsOf(
  paths: readonly string[],
): { readonly path: string; readonly name: TableName; readonly run: string }[] {
  return paths.flatMap((path) => {
    const [, table, run] = /^(\w+)\/v=\d+\/(day=[^/]+\/[^/.]+\.parquet)$/.exec(path) ?? []
    const name = TABLE_NAMES.find((name) => name === table)
    return name === undefined ? [] : [{ path, name, run: run! }]
  })
}

/** Files of runs whose row of the table trace is there. */
function complete(location: string, paths: readonly string[]): Tables {
  const files = new Map(TABLE_NAMES.map((name) => [name, [] as string[]]))
  const runs = new Set<string>()
  const parts = partsOf(paths)
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
