import { type FileHandle, open } from 'node:fs/promises'

/** What an ELF file contains about how it is loaded. */
export interface Elf {
  readonly bits: 32 | 64
  /** `e_machine`: 62 is x86-64, 183 is arm64. */
  readonly machine: number
  /** The dynamic loader (PT_INTERP); a program without one is static. */
  readonly loader: string | undefined
  /** Libraries it is linked with (DT_NEEDED). */
  readonly needed: readonly string[]
  /** Folders to search for them, with `$ORIGIN` not replaced (DT_RPATH, DT_RUNPATH). */
  readonly folders: readonly string[]
  /** Dynamic symbols that it imports. */
  readonly imports: ReadonlySet<string>
  /** Dynamic symbols that it exports. */
  readonly exports: ReadonlySet<string>
  /** Other symbols that it defines; a stripped file has none. */
  readonly symbols: ReadonlySet<string>
}

const HEADER_BYTES = 64
const PT_INTERP = 3
const SHT_SYMTAB = 2
const SHT_DYNAMIC = 6
const SHT_DYNSYM = 11
const DT = { needed: 1, rpath: 15, runpath: 29 }
/** No table of a valid file is longer. */
const TABLE_BYTES_MAX = 1 << 28

/** Reads an ELF file, and of its dynamic symbols those in `wanted`. Returns undefined if it is not an ELF file. */
export async function readElf(path: string, wanted: readonly string[]): Promise<Elf | undefined> {
  const file = await open(path)
  try {
    return await new ElfReader(file).read(wanted)
  } catch (error) {
    // An offset outside of the file, or an invalid value: the loader will report it.
    if ((error as Error).name === 'RangeError') return undefined
    throw error
  } finally {
    await file.close()
  }
}

interface Section {
  readonly type: number
  readonly offset: number
  readonly size: number
  /** The section that contains the texts of this one. */
  readonly link: number
}

class ElfReader {
  private isWide = true
  private isLittle = true

  constructor(private readonly file: FileHandle) {}

  async read(wanted: readonly string[]): Promise<Elf | undefined> {
    const head = await this.view(0, HEADER_BYTES).catch(() => undefined)
    if (head?.getUint32(0) !== 0x7f454c46) return undefined
    this.isWide = head.getUint8(4) === 2
    this.isLittle = head.getUint8(5) === 1
    const [needed, folders] = [[] as string[], [] as string[]]
    const [imports, exports, symbols] = [new Set<string>(), new Set<string>(), new Set<string>()]
    const loader = await this.loader(head)
    const sections = await this.sections(head)
    for (const section of sections) {
      const texts = sections[section.link]
      if (!texts) continue
      if (section.type === SHT_DYNAMIC) await this.dynamic(section, texts, needed, folders)
      if (section.type === SHT_DYNSYM) await this.symbols(section, texts, new Set(wanted), imports, exports)
      if (section.type === SHT_SYMTAB) await this.symbols(section, texts, new Set(wanted), new Set(), symbols)
    }
    return {
      bits: this.isWide ? 64 : 32,
      machine: head.getUint16(18, this.isLittle),
      loader,
      needed,
      folders,
      imports,
      exports,
      symbols,
    }
  }

  private async loader(head: DataView): Promise<string | undefined> {
    const at = this.word(head, this.isWide ? 32 : 28)
    const size = head.getUint16(this.isWide ? 54 : 42, this.isLittle)
    const count = head.getUint16(this.isWide ? 56 : 44, this.isLittle)
    const table = await this.view(at, size * count)
    for (let entry = 0; entry < size * count; entry += size) {
      if (table.getUint32(entry, this.isLittle) !== PT_INTERP) continue
      const offset = this.word(table, entry + (this.isWide ? 8 : 4))
      const length = this.word(table, entry + (this.isWide ? 32 : 16))
      return textAt(await this.view(offset, length), 0)
    }
    return undefined
  }

  private async sections(head: DataView): Promise<Section[]> {
    const at = this.word(head, this.isWide ? 40 : 32)
    const size = head.getUint16(this.isWide ? 58 : 46, this.isLittle)
    const count = head.getUint16(this.isWide ? 60 : 48, this.isLittle)
    if (at === 0) return []
    const table = await this.view(at, size * count)
    return Array.from({ length: count }, (_, i) => ({
      type: table.getUint32(i * size + 4, this.isLittle),
      offset: this.word(table, i * size + (this.isWide ? 24 : 16)),
      size: this.word(table, i * size + (this.isWide ? 32 : 20)),
      link: table.getUint32(i * size + (this.isWide ? 40 : 24), this.isLittle),
    }))
  }

  private async dynamic(section: Section, texts: Section, needed: string[], folders: string[]): Promise<void> {
    const table = await this.view(section.offset, section.size)
    const strings = await this.view(texts.offset, texts.size)
    const width = this.isWide ? 8 : 4
    for (let entry = 0; entry + 2 * width <= section.size; entry += 2 * width) {
      const tag = this.word(table, entry)
      const text = () => textAt(strings, this.word(table, entry + width))
      if (tag === DT.needed) needed.push(text())
      if (tag === DT.rpath || tag === DT.runpath) folders.push(...text().split(':').filter(Boolean))
    }
  }

  private async symbols(
    section: Section,
    texts: Section,
    wanted: ReadonlySet<string>,
    imports: Set<string>,
    exports: Set<string>,
  ): Promise<void> {
    const table = await this.view(section.offset, section.size)
    const strings = await this.view(texts.offset, texts.size)
    const size = this.isWide ? 24 : 16
    for (let entry = 0; entry + size <= section.size; entry += size) {
      const name = textAt(strings, table.getUint32(entry, this.isLittle))
      if (!wanted.has(name)) continue
      const isImport = table.getUint16(entry + (this.isWide ? 6 : 14), this.isLittle) === 0
      ;(isImport ? imports : exports).add(name)
    }
  }

  /** A number with the width of an address. Throws RangeError if it cannot be an offset in a file. */
  private word(view: DataView, at: number): number {
    return this.isWide ? Number(view.getBigUint64(at, this.isLittle)) : view.getUint32(at, this.isLittle)
  }

  private async view(offset: number, length: number): Promise<DataView> {
    if (length > TABLE_BYTES_MAX || !Number.isSafeInteger(offset)) throw new RangeError('no table of an ELF file')
    const bytes = new Uint8Array(length)
    const { bytesRead } = await this.file.read(bytes, 0, length, offset)
    if (bytesRead < length) throw new RangeError('the ELF file is cut')
    return new DataView(bytes.buffer)
  }
}

/** A text up to its zero byte. */
function textAt(view: DataView, at: number): string {
  const text = Buffer.from(view.buffer as ArrayBuffer, at)
  const end = text.indexOf(0)
  return text.toString('utf8', 0, end < 0 ? text.length : end) // paths, too
}
