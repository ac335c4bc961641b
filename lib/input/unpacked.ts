/** The first damage of a packed input. */
export interface Damage {
  readonly detail: string
  /** So many bytes were unpacked before it. */
  readonly byte: number
  readonly hint: string | undefined
}

/** What is found while an input is unpacked. */
export class Unpacked {
  broken: Damage | undefined
  /** The file of an archive that is read: of archives in each other, a path. */
  file: string | undefined
  /** Files of the archive, and sections of a page, that are not read. */
  otherFiles = 0
  otherSections = 0

  /** Further damage is a consequence of the first one. */
  breaks(detail: string, byte: number, hint?: string): void {
    this.broken ??= { detail, byte, hint }
  }

  reads(file: string): void {
    this.file = this.file === undefined ? file : `${this.file}/${file}`
  }
}
