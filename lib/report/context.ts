import type { Analysis, CallRow } from '../analyze/analysis.ts'
import { mainContext } from '../analyze/calls/main-context.ts'
import type { WhatIf } from '../analyze/what-if/figures.ts'

/** A drawing of the graph of one layer. */
export interface LayerDrawing {
  readonly layer: number
  /** A complete SVG document, whose texts are escaped: it becomes a part of the page. */
  readonly svg: string
}

/** What sections are made from. */
export interface Context {
  readonly analysis: Analysis
  /** The graph of a layer. */
  readonly drawing?: LayerDrawing | undefined
  /** What changes would make of the run. */
  readonly predictions: readonly WhatIf[]
  /** The command that prints figures of these inputs: `stats` and its options. */
  stats(options: string): string
  /** Another command, and its options. */
  command(name: string, options: string): string
}

/** The name of a file without its folders: reports are for other people. */
export const baseName = (path: string): string => path.replace(/^.*[\\/]/, '')

/** A path, quoted for a shell if necessary. */
function shellWord(path: string): string {
  return /^[\w@%+=:,.][\w@%+=:,./-]*$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`
}

/** The context of an Analysis. */
export function contextOf(analysis: Analysis, drawing?: LayerDrawing, predictions: readonly WhatIf[] = []): Context {
  const inputs = analysis.inputs.map(({ name }) => shellWord(baseName(name))).join(' ') || '<inputs>'
  const command = (name: string, options: string) => `ggml2perfetto ${name} ${inputs} ${options}`.trimEnd()
  return { analysis, drawing, predictions, command, stats: (options) => command('stats', options) }
}

/** The calls that a chart compares with each other, and what to say of the others. */
export function comparedCalls({ series, calls }: Analysis): {
  readonly rows: readonly CallRow[]
  readonly note: string
} {
  const rows = series?.calls?.rows ?? []
  const main = mainContext(calls.contexts)
  if (!main || calls.contexts.length < 2) return { rows, note: '' }
  const note = ` Of ${calls.contexts.length} contexts, ${main.role ? `the ${main.role}` : 'the one with the most time'}.`
  return { rows: rows.filter(({ context }) => context === main.context), note }
}

/** `ffn_up MUL_MAT`; `(unnamed)` without both. */
export const operatorName = ({ role, op }: { readonly role: string | null; readonly op: string | null }): string =>
  `${role ?? ''} ${op ?? ''}`.trim() || '(unnamed)'

/** A text for a value that may be not known. */
export const known = <T>(value: T | null | undefined, text: (value: T) => string): string =>
  value === null || value === undefined ? '' : text(value)

/** Values of equal groups of neighbours, so that there are at most `max` groups. */
export function inGroups<T>(items: readonly T[], max: number): T[][] {
  const size = Math.max(1, Math.ceil(items.length / max))
  return Array.from({ length: Math.ceil(items.length / size) }, (_, i) => items.slice(i * size, (i + 1) * size))
}

/** The mean; 0 of none. */
export const mean = (values: readonly number[]): number =>
  values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length
