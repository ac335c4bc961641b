import { statfs } from 'node:fs/promises'
import type { DuckDBConnection, DuckDBInstance, DuckDBValue } from '@duckdb/node-api'
import { UsageError } from '../errors.ts'
import { SqlError } from '../query/errors.ts'
import type { Cell } from '../query/trace-processor.ts'

/** A value in the rows of a dataset: those of traces, and true and false. */
export type DatasetCell = Cell | boolean

/** Rows of a dataset: names of columns, and rows with one cell per column. Integers are exact. */
export interface DatasetRows {
  readonly columns: readonly string[]
  readonly rows: readonly (readonly DatasetCell[])[]
}

/** Rows that DuckDB holds, in less memory than JavaScript: the names of columns, and rows in parts, which can be read once. */
export interface DatasetStream {
  readonly columns: readonly string[]
  readonly parts: AsyncIterable<readonly (readonly DatasetCell[])[]>
}

type Package = typeof import('@duckdb/node-api')

/**
 * Loads DuckDB, an optional dependency.
 * @throws UsageError if it is not installed
 */
export async function loadDuckDb(load: () => Promise<Package> = () => import('@duckdb/node-api')): Promise<Package> {
  try {
    return await load()
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (!/MODULE_NOT_FOUND/.test(code ?? '') && !/^Cannot find/.test(message)) throw error
    throw new UsageError(
      'DuckDB, which runs SQL on datasets, is not installed\n' +
        'hint: npm install @duckdb/node-api@1.5.4-r.1 (70 MB), with --global if ggml2perfetto was installed so',
    )
  }
}

/** How DuckDB runs. */
export interface DuckDbOptions {
  /** Threads; by default one per CPU. */
  readonly threads?: number | undefined
  /** A folder for what a query needs beyond the memory, up to half of the free space there; without one, such a query fails. */
  readonly spill: string | undefined
}

/** A database in memory, which reads files until it is locked, and later only those of one folder. It downloads nothing. */
export class DuckDb {
  readonly #instance: DuckDBInstance
  readonly #connection: DuckDBConnection
  readonly #selects: number

  private constructor(instance: DuckDBInstance, connection: DuckDBConnection, selects: number) {
    this.#instance = instance
    this.#connection = connection
    this.#selects = selects
  }

  /** Starts it. Throws UsageError if DuckDB is not installed. */
  static async start({ threads, spill }: DuckDbOptions): Promise<DuckDb> {
    const { DuckDBInstance, StatementType } = await loadDuckDb()
    const instance = await DuckDBInstance.create(':memory:', {
      autoinstall_known_extensions: 'false',
      autoload_known_extensions: 'false',
      temp_directory: spill ?? '',
      ...(spill === undefined ? {} : { max_temp_directory_size: `${await halfOfFree(spill)}B` }),
      ...(threads === undefined ? {} : { threads: String(threads) }),
    })
    return new DuckDb(instance, await instance.connect(), StatementType.SELECT)
  }

  /** Runs SQL of ours. */
  async run(sql: string): Promise<DatasetRows> {
    const reader = await this.#connection.runAndReadAll(sql)
    return { columns: reader.columnNames(), rows: reader.convertRows(cellOf) as DatasetCell[][] }
  }

  /** From now on, only files below `folders` can be read, no extension is loaded, and no setting changes. */
  async lock(folders: readonly string[]): Promise<void> {
    await this.run(`set allowed_directories = [${folders.map(sqlText).join(', ')}]`)
    await this.run('set enable_external_access = false')
    await this.run('set lock_configuration = true')
  }

  /**
   * Runs one SELECT of a user. Files cannot be written by it: COPY, ATTACH and all other statements are refused before they run.
   * @throws SqlError if the SQL is wrong or is another statement
   */
  async select(sql: string): Promise<DatasetRows> {
    const { columns, parts } = await this.stream(sql)
    const rows: (readonly DatasetCell[])[] = []
    for await (const part of parts) for (const row of part) rows.push(row)
    return { columns, rows }
  }

