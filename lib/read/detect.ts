import { closest, UsageError } from '../errors.ts'
import { isAnalysis } from './documents.ts'
import type { Format } from './format.ts'
import { nearestFormat } from './nearest.ts'

/** How the format of an input is found. */
export interface FormatChoice {
  /** Name of the format; by default it is detected. */
  readonly from?: string | undefined
  /** All that are tried, in this order. */
  readonly formats?: readonly Format[] | undefined
  /** Name of the input in errors. */
  readonly input: string
}

/**
 * The format of an input that begins with `head`. `from` names the format of logs only: companions are still detected. Throws
 * UsageError for an unknown format.
 */
export function formatOf(head: Uint8Array, { from, formats = [], input }: FormatChoice): Format {
  if (from === undefined) return detect(formats, head, input)
  const named = formatByName(formats, from)
  const found = named.isCompanion ? undefined : formatIn(head, formats)
  return found?.isCompanion ? found : named
}

/** The format of these whose `sniff` recognises the start of an input, or undefined: of an Analysis, too, whose fields may be named as theirs. */
export function formatIn(head: Uint8Array, formats: readonly Format[]): Format | undefined {
  return isAnalysis(head) ? undefined : formats.find((format) => format.sniff(head))
}

function detect(formats: readonly Format[], head: Uint8Array, input: string): Format {
  if (head.length === 0) throw new UsageError(`${input}: the input is empty (0 bytes)`)
  const format = formatIn(head, formats)
  if (format) return format
  if (isAnalysis(head)) throw new UsageError(`${input}: is an Analysis, not a log\nhint: ggml2perfetto stats ${input}`)
  throw new UsageError(
    `${input}: not a known format; it begins with ${describeBytes(head)}\n` +
      `hint: ${hintOfKind(head, input) ?? hintOf(nearestFormat(head, formats))}`,
  )
}

function hintOf(nearest: Format | undefined): string {
  if (!nearest) return 'name the format with --from; docs/formats.md lists them'
  return `the nearest one is ${nearest.name} (${nearest.title}): --from ${nearest.name}; docs/formats.md lists all`
}

/** What is known to be no log. */
function hintOfKind(head: Uint8Array, input: string): string | undefined {
  // The native format of Nsight Systems is not documented.
  if (/\.(?:nsys-rep|qdrep)$/i.test(input)) return 'nsys export --type sqlite converts it into a file that can be read'
  const magic = String.fromCharCode(...head.subarray(0, 4))
  if (magic === 'GGUF') return `is a model: ggml2perfetto stats ${input} describes it`
  if (magic === '\x7fELF') return `is a program: ggml2perfetto record -- ${input} records it`
  return undefined
}

function formatByName(formats: readonly Format[], name: string): Format {
  const format = formats.find((known) => known.name === name)
  if (format) return format
  const meant = closest(
    name,
    formats.map((known) => known.name),
  )
  const hint = meant === undefined ? '' : `\nhint: did you mean ${meant}?`
  throw new UsageError(`no format is called "${name}"; known formats:\n${listFormats(formats)}${hint}`)
}

function listFormats(formats: readonly Format[]): string {
  const width = Math.max(...formats.map((format) => format.name.length))
  return formats.map((format) => `  ${format.name.padEnd(width)}  ${format.title}`).join('\n')
}

function describeBytes(head: Uint8Array): string {
  const first = head.subarray(0, 16)
  const hex = Array.from(first, (byte) => byte.toString(16).padStart(2, '0')).join(' ')
  const text = Array.from(first, (byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : '.')).join('')
  return `${hex}  "${text}"`
}
