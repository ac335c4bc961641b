import { expect } from '@jest/globals'
import { TraceWriter } from '../../lib/perfetto.ts'
import { openTrace } from '../../lib/sql.ts'

/** Ends a trace, and asks trace_processor, which must have no complaint. Returns the rows of each query. */
export async function asked(trace: TraceWriter | Uint8Array, ...queries: string[]): Promise<unknown[][][]> {
  if (trace instanceof TraceWriter) trace.finish()
  const opened = await openTrace(trace instanceof TraceWriter ? trace.take() : trace)
  try {
    expect(opened.query("select name, value from stats where severity = 'error' and value > 0").rows).toEqual([])
    return queries.map((sql) => opened.query(sql).rows.map((row) => [...row]))
  } finally {
    opened.close()
  }
}
