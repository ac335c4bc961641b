// Adds custom tracks to those of a log, on the same clock: the requests of a server, and how many of them wait for an answer.
//   node examples/own-tracks.mjs [log]
import { convert } from 'ggml2perfetto'
import { inputOf, openTrace, summarizeFile } from 'ggml2perfetto/node'

const log = process.argv[2] ?? 'examples/moe.csv'
const { clock, start_ns } = await summarizeFile(log)
const originNs = BigInt(start_ns)

// Recorded by the server: process.hrtime.bigint() is Linux's CLOCK_MONOTONIC, which logs use too.
const requests = [
  { id: 'a', arrivedNs: originNs, doneNs: originNs + 30_000_000n },
  { id: 'b', arrivedNs: originNs + 10_000_000n, doneNs: originNs + 40_000_000n },
]

const server = {
  name: 'server',
  *events(names) {
    yield [
      { kind: 'input', format: 'server', title: 'My server', clock, originNs, attributes: {} },
      { kind: 'own-track', id: 0, name: 'requests', description: 'From arrival to the last token sent.' },
      { kind: 'own-track', id: 1, name: 'waiting', description: 'Requests without an answer.', holds: 'counter' },
    ]
    for (const { id, arrivedNs, doneNs } of requests) {
      const [startNs, endNs] = [Number(arrivedNs - originNs), Number(doneNs - originNs)]
      yield [{ kind: 'own-slice', track: 0, name: names.id(`request ${id}`), startNs, endNs, args: { client: id } }]
    }
    for (const ns of requests.flatMap(({ arrivedNs, doneNs }) => [arrivedNs, doneNs])) {
      const value = requests.filter(({ arrivedNs, doneNs }) => arrivedNs <= ns && ns < doneNs).length
      yield [{ kind: 'own-sample', track: 1, atNs: Number(ns - originNs), value }]
    }
  },
}

const trace = await openTrace(convert([inputOf(log), server]))
const { rows } = trace.query(`select r.name, op.name, count(*), sum(op.dur) / 1e6
  from slice r join slice op on op.category = 'operator' and op.ts >= r.ts and op.ts < r.ts + r.dur
  where r.category = 'own' group by 1, 2 order by 1, 4 desc`)
for (const [request, op, count, ms] of rows)
  console.log(`${request}  ${ms.toFixed(2).padStart(8)} ms  ${count} × ${op}`)
