import type { FieldReader } from '../../../input/field-reader.ts'

/** More events than this in one system is damage. */
const EVENTS_MAX = 1 << 16

/** What a recording carries to read its records by. */
export interface FormatTables {
  /** Format texts of all events, ftrace's own first. */
  readonly formats: string[]
  /** What tracefs has in `events/header_page`. */
  headerPage: string | undefined
}

/** `header_page` and `header_event`, as trace.dat and perf.data have them: a name, a u64 size, the text. */
export async function readHeaderTexts(from: FieldReader, tables: FormatTables): Promise<void> {
  for (const name of ['header_page', 'header_event']) {
    const found = await from.textZ(name, 64)
    if (found !== name) from.fail(`"${name}"`, `"${found}"`)
    const text = await from.text(await from.u64(`the size of ${name}`), name)
    if (name === 'header_page') tables.headerPage = text
  }
}

/** Formats of ftrace's own events: a u32 count, then a u64 size and the text of each. */
export async function readFtraceFormats(from: FieldReader, tables: FormatTables): Promise<void> {
  await readTexts(from, await from.u32('the number of ftrace formats'), tables)
}

/** Formats by system: a u32 count, then each system's name and its formats as above. */
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
