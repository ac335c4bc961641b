// Converts a log and queries the trace in SQL.
//   node examples/convert.mjs [log]
import { convertFile, openTrace } from 'ggml2perfetto/node'

const log = process.argv[2] ?? 'examples/moe.csv'
const { summaries } = await convertFile(log, 'run.pftrace')
console.log(`${summaries[0].operators} operators, TTFT ${summaries[0].calls.ttft_ns / 1e6} ms`)

const trace = await openTrace('run.pftrace')
const { rows } = trace.query(`select name, count(*), sum(dur) from slice
  where category = 'operator' group by name order by sum(dur) desc limit 5`)
for (const [name, count, ns] of rows) console.log(`${(ns / 1e6).toFixed(2).padStart(8)} ms  ${count} × ${name}`)
trace.close()
