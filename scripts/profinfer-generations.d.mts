export type Row = Readonly<Record<string, string>>
export function rowsOf(csv: string): Row[]
export function textOf(rows: readonly Row[], options?: { comma?: boolean }): string
export function openharmonyOf(
  rows: readonly Row[],
  options: { tgid: number; straight?: boolean; struct?: boolean },
): string
export function ktraceOf(
  rows: readonly Row[],
  options?: { command?: string; pauseNs?: number; batch?: number; parents?: boolean; list?: boolean },
): string
export function without(text: string, places: readonly number[]): string
