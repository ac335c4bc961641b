/** What the bed ran, as it lists it (BED_LOG). */
export interface BedWork {
  readonly event: 'work'
  readonly kind: 'kernel' | 'copy' | 'fill'
  readonly device: number
  readonly stream: number
  /** When it began, in ns of CLOCK_MONOTONIC, and how long it lasted. */
  readonly start: number
  readonly ns: number
  readonly isOfGraph: boolean
  readonly grid: string
  readonly block: string
  readonly bytes: number
  readonly name: string
}

/** `rms_norm_f32` of `_Z12rms_norm_f32ILi256…`; without a mangled name, itself. */
export function shortName(mangled: string): string {
  const [, length, rest] = /^_ZL?(\d+)(.*)$/.exec(mangled) ?? []
  return length === undefined ? mangled : rest!.slice(0, Number(length))
}
