import { getSystemErrorMap } from 'node:util'

// Names in logs may hold anything, and a terminal obeys some of it: control characters, and those that turn the direction of
// writing, with which a text can look like another one.
const CONTROLS =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

const hex = (text: string, digits: number) => text.charCodeAt(0).toString(16).padStart(digits, '0')

/** `text` with control characters other than tab and line feed made visible. */
export function printable(text: string): string {
  return text.replace(CONTROLS, (control) => (control <= '\u00ff' ? `\\x${hex(control, 2)}` : `\\u${hex(control, 4)}`))
}

/** The same of a text that is to be one line. */
export function oneLine(text: string): string {
  return printable(text).replaceAll('\n', '\\n')
}

/** JSON that means the same, with control characters as escapes. */
export function printableJson(json: string): string {
  return json.replace(CONTROLS, (control) => `\\u${hex(control, 4)}`)
}

/** Hands bytes or text to a standard stream and waits until it took them; rejects if it does not (EPIPE, full disk). */
export function send(stream: NodeJS.WriteStream, data: Uint8Array | string): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.write(data, (error) => (error ? reject(error) : resolve()))
  })
}

/** A text, or lines: where one of these has a line feed, that is a part of a name, and shown as such. */
const shown = (text: string | readonly string[]) =>
  typeof text === 'string' ? printable(text) : text.map(oneLine).join('\n')

/** Prints what was asked for. */
export function print(text: string | readonly string[]): Promise<void> {
  return send(process.stdout, `${shown(text)}\n`)
}

/** Prints JSON: exactly as it is, but to a terminal. */
export function printJson(json: string): Promise<void> {
  return send(process.stdout, `${process.stdout.isTTY ? printableJson(json) : json}\n`)
}

/** Prints what is beside the point of the output: notes, warnings, errors. Never fails. */
export function note(text: string | readonly string[]): Promise<void> {
  return send(process.stderr, `${shown(text)}\n`).catch(() => undefined)
}

/** The system's own words for a failed call (`no space left on device`), or undefined for errors of another kind. */
export function systemReason(error: unknown): string | undefined {
  const { errno, syscall } = (error ?? {}) as NodeJS.ErrnoException
  if (errno === undefined || syscall === undefined) return undefined
  return getSystemErrorMap().get(errno)?.[1] ?? (error as Error).message
}

/** Lines `key  value` with the values below each other. */
export function aligned(facts: readonly (readonly [string, string])[], indent = '  '): string[] {
  const width = Math.max(0, ...facts.map(([key]) => key.length))
  return facts.map(([key, value]) => `${indent}${key.padEnd(width)}  ${value}`)
}
