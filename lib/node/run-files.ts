import { type FileHandle, mkdir, open, rename, rm, rmdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { joined } from '../bytes/joined.ts'
import type { RunTables } from '../pipeline/tables/tables-of.ts'
import { TABLE_NAMES, type TableName } from '../tables/schema.ts'
import type { TablePiece } from '../tables/tables.ts'
import { explainFileError } from './files.ts'

/** Pieces are written to files together, up to this size. */
const WRITE_BYTES = 1 << 18

/** The files of a run while they are written: in a folder of their own, from which they are moved when all are complete. */
export class RunFiles {
  private readonly open = new Map<TableName, { readonly file: FileHandle; pending: Uint8Array[]; size: number }>()
  private bytes = 0

  /** `folder` is new; it is removed in the end, and the folder above it if nothing else is there. `only`: others are not written. */
  constructor(
    private readonly folder: string,
    private readonly only?: TableName | undefined,
  ) {}

  /** Writes all pieces and returns what they return. */
  async write(pieces: AsyncGenerator<TablePiece, RunTables>): Promise<RunTables> {
    await mkdir(this.folder, { recursive: true }).catch((error) => {
      throw explainFileError(this.folder, 'write', error)
    })
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

  /** Moves the files to their places, that of `trace` last; returns their size. */
  async place(pathOf: (table: TableName) => string): Promise<number> {
    const tables = TABLE_NAMES.filter((table) => this.open.has(table))
    for (const table of [
      ...tables.filter((table) => table !== 'trace'),
      ...tables.filter((table) => table === 'trace'),
    ]) {
      const path = pathOf(table)
      try {
        await mkdir(dirname(path), { recursive: true })
        await rename(this.temporary(table), path)
      } catch (error) {
        throw explainFileError(path, 'write', error)
      }
    }
    return this.bytes
  }

  async remove(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true }).catch(() => undefined)
    await rmdir(dirname(this.folder)).catch(() => undefined) // others may write there
  }

  private temporary(table: TableName): string {
    return join(this.folder, table)
  }

  private async add({ table, bytes }: TablePiece): Promise<void> {
    let of = this.open.get(table)
    if (!of) {
      const path = this.temporary(table)
      const file = await open(path, 'wx').catch((error) => {
        throw explainFileError(path, 'write', error)
      })
      of = { file, pending: [], size: 0 }
      this.open.set(table, of)
    }
    of.pending.push(bytes)
    of.size += bytes.length
    if (of.size >= WRITE_BYTES) await this.flush(table)
  }

  private async flush(table: TableName): Promise<void> {
    const of = this.open.get(table)!
    const bytes = joined(of.pending)
    await of.file.writeFile(bytes).catch((error) => {
      throw explainFileError(this.temporary(table), 'write', error)
    })
    this.bytes += bytes.length
    of.pending = []
    of.size = 0
  }
}
