import { closest, UsageError } from '../errors.ts'
import { isAnalysis } from './documents.ts'
import type { Format } from './format.ts'

/** Lines that may be ahead of a log, such as what its program or a shell printed first. */
const LINES_MAX = 64
/** What is written before each line of a log: a mark of a quotation, a line's number, a time with its date. */
// bounded: the head of an input
const BEFORE_LINES = /^(?:[>|] ?|\d+[:\t] ?|\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?\S*\]? )/gm
/** A name of a tool, a file or a library in a title: with a capital, a digit or a sign within. */
// bounded: a word of a title
const NAME = /^[A-Za-z]+(?:[A-Z\d_.-][\w.-]*)$/
const NAME_MIN = 4

/**
 * The format that an input resembles, though no format recognises it: by its lines after the first ones, or without what is before each; else
 * by the names of tools and files in it. Undefined where it resembles none.
 */
function nearestFormat(head: Uint8Array, formats: readonly Format[]): Format | undefined {
  if (head.includes(0)) return undefined // no text
  const text = new TextDecoder().decode(head)
  return byLines(text, formats) ?? byNames(text, formats)
}

function byLines(text: string, formats: readonly Format[]): Format | undefined {
  for (const variant of [text, text.replace(BEFORE_LINES, '')]) {
    const lines = variant.split('\n')
    for (let first = variant === text ? 1 : 0; first < Math.min(lines.length, LINES_MAX); first++) {
      const rest = new TextEncoder().encode(lines.slice(first).join('\n'))
      const format = rest.length > 0 ? formats.find((known) => known.sniff(rest)) : undefined
      if (format) return format
    }
  }
  return undefined
}

function byNames(text: string, formats: readonly Format[]): Format | undefined {
  const words = new Set(wordsOf(text))
  const names = formats.map(namesOf)
  const scores = names.map((fields) => {
    const found = [...fields].filter((name) => words.has(name))
    return found.reduce((sum, name) => sum + 1 / names.filter((other) => other.has(name)).length, 0)
  })
  const best = Math.max(...scores)
  return best > 0 ? formats[scores.indexOf(best)] : undefined
}

/** Names in the title of a format, and its own. */
function namesOf({ name, title }: Format): Set<string> {
  // bounded: a word of a title
  const inTitle = title.split(/[\s,:;()]+/).map((word) => word.replace(/'s$|[.']+$/, ''))
  const all = [name, ...inTitle.filter((word) => NAME.test(word))]
  return new Set(all.filter((word) => word.length >= NAME_MIN).map((word) => word.toLowerCase()))
}

// bounded: the head of an input
const wordsOf = (text: string) => text.toLowerCase().match(/[a-z\d][\w.-]*\w/g) ?? []

/** How the format of an input is found. */
export interface FormatChoice {
  /** Name of the format; by default it is detected. */
  readonly from?: string | undefined
  /** All that are tried, in this order. */
  readonly formats?: readonly Format[] | undefined
  /** Name of the input in errors. */
  readonly input: string
  /** The file that is read, where the input is an archive. */
  readonly file?: string | undefined
}

/**
 * The format of an input that begins with `head`. `from` names the format of logs only: companions are still detected. Throws
 * UsageError for an unknown format.
 */
export function formatOf(head: Uint8Array, { from, formats = [], input, file }: FormatChoice): Format {
  if (from === undefined) return detect(formats, head, input, file)
  const named = formatByName(formats, from)
  const found = named.isCompanion ? undefined : formatIn(head, formats)
  return found?.isCompanion ? found : named
}

/** The format of these whose `sniff` recognises the start of an input, or undefined: of an Analysis, too, whose fields may be named as theirs. */
export function formatIn(head: Uint8Array, formats: readonly Format[]): Format | undefined {
  return isAnalysis(head) ? undefined : formats.find((format) => format.sniff(head))
}

function detect(formats: readonly Format[], head: Uint8Array, input: string, file: string | undefined): Format {
  if (head.length === 0) throw new UsageError(`${input}: the input is empty (0 bytes)`)
  const format = formatIn(head, formats)
  if (format) return format
  if (isAnalysis(head)) throw new UsageError(`${input}: is an Analysis, not a log\nhint: ggml2perfetto stats ${input}`)
  const what = file === undefined ? 'it' : `its first file ${JSON.stringify(file)}`
  throw new UsageError(
    `${input}: not a known format; ${what} begins with ${describeBytes(head)}\n` +
      `hint: ${hintOfKind(head, input) ?? hintOf(nearestFormat(head, formats))}`,
  )
}

function hintOf(nearest: Format | undefined): string {
  if (!nearest) return 'name the format with --from; docs/reference/formats.md lists them'
  return `the nearest one is ${nearest.name} (${nearest.title}): --from ${nearest.name}; docs/reference/formats.md lists all`
}

/** What is known to be no log. */
function hintOfKind(head: Uint8Array, input: string): string | undefined {
  // The native format of Nsight Systems is not documented.
  if (/\.(?:nsys-rep|qdrep)$/i.test(input)) return 'nsys export --type sqlite converts it into a file that can be read'
  const magic = String.fromCharCode(...head.subarray(0, 4))
  if (magic === 'GGUF') return `is a model: ggml2perfetto stats ${input} describes it`
  const packer = packerOf(head)
  if (packer !== undefined) return `it is packed by ${packer}: unpack it first`
  if (magic === '\x7fELF') return `is a program: ggml2perfetto record -- ${input} records it`
  return undefined
}

/** Begins of what other programs pack. */
const PACKERS: readonly (readonly [string, at: number, bytes: string])[] = [
  ['tar', 257, 'ustar'],
  ['zstd', 0, '\x28\xb5\x2f\xfd'],
  ['xz', 0, '\xfd7zXZ\0'],
  ['bzip2', 0, 'BZh'],
  ['lz4', 0, '\x04\x22\x4d\x18'],
  ['7-Zip', 0, '7z\xbc\xaf\x27\x1c'],
  ['RAR', 0, 'Rar!\x1a\x07'],
  ['zip, in several parts', 0, 'PK\x07\x08'],
]

/** The program that packed an input with these first bytes, where it is none of those that are unpacked here. */
function packerOf(head: Uint8Array): string | undefined {
  const text = String.fromCharCode(...head.subarray(0, 512))
  return PACKERS.find(([, at, bytes]) => text.startsWith(bytes, at))?.[0]
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
