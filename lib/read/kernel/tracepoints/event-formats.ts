import type { FieldReader } from '../../../input/field-reader.ts'

/** A field of a kernel's trace event. */
export interface Field {
  /** In bytes, from the start of the record. */
  readonly offset: number
  readonly size: number
  readonly isSigned: boolean
  /** `__data_loc`: the field is the offset of a text in the record (low 16 bits), and its size (high 16 bits). */
  readonly isText: boolean
}

/** The layout of a trace event in the recording kernel: ids, offsets and sizes differ from kernel to kernel. */
export interface EventFormat {
  readonly name: string
  /** `common_type` of its records. */
  readonly id: number
  readonly fields: ReadonlyMap<string, Field>
  /** How the kernel prints it: `"…", REC->…`. */
  readonly print: string
}

/**
 * Reads the text of an event's `format` file (tracefs `events/<system>/<event>/format`), which trace.dat and perf.data
 * contain. Returns undefined for a text that names no event.
 */
export function parseEventFormat(text: string): EventFormat | undefined {
  const name = /^name: *(\S+)/m.exec(text)?.[1]
  const id = /^ID: *(\d{1,9})/m.exec(text)?.[1]
  const print = /^print fmt: *(.*)/ms.exec(text)?.[1] ?? ''
  return name === undefined || id === undefined ? undefined : { name, id: Number(id), fields: parseFields(text), print }
}

/** The fields that a `format` or `header_page` text lists. */
export function parseFields(text: string): ReadonlyMap<string, Field> {
  const fields = new Map<string, Field>()
  for (const line of text.split('\n')) {
    const parts = line.trim().split(';')
    const declared = parts[0]!
    if (!declared.startsWith('field:')) continue
    const name = /(?<!\w)(\w+)(?:\[[^[\]]*\])?$/.exec(declared)?.[1]
    const offset = numberIn(parts, 'offset:')
    const size = numberIn(parts, 'size:')
    if (name === undefined || offset === undefined || size === undefined) continue
    const isText = declared.includes('__data_loc ')
    fields.set(name, { offset, size, isSigned: numberIn(parts, 'signed:') === 1, isText })
  }
  return fields
}

function numberIn(parts: readonly string[], key: string): number | undefined {
  const part = parts.find((text) => text.trimStart().startsWith(key))
  const value = Number(part?.trimStart().slice(key.length))
  return Number.isInteger(value) && value >= 0 && value < 1 << 16 ? value : undefined
}

/** More systems, or events in one system, are damage. */
const EVENTS_MAX = 1 << 16

/** Descriptions of records in a recording. */
export interface FormatTables {
  /** Format texts of all events, ftrace's own first. */
  readonly formats: string[]
  /** The text of tracefs' `events/header_page`. */
  headerPage: string | undefined
}

/** Reads all tables in the order in which perf.data and trace.dat 6 have them. */
export async function readTables(from: FieldReader, tables: FormatTables): Promise<void> {
  await readHeaderTexts(from, tables)
  await readFtraceFormats(from, tables)
  await readSystemFormats(from, tables)
}

/** Reads `header_page` and `header_event` of trace.dat and perf.data: a name, a u64 size, the text. */
export async function readHeaderTexts(from: FieldReader, tables: FormatTables): Promise<void> {
  for (const name of ['header_page', 'header_event']) {
    const found = await from.textZ(name, 64)
    if (found !== name) from.fail(`"${name}"`, `"${found}"`)
    const text = await from.text(await from.u64(`the size of ${name}`), name)
    if (name === 'header_page') tables.headerPage = text
  }
}

/** Reads formats of ftrace's own events: a u32 count, then a u64 size and the text of each. */
export async function readFtraceFormats(from: FieldReader, tables: FormatTables): Promise<void> {
  await readTexts(from, await from.u32('the number of ftrace formats'), tables)
}

/** Reads formats by system: a u32 count, then each system's name and its formats as above. */
export async function readSystemFormats(from: FieldReader, tables: FormatTables): Promise<void> {
  const systems = await from.u32('the number of event systems')
  if (systems > EVENTS_MAX) from.fail(`at most ${EVENTS_MAX} event systems`, `${systems}`)
  for (let i = 0; i < systems; i++) {
    await from.textZ('the name of an event system')
    await readTexts(from, await from.u32('the number of event formats'), tables)
  }
}

async function readTexts(from: FieldReader, count: number, { formats }: FormatTables): Promise<void> {
  if (count > EVENTS_MAX) from.fail(`at most ${EVENTS_MAX} event formats`, `${count}`)
  for (let i = 0; i < count; i++) {
    formats.push(await from.text(await from.u64('the size of an event format'), 'an event format'))
  }
}
