/**
 * Measures how fast logs become traces, Perfetto's and Chrome JSON, and how fast trace_processor loads the result, in one process.
 *   node scripts/bench/convert.mjs [operators, default 500000] [detail, default shapes]
 * The log is examples/moe.csv repeated, each round 40 ms later.
 */
import { readFileSync } from 'node:fs'
import { convert } from 'ggml2perfetto'
import { openTrace } from 'ggml2perfetto/node'

const operators = Number(process.argv[2] ?? 500_000)
const detail = process.argv[3] ?? 'shapes'
const [header, ...rows] = readFileSync(new URL('../../examples/moe.csv', import.meta.url), 'utf8')
  .trimEnd()
  .split('\n')
const parts = rows.map((row) => /^(\d+,)(\d+)(.*)$/.exec(row).slice(1))
const PERIOD_NS = 40_000_000
const operatorsPerRound = parts.filter(([, , rest]) => rest.startsWith(',20,')).length
const rounds = Math.ceil(operators / operatorsPerRound)

async function* log() {
  yield Buffer.from(`${header}\n`)
  for (let i = 0; i < rounds; i++) {
    yield Buffer.from(parts.map(([index, ts, rest]) => `${index}${Number(ts) + i * PERIOD_NS}${rest}\n`).join(''))
  }
}

const seconds = async (work) => {
  const start = performance.now()
  await work()
  return (performance.now() - start) / 1e3
}

let logBytes = 0
const making = await seconds(async () => {
  for await (const chunk of log()) logBytes += chunk.length
})

/** Best of a few rounds, in turn, so that other load on the machine affects both kinds. */
const ROUNDS = 3
const pieces = []
let peakRss = 0
let jsonBytes = 0
const times = { perfetto: [], json: [] }
for (let round = 0; round < ROUNDS; round++) {
  pieces.length = 0
  times.perfetto.push(
    await seconds(async () => {
      for await (const piece of convert({ name: 'bench', source: log() }, { detail })) {
        pieces.push(piece)
        peakRss = Math.max(peakRss, process.memoryUsage().rss)
      }
    }),
  )
  jsonBytes = 0
  times.json.push(
    await seconds(async () => {
      for await (const { length } of convert({ name: 'bench', source: log() }, { detail, to: 'json' }))
        jsonBytes += length
    }),
  )
}
const traceBytes = pieces.reduce((sum, piece) => sum + piece.length, 0)

let trace
const loading = await seconds(async () => {
  trace = await openTrace(Buffer.concat(pieces))
})
const [[slices, samples]] = trace.query('select (select count(*) from slice), (select count(*) from counter)').rows
trace.close()

const net = Math.min(...times.perfetto) - making
const netJson = Math.min(...times.json) - making
const mib = (bytes) => `${(bytes / 2 ** 20).toFixed(1)} MiB`
console.log(`log        ${mib(logBytes)}, ${rounds * operatorsPerRound} operators`)
console.log(
  `trace      ${mib(traceBytes)}, ${slices} slices, ${samples} samples: ${(traceBytes / (slices + samples)).toFixed(1)} bytes each`,
)
console.log(
  `convert    ${net.toFixed(2)} s: ${mib(logBytes / net)}/s, ${Math.round((rounds * operatorsPerRound) / net / 1e3)} k operators/s`,
)
console.log(
  `json       ${netJson.toFixed(2)} s: ${Math.round(slices / netJson / 1e3)} k slices/s (and the samples), ${mib(jsonBytes)}: ` +
    `${(netJson / net).toFixed(2)} × the time, ${(jsonBytes / traceBytes).toFixed(1)} × the bytes`,
)
console.log(`load       ${loading.toFixed(2)} s in trace_processor: ${(loading / net).toFixed(1)} × the conversion`)
console.log(`peak RSS   ${mib(peakRss)} while converting, the trace held in memory included`)
