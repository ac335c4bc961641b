import { expect, test } from '@jest/globals'
import { convert } from '../../lib/index.ts'
import { openTrace } from '../../lib/node.ts'

/** Slices that overlap more others than a track has rows for: as many as there are rows are drawn, the others counted. */

const [COUNT, ROWS] = [3000, 2048]

const spans = Array.from({ length: COUNT }, (_, i) => ({
  ...{ traceId: `${i}`, spanId: `${i}`, name: 'llm_request', kind: 2 },
  startTimeUnixNano: `${1_780_000_000_000_000_000n + BigInt(i) * 1000n}`,
  endTimeUnixNano: `${1_780_001_000_000_000_000n + BigInt(i) * 1000n}`,
}))
const crossing = Array.from({ length: COUNT }, (_, i) => ({ ph: 'X', name: 'work', pid: 1, tid: 2, ts: i, dur: COUNT }))

test.each([
  ['requests of clients', { resourceSpans: [{ scopeSpans: [{ spans }] }] }, "slice.name glob 'request *'"],
  ['slices of a thread that cross', { traceEvents: crossing }, "slice.name = 'work'"],
])('%s', async (_, document, which) => {
  const pieces = convert({ name: 'log', source: Buffer.from(JSON.stringify(document)) })
  const chunks: Uint8Array[] = []
  let next = await pieces.next()
  for (; !next.done; next = await pieces.next()) chunks.push(next.value)
  const what = `slices that overlap ${ROWS} others of their track`
  expect(next.value[0]!.left_out).toMatchObject([{ what, count: COUNT - ROWS }])
  const trace = await openTrace(Buffer.concat(chunks))
  const drawn = `select count(*) from slice join track on track.id = track_id where ${which} and dur > 0`
  expect(trace.query(drawn).rows).toEqual([[ROWS]])
  const stated = "select str_value from metadata where name glob '*not_drawn'"
  expect(trace.query(stated).rows).toEqual([[`${COUNT - ROWS} ${what}`]])
  trace.close()
})
