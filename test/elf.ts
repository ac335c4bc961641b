import { readFileSync } from 'node:fs'

/** What a library or program of ELF (64 bits, little-endian) needs of others. */

const SHT_DYNAMIC = 6
const SHT_GNU_VERNEED = 0x6ffffffe
const DT_NEEDED = 1n

interface Section {
  readonly type: number
  readonly link: number
  readonly offset: number
  readonly size: number
}

export interface Needs {
  /** As the header has it: 62 is x86-64, 183 arm64. */
  readonly machine: number
  readonly libraries: readonly string[]
  /** Of symbols, such as `GLIBC_2.17`. */
  readonly versions: readonly string[]
}

export function needsOf(path: string): Needs {
  const bytes = readFileSync(path)
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  const word = (at: number) => view.getUint32(at, true)
  const long = (at: number) => Number(view.getBigUint64(at, true))
  const sections: Section[] = Array.from({ length: view.getUint16(60, true) }, (_, i) => {
    const at = long(40) + i * view.getUint16(58, true)
    return { type: word(at + 4), link: word(at + 40), offset: long(at + 24), size: long(at + 32) }
  })
  const textAt = ({ link }: Section, offset: number) => {
    const at = sections[link]!.offset + offset
    return bytes.toString('latin1', at, bytes.indexOf(0, at))
  }
  const libraries: string[] = []
  const versions: string[] = []
  for (const section of sections) {
    if (section.type === SHT_DYNAMIC) {
      for (let at = section.offset; at < section.offset + section.size; at += 16)
        if (view.getBigInt64(at, true) === DT_NEEDED) libraries.push(textAt(section, long(at + 8)))
    }
    if (section.type !== SHT_GNU_VERNEED) continue
    // Elf64_Verneed: version, count, file, first, next; each with Elf64_Vernaux: hash, flags, other, name, next.
    for (let at = section.offset, step = 1; step !== 0; step = word(at + 12), at += step) {
      let of = at + word(at + 8)
      for (let left = view.getUint16(at + 2, true); left > 0; left--, of += word(of + 12))
        versions.push(textAt(section, word(of + 8)))
    }
  }
  return { machine: view.getUint16(18, true), libraries, versions: [...new Set(versions)] }
}
