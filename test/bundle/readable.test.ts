import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { expect, test } from '@jest/globals'
import { openTrace } from '../../lib/node.ts'
import { perfettoReading } from '../../lib/pipeline/bundle/bundle.ts'
import { FORMATS } from '../../lib/read/index.ts'

const FIXTURES = fileURLToPath(new URL('../fixtures/', import.meta.url))

const files = ['ftrace', 'perf-data', 'perf-script', 'trace-dat', 'bpftrace'].flatMap((folder) =>
  readdirSync(FIXTURES + folder)
    .filter((name) =>
      folder.endsWith('-data') || folder.endsWith('-dat') ? /\.da.*\.gz$/.test(name) : /\.(txt|jsonl)$/.test(name),
    )
    .map((name) => `${folder}/${name}`),
)

/** How many events of the file itself trace_processor shows: its CPU slices and its samples. */
async function eventsIn(bytes: Uint8Array): Promise<number> {
  const trace = await openTrace(bytes).catch(() => undefined)
  const sql = 'select (select count(*) from sched) + (select count(*) from perf_sample)'
  if (!trace) return 0
  const [row] = trace.query(sql).rows
  trace.close()
  return Number(row![0])
}

test.each(files)('%s is taken if, and only if, trace_processor shows what is in it', async (path) => {
  const stored = readFileSync(FIXTURES + path)
  const bytes = path.endsWith('.gz') ? gunzipSync(stored) : stored
  const check = () => perfettoReading(path, bytes.subarray(0, 1 << 20), FORMATS)
  // Switches of perf itself are no samples: the file is read all the same, only not these.
  const isRead = (await eventsIn(bytes)) > 0 || /perf-data\/(own-)?switches/.test(path)
  if (isRead) expect(check).not.toThrow()
  else expect(check).toThrow(/cannot be bundled: .*\nhint: /s)
})

test.each([
  ['mono.data.gz', 60, /expected 104 bytes of a head, found the end of the file after 60\nhint: give the whole file/],
  ['mono.data.gz', 12, /`perf record -o -` writes\nhint: /],
])('%s cut to %i bytes is refused', (name, length, message) => {
  const bytes = gunzipSync(readFileSync(`${FIXTURES}perf-data/${name}`)).subarray(0, length)
  expect(() => perfettoReading(name, bytes, FORMATS)).toThrow(message)
})
