import { getSystemErrorMap } from 'node:util'

// Names in logs may hold anything, and a terminal obeys some of it.
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g

/** `text` with control characters other than tab and line feed made visible. */
export function printable(text: string): string {
  return text.replace(CONTROLS, (control) => `\\x${control.charCodeAt(0).toString(16).padStart(2, '0')}`)
}

/** Hands bytes or text to a standard stream and waits until it took them; rejects if it does not (EPIPE, full disk). */
export function send(stream: NodeJS.WriteStream, data: Uint8Array | string): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.write(data, (error) => (error ? reject(error) : resolve()))
  })
}

/** Prints what was asked for. */
export function print(text: string): Promise<void> {
  return send(process.stdout, `${printable(text)}\n`)
}

/** Prints what is beside the point of the output: notes, warnings, errors. Never fails. */
export function note(text: string): Promise<void> {
  return send(process.stderr, `${printable(text)}\n`).catch(() => undefined)
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
