import { getSystemErrorMap } from 'node:util'
import { visible, visibleJson } from '../lib/cli.ts'
import { io } from './io.ts'

// Names in logs may contain anything, and terminals interpret some of it.

/** `text` in one line, as people may see it. */
export const oneLine = (text: string): string => visible(text).replaceAll('\n', '\\n')

/** The same for a cell of a table, whose columns a tab would shift. */
export const inCell = (text: string): string => oneLine(text).replaceAll('\t', '\\t')

/** Writes bytes or text to a standard stream and waits until they are accepted; rejects on failure (EPIPE, full disk). */
export function send(stream: NodeJS.WritableStream, data: Uint8Array | string): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.write(data, (error) => (error ? reject(error) : resolve()))
  })
}

/** A text, or lines: a line feed within one of these is part of a name, and shown as an escape. */
const shown = (text: string | readonly string[]) =>
  typeof text === 'string' ? visible(text) : text.map(oneLine).join('\n')

/** Lines are collected: one write per line would cost more than the query. */
const BATCH_CHARACTERS = 1 << 16

/** Prints lines as they are. */
export async function sendLines(lines: Iterable<string> | AsyncIterable<string>): Promise<void> {
  let batch = ''
  for await (const line of lines) {
    batch += `${line}\n`
    if (batch.length < BATCH_CHARACTERS) continue
    await send(io().stdout, batch)
    batch = ''
  }
  if (batch !== '') await send(io().stdout, batch)
}

/** Prints the result of a command. */
export function print(text: string | readonly string[]): Promise<void> {
  return send(io().stdout, `${shown(text)}\n`)
}

/** Widths that texts are wrapped to. */
const [WIDTH_MIN, WIDTH_MAX] = [40, 200]
/** Lines that are bold on a terminal, apart from the first: findings. */
const BOLD = /^\d+\. /
const COLOURS = { red: 31, green: 32, yellow: 33 }

/** A sentence that has a colour on a terminal. */
export interface Coloured {
  readonly text: string
  readonly colour: keyof typeof COLOURS | undefined
}

/** Prints sentences: on a terminal wrapped to its width, the important ones bold or in a colour; elsewhere a line each, for other programs. */
export function printText(sentences: readonly (string | Coloured)[]): Promise<void> {
  const { stdout, env } = io()
  const lines = sentences.map((line) => (typeof line === 'string' ? line : line.text))
  if (!stdout.isTTY) return print(lines)
  const width = Math.min(Math.max(stdout.columns ?? 80, WIDTH_MIN), WIDTH_MAX)
  const isPlain = Boolean(env['NO_COLOR']) || env['TERM'] === 'dumb'
  const shown = lines.flatMap((line, i) => {
    const parts = wrapped(oneLine(line), width)
    if (isPlain || (i > 0 && !BOLD.test(line))) return parts
    const sentence = sentences[i]!
    const colour = typeof sentence === 'string' ? undefined : sentence.colour
    const style = colour === undefined ? '1' : `1;${COLOURS[colour]}`
    return parts.map((part) => `\x1b[${style}m${part}\x1b[0m`)
  })
  return sendLines(shown)
}

/** Prints JSON, in which characters that are not visible are escapes: its values are exact. */
export const printJson = (json: string): Promise<void> => send(io().stdout, `${visibleJson(json)}\n`)

/** Prints notes, warnings and errors to standard error. Never fails. */
export function note(text: string | readonly string[]): Promise<void> {
  return send(io().stderr, `${shown(text)}\n`).catch(() => undefined)
}

/** The system's message for a failed call (`no space left on device`), or undefined for other errors. */
export function systemReason(error: unknown): string | undefined {
  const { errno, syscall } = (error ?? {}) as NodeJS.ErrnoException
  if (errno === undefined || syscall === undefined) return undefined
  return getSystemErrorMap().get(errno)?.[1] ?? (error as Error).message
}

/** Lines `key  value` with aligned values. */
export function aligned(facts: readonly (readonly [string, string])[], indent = '  '): string[] {
  const keys = facts.map(([key]) => oneLine(key))
  const width = Math.max(0, ...keys.map((key) => key.length))
  return facts.map(([, value], i) => `${indent}${keys[i]!.padEnd(width)}  ${value}`)
}

/** Rows with aligned columns: those of `texts` to the left, numbers to the right. */
export function table(all: readonly (readonly string[])[], texts: readonly number[] = [0]): string[] {
  const rows = all.map((row) => row.map(inCell))
  const widths = rows[0]!.map((_, i) => Math.max(...rows.map((row) => row[i]!.length)))
  return rows.map((row) => {
    const cells = row.map((cell, i) => (texts.includes(i) ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!)))
    return `  ${cells.join('   ')}`.trimEnd()
  })
}

/** A line as lines of at most `width` characters, cut between words; further lines are indented as the first one is, and by `hang` more. */
export function wrapped(line: string, width: number, hang = 2): string[] {
  const [indent] = /^ */.exec(line)!
  const lines: string[] = []
  let current = indent
  for (const word of line.slice(indent.length).split(' ')) {
    const isFirst = current.trim() === ''
    if (isFirst || current.length + 1 + word.length <= width) current += isFirst ? word : ` ${word}`
    else {
      lines.push(current)
      current = `${indent}${' '.repeat(hang)}${word}`
    }
  }
  return [...lines, current]
}

/** A path, quoted for a shell if necessary. */
export function quoted(path: string): string {
  if (path.startsWith('-')) return quoted(`./${path}`)
  return /^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`
}
