import { type ConvertOptions, convert } from '../../lib/index.ts'
import { openTrace } from '../../lib/node.ts'
import { findView, type OpenTrace, type View } from '../../lib/sql.ts'

/** Traces as the command open shows them. */

/** What is made once of a log with the same options. */
function once<T>(make: (log: Uint8Array, options?: ConvertOptions) => Promise<T>): typeof make {
  const made = new Map<Uint8Array, Map<string, Promise<T>>>()
  return (log, options = {}) => {
    const ofLog = made.get(log) ?? new Map<string, Promise<T>>()
    const key = JSON.stringify(options)
    made.set(log, ofLog.set(key, ofLog.get(key) ?? make(log, options)))
    return ofLog.get(key)!
  }
}

/** A converted log; made once. */
export const traceOf = once(async (log, options) => {
  const pieces: Uint8Array[] = []
  for await (const piece of convert({ name: 'log', source: log }, options)) pieces.push(piece)
  return Buffer.concat(pieces)
})

/** A trace in pieces. */
export async function* inPieces(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += 100_000) yield bytes.subarray(at, at + 100_000)
}

/** What is shown first of a log. */
export const view = once(async (log, options) => findView(inPieces(await traceOf(log, options))))

/** Uses a trace in trace_processor. */
export async function withTrace<T>(bytes: Uint8Array, use: (trace: OpenTrace) => T): Promise<T> {
  const trace = await openTrace(bytes)
  try {
    return use(trace)
  } finally {
    trace.close()
  }
}

/** The arguments of a command of the UI. */
export const argsOf = ({ commands }: View, id: string): readonly string[] =>
  commands.find((command) => command.id === `dev.perfetto.${id}`)!.args

/** The rows and groups as the UI calls them. */
export const pathsIn = (trace: OpenTrace): string[] =>
  trace
    .query(`with recursive rows as (
      select id, name, iif(type glob 'gpu*', 'GPU > Hardware Queues > ', '') || name as path from track where parent_id is null
      union all select track.id, track.name, path || ' > ' || track.name from track join rows on rows.id = parent_id)
      select path from rows where path is not null and name != 'at the top'`)
    .rows.map(([path]) => `${path}`)