  /**
   * The same, with rows that DuckDB holds. (Its streaming results end early where a later row fails, and the package does not expose the
   * error.)
   */
  async stream(sql: string): Promise<DatasetStream> {
    try {
      await this.#check(sql)
      const statements = await this.#connection.extractStatements(sql)
      const prepared = await statements.prepare(0)
      if (prepared.statementType !== this.#selects)
        throw new SqlError('expected a SELECT, found another statement\nhint: datasets are read-only for SQL')
      const result = await prepared.run()
      const parts = result.yieldConvertedRows(cellOf) as AsyncIterable<DatasetCell[][]>
      return { columns: result.columnNames(), parts }
    } catch (error) {
      throw sqlErrorOf(error)
    }
  }

  /** Refuses what is not one SELECT, before anything of it is bound: binding some table functions changes settings. */
  async #check(sql: string): Promise<void> {
    if (/^\s*$/.test(sql)) throw new SqlError('the SQL is empty')
    const reader = await this.#connection.runAndReadAll('select json_serialize_sql($1::varchar)', [sql])
    const parsed: ParsedSql = JSON.parse(String(reader.getRows()[0]![0]))
    if (parsed.error && parsed.error_type !== 'not implemented') throw new SqlError(parsed.error_message)
    if (parsed.error)
      throw new SqlError('expected a SELECT, found another statement\nhint: datasets are read-only for SQL')
    if (parsed.statements.length !== 1) throw new SqlError(`expected one statement, found ${parsed.statements.length}`)
    for (const name of tableFunctionsIn(parsed.statements))
      if (!TABLE_FUNCTIONS.has(name))
        throw new SqlError(`the table function ${name} is not allowed\nhint: ${[...TABLE_FUNCTIONS].join(', ')} are`)
  }

  /** Ends a query that runs: it fails. */
  interrupt(): void {
    this.#connection.interrupt()
  }

  /** Frees the memory. */
  close(): void {
    this.#connection.closeSync()
    this.#instance.closeSync()
  }
}

/** What `json_serialize_sql` returns. */
type ParsedSql =
  | { readonly error: true; readonly error_type: string; readonly error_message: string }
  | { readonly error: false; readonly statements: readonly unknown[] }

/** Table functions that only read, and no files but those that are allowed. Others may change settings, write files or run SQL of a text. */
const TABLE_FUNCTIONS: ReadonlySet<string> = new Set([
  ...[
    'generate_series',
    'range',
    'repeat',
    'unnest',
    'json_each',
    'json_tree',
    'glob',
    'histogram',
    'histogram_values',
  ],
  ...[
    'parquet_file_metadata',
    'parquet_kv_metadata',
    'parquet_metadata',
    'parquet_scan',
    'parquet_schema',
    'read_parquet',
  ],
  ...['duckdb_columns', 'duckdb_functions', 'duckdb_settings', 'duckdb_tables', 'duckdb_types', 'duckdb_views'],
  'pragma_table_info',
  'pragma_version',
])

/** Names of the table functions in a parsed statement, in lower case. */
function tableFunctionsIn(statements: readonly unknown[]): Set<string> {
  const names = new Set<string>()
  const nodes: unknown[] = [...statements]
  while (nodes.length > 0) {
    const node = nodes.pop()
    if (typeof node !== 'object' || node === null) continue
    const { type, function: called } = node as { type?: unknown; function?: { function_name?: unknown } }
    if (type === 'TABLE_FUNCTION') names.add(String(called?.function_name).toLowerCase())
    for (const row of Object.values(node)) nodes.push(row)
  }
  return names
}

async function halfOfFree(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder)
  return Math.floor((bavail * bsize) / 2)
}

function sqlErrorOf(error: unknown): Error {
  const { name, message } = error as Error
  return name === 'SqlError' ? (error as Error) : new SqlError(message.trim())
}

/** A text as a literal of SQL. */
export const sqlText = (text: string): string => `'${text.replaceAll("'", "''")}'`

/** A value of a type DECIMAL, such as `1.5` in SQL. */
const isDecimal = (value: object): value is { toDouble(): number } => 'toDouble' in value

/** Dates, lists and other values that JavaScript's JSON does not have are texts, as DuckDB prints them. */
function cellOf(value: DuckDBValue): DatasetCell {
  if (value === null || typeof value === 'number' || typeof value === 'string' || typeof value === 'boolean')
    return value
  if (typeof value === 'object') return isDecimal(value) ? value.toDouble() : String(value)
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : value
}
