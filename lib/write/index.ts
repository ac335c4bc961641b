import type { Names } from '../model/names.ts'
import type { Writer } from '../sink/writer.ts'
import { ChromeJsonWriter } from './chrome-json/chrome-json.ts'
import { PerfettoWriter } from './perfetto/perfetto.ts'

/** Formats of traces: Perfetto's protobuf, or Chrome's JSON. */
export type TraceKind = (typeof TRACE_KINDS)[number]

/** All formats, the default first. */
export const TRACE_KINDS = ['perfetto', 'json'] as const

const WRITERS: Readonly<Record<TraceKind, new (names: Names) => Writer>> = {
  perfetto: PerfettoWriter,
  json: ChromeJsonWriter,
}

/** Creates a writer; `names` contains the texts that labels refer to by number. */
export function createWriter(kind: TraceKind, names: Names): Writer {
  return new WRITERS[kind](names)
}

/** The format by a file's name: JSON for `.json` and `.json.gz`, otherwise Perfetto's. */
export function traceKindOf(path: string): TraceKind {
  return /\.json(\.gz)?$/i.test(path) ? 'json' : 'perfetto'
}
