import { getOrMake } from '../model/default-map.ts'
import { TABLE_NAMES, type TableName } from './schema.ts'
import { type FilesOf, type NewRow, TableFile } from './table-file.ts'

/** Bytes of the file of a table, which follow those before them. */
export interface TablePiece {
  readonly table: TableName
  readonly bytes: Uint8Array
}

/** The tables of one run. Those without rows have no file. */
export class Tables {
  private readonly files = new Map<TableName, TableFile<TableName>>()

  constructor(private readonly filesOf: FilesOf) {}

  /** Adds a row to a table. */
  add<T extends TableName>(table: T, row: NewRow<T>): void {
    this.file(table).add(row)
  }

  private file<T extends TableName>(table: T, onFull?: () => void): TableFile<T> {
    const file = getOrMake(this.files, table, () => new TableFile<TableName>(table, this.filesOf))
    if (onFull) file.onFull = onFull
    return file as unknown as TableFile<T>
  }

  /** Number of rows by table. */
  get rows(): Readonly<Partial<Record<TableName, number>>> {
    return Object.fromEntries([...this.files].flatMap(([table, { total }]) => (total > 0 ? [[table, total]] : [])))
  }

  /** Are there bytes to take? */
  get hasPieces(): boolean {
    return [...this.files.values()].some(({ hasPieces }) => hasPieces)
  }

  /** The bytes that are complete so far. */
  async *pieces(): AsyncGenerator<TablePiece, void> {
    for (const [table, file] of this.files) for await (const bytes of file.pieces()) yield { table, bytes }
  }

  /** All remaining bytes, of one table after the other; of `trace` last. */
  async *finish(): AsyncGenerator<TablePiece, void> {
    const last = [...TABLE_NAMES.filter((name) => name !== 'trace'), 'trace'] as const
    for (const table of last) {
      const file = this.files.get(table as TableName)
      if (!file || file.total === 0) continue
      for await (const bytes of file.finish()) yield { table: table as TableName, bytes }
    }
  }
}

/** The file of a table, new or known, for those who write its columns themselves. `onFull`: see {@link TableFile}. */
export function fileOf<T extends TableName>(tables: Tables, table: T, onFull: () => void): TableFile<T> {
  return tables['file'](table, onFull)
}
