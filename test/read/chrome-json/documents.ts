import { summarize } from '../../../lib/index.ts'
import { openTrace } from '../../../lib/node.ts'
import { converted } from '../../line/support.ts'
import { drawn } from '../../printing-sink.ts'

/** Made documents in Chrome's Trace Event Format, and what becomes of them. */

export type JsonEvent = Readonly<Record<string, unknown>>

/** An object with a list of events. */
export const documentOf = (events: readonly JsonEvent[]): Uint8Array =>
  new TextEncoder().encode(JSON.stringify({ traceEvents: events }))

/** What is drawn of a document, but for issues. */
export async function linesOf(events: readonly JsonEvent[]): Promise<string[]> {
  const lines = await drawn({ name: 'trace', source: documentOf(events) }, {}, { isAbsolute: true })
  return lines.filter((line) => !/^Issues/.test(line))
}

/** Rows of queries over the trace of a document. */
export async function rowsOf(
  events: readonly JsonEvent[],
  ...queries: string[]
): Promise<(readonly (readonly unknown[])[])[]> {
  const trace = await openTrace(await converted(documentOf(events)))
  try {
    const problems = trace.problems()
    if (problems.length > 0) throw new Error(JSON.stringify(problems))
    return queries.map((sql) => [...trace.query(sql).rows])
  } finally {
    trace.close()
  }
}

/** Issues with their counts, and facts on the whole. */
export async function toldOf(
  events: readonly JsonEvent[],
): Promise<{ issues: string[]; attributes: Readonly<Record<string, unknown>>; leftOut: string[] }> {
  const { issues, attributes, left_out } = await summarize({ name: 'trace', source: documentOf(events) })
  return {
    issues: issues.map(({ title, count }) => `${count} × ${title}`),
    attributes,
    leftOut: left_out.map(({ what, count }) => `${count} ${what}`),
  }
}

/** Every slice but those of issues: name, start, duration in nanoseconds, depth, row. */
export const SLICES = `SELECT s.name, s.ts, s.dur, s.depth, t.name FROM slice s JOIN track t ON t.id = s.track_id
  WHERE s.category IS NOT 'issue' ORDER BY s.ts, s.depth, s.name`

/** Every arrow: names of the slices that it joins. */
export const ARROWS = `SELECT a.name, b.name FROM flow JOIN slice a ON a.id = slice_out JOIN slice b ON b.id = slice_in
  ORDER BY a.ts, b.ts, b.name`
