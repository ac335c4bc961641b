import { getSystemErrorMap } from 'node:util'
import { io } from './io.ts'

// Names in logs may contain anything, and terminals interpret some of it: control characters, and those that change the direction
// of text, with which a text can look like another one.
const CONTROLS =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the expression must match control characters
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

const hex = (text: string, digits: number) => text.charCodeAt(0).toString(16).padStart(digits, '0')

/** `text` with control characters other than tab and line feed made visible. */
export function printable(text: string): string {
  return text.replace(CONTROLS, (control) => (control <= '\u00ff' ? `\\x${hex(control, 2)}` : `\\u${hex(control, 4)}`))
}

/** The same for a text that must be one line. */
export function oneLine(text: string): string {
  return printable(text).replaceAll('\n', '\\n')
}

/** Equivalent JSON, with control characters as escapes. */
export function printableJson(json: string): string {
  return json.replace(CONTROLS, (control) => `\\u${hex(control, 4)}`)
}

/** Writes bytes or text to a standard stream and waits until they are accepted; rejects on failure (EPIPE, full disk). */
export function send(stream: NodeJS.WritableStream, data: Uint8Array | string): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.write(data, (error) => (error ? reject(error) : resolve()))
  })
}

/** A text, or lines: a line feed within one of these is part of a name, and shown as an escape. */
const shown = (text: string | readonly string[]) =>
  typeof text === 'string' ? printable(text) : text.map(oneLine).join('\n')

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

/** Prints JSON: unchanged, except to a terminal. */
export function printJson(json: string): Promise<void> {
  const { stdout } = io()
  return send(stdout, `${stdout.isTTY ? printableJson(json) : json}\n`)
}

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
  const width = Math.max(0, ...facts.map(([key]) => key.length))
  return facts.map(([key, value]) => `${indent}${key.padEnd(width)}  ${value}`)
}

/** Rows with aligned columns: those of `texts` to the left, numbers to the right. */
export function table(rows: readonly (readonly string[])[], texts: readonly number[] = [0]): string[] {
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
