import { access, constants, type FileHandle, open, rename, rm, rmdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { joined } from '../bytes/joined.ts'
import type { RunTables } from '../pipeline/tables/tables-of.ts'
import { TABLE_NAMES, type TableName } from '../tables/schema.ts'
import type { TablePiece } from '../tables/tables.ts'
import { atExit, removeEmpty, removeNow } from './at-exit.ts'
import { explained } from './files.ts'
import { giveToCaller, makeOutputFolder } from './outputs.ts'

/** Pieces are written to files together, up to this size. */
const WRITE_BYTES = 1 << 18

/** A file in the folder of files that are being written: those of before are being replaced by them. */
export const REPLACING = 'replacing'

/** A file of a run in a dataset. */
export interface RunFile {
  readonly table: TableName
  readonly path: string
}

/** The files of a run while they are written: in a folder of their own, from which they are moved when all are complete. */
export class RunFiles {
  private readonly open = new Map<TableName, { readonly file: FileHandle; pending: Uint8Array[]; size: number }>()
  private bytes = 0
  private readonly release = atExit(() => {
    removeNow(this.folder)
    removeEmpty(dirname(this.folder))
  })

  /** `folder` is new; it is removed in the end, and the folder above it if nothing else is there. `only`: others are not written. */
  constructor(
    private readonly folder: string,
    private readonly only?: TableName | undefined,
  ) {}

  /** Writes all pieces and returns what they return. */
  async write(pieces: AsyncGenerator<TablePiece, RunTables>): Promise<RunTables> {
    await explained(this.folder, 'write', makeOutputFolder(this.folder))
    try {
      let next = await pieces.next()
      for (; !next.done; next = await pieces.next())
        if (!this.only || next.value.table === this.only) await this.add(next.value)
      for (const table of this.open.keys()) await this.flush(table)
      return next.value
    } finally {
      await pieces.return(undefined as never).catch(() => undefined)
      for (const { file } of this.open.values()) await file.close()
    }
  }

  /**
   * Moves the files to their places and returns their size. `older`: paths of files of the same run, by table, which they replace wherever
   * they are. A run counts while its file of `trace` is there: that is removed first and placed last, so that the files of a run
   * are never counted twice, nor old ones with new ones.
   */
  async place(pathOf: (table: TableName) => string, older: readonly RunFile[] = []): Promise<number> {
    const tables = TABLE_NAMES.filter((table) => this.open.has(table) && table !== 'trace')
    // What can fail fails before anything of the older run is removed.
    for (const table of this.open.keys()) await writableFolder(dirname(pathOf(table)))
    if (older.length > 0) await this.announce()
    for (const { table, path } of older) if (table === 'trace') await removeFile(path)
    for (const table of tables) await this.move(table, pathOf(table))
    const placed = new Set(tables.map(pathOf))
    for (const { path } of older) if (!placed.has(path)) await removeFile(path)
    if (this.open.has('trace')) await this.move('trace', pathOf('trace'))
    return this.bytes
  }

  /** Says to readers that the run will be complete again in a moment. */
  private async announce(): Promise<void> {
    const path = join(this.folder, REPLACING)
    await explained(path, 'write', writeFile(path, ''))
  }

  private async move(table: TableName, path: string): Promise<void> {
    await explained(path, 'write', rename(this.temporary(table), path))
  }

  async remove(): Promise<void> {
    this.release()
    await rm(this.folder, { recursive: true, force: true }).catch(() => undefined)
    await rmdir(dirname(this.folder)).catch(() => undefined) // others may write there
  }

  private temporary(table: TableName): string {
    return join(this.folder, table)
  }

  private async add({ table, bytes }: TablePiece): Promise<void> {
    let writing = this.open.get(table)
    if (!writing) {
      const path = this.temporary(table)
      const file = await explained(path, 'write', open(path, 'wx'))
      await giveToCaller(file)
      writing = { file, pending: [], size: 0 }
      this.open.set(table, writing)
    }
    writing.pending.push(bytes)
    writing.size += bytes.length
    if (writing.size >= WRITE_BYTES) await this.flush(table)
  }

  private async flush(table: TableName): Promise<void> {
    const writing = this.open.get(table)!
    const bytes = joined(writing.pending)
    await explained(this.temporary(table), 'write', writing.file.writeFile(bytes))
    this.bytes += bytes.length
    writing.pending = []
    writing.size = 0
  }
}

/** Makes the folder, or throws UsageError if this process cannot write there. */
async function writableFolder(path: string): Promise<void> {
  await explained(path, 'write', makeOutputFolder(path))
  await explained(path, 'write', access(path, constants.W_OK | constants.X_OK))
}

const removeFile = (path: string) => explained(path, 'write', rm(path, { force: true }))
