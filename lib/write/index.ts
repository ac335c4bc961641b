import type { Names } from '../model/names.ts'
import type { Writer } from '../sink/writer.ts'
import { PerfettoWriter } from './perfetto/perfetto.ts'

/** Formats of traces: Perfetto's protobuf, or Chrome's JSON. */
export type TraceKind = (typeof TRACE_KINDS)[number]

/** All formats, the default first. */
export const TRACE_KINDS = ['perfetto', 'json'] as const

/** A class of writers; `names` contains the texts that labels refer to by number. */
export type WriterClass = new (names: Names) => Writer

/** What writes a format. That of JSON is loaded for those that ask for it. */
export async function writerOf(kind: TraceKind = 'perfetto'): Promise<WriterClass> {
  return kind === 'perfetto' ? PerfettoWriter : (await import('./chrome-json/chrome-json.ts')).ChromeJsonWriter
}

/** The format by a file's name: JSON for `.json` and `.json.gz`, otherwise Perfetto's. */
export function traceKindOf(path: string): TraceKind {
  return /\.json(\.gz)?$/i.test(path) ? 'json' : 'perfetto'
}
