/**
 * Measures the export of a long run: operators a second, bytes of an operator, memory. The log is examples/moe.ggtrace.gz repeated, whose
 * durations would repeat exactly: each is changed by up to 10 % at random, so that files are not smaller than those of a real run.
 *   node scripts/bench/export.mjs [operators, default 1000000]
 */
import { readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { eventsOf } from 'ggml2perfetto'
import { tablesOf } from 'ggml2perfetto/tables'

const wanted = Number(process.argv[2] ?? 1_000_000)
const log = { name: 'moe', source: readFileSync(new URL('../../examples/moe.ggtrace.gz', import.meta.url)) }

/** The same numbers in each run. */
let seed = 1
const random = () => {
  seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0
  return seed / 2 ** 32
}
const about = (ns) => Math.round(ns * (0.9 + 0.2 * random()))

async function* events(names) {
  const batches = []
  for await (const batch of eventsOf(log, names)) batches.push(batch)
  const operators = batches.flat().filter(({ kind }) => kind === 'operator')
  const period = Math.round(1.2 * Math.max(...operators.map(({ waitEndNs }) => waitEndNs)))
  const calls = Math.max(...operators.map(({ call }) => call)) + 1
  yield* batches
  for (let round = 1; round * operators.length < wanted; round++) {
    // By worker: the end of its operator before, as it was and as it is now. Operators of a worker stay in their order.
    const before = new Map()
    yield operators.map((event) => {
      const last = before.get(event.worker) ?? { was: 0, is: round * period }
      const startNs = last.is + about(event.startNs - last.was)
      const endNs = startNs + about(event.endNs - event.startNs)
      const waitEndNs = endNs + about(event.waitEndNs - event.endNs)
      before.set(event.worker, { was: event.waitEndNs, is: waitEndNs })
      return { ...event, startNs, endNs, waitEndNs, call: event.call + round * calls }
    })
  }
}

const compression = { codec: 'gzip', compress: (bytes) => gzipSync(bytes, { level: 4 }) }
const pieces = tablesOf(
  { name: 'bench', events },
  { traceId: '0'.repeat(32), compression },
  { name: 'bench', version: '1' },
)
const start = process.cpuUsage()
let bytes = 0
let most = 0
let next = await pieces.next()
for (; !next.done; next = await pieces.next()) {
  if (next.value.table === 'operator') bytes += next.value.bytes.length
  most = Math.max(most, process.memoryUsage().rss)
}
const { user, system } = process.cpuUsage(start)
const { operator } = next.value.rows
const seconds = (user + system) / 1e6
console.log(`${operator} operators: CPU ${seconds.toFixed(2)} s, ${Math.round(operator / seconds)} a second and core`)
console.log(`${(bytes / operator).toFixed(2)} bytes an operator; peak RSS ${Math.round(most / 2 ** 20)} MiB`)
