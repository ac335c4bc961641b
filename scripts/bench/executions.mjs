/**
 * Measures how fast a long `.ggtrace` becomes a trace, its memory, and how long trace_processor takes to load the result. Each
 * runs in a separate process, which does nothing else.
 *   node scripts/bench/executions.mjs [executions, default 1000000] [detail, default shapes] [more options as JSON]
 */
import { spawnSync } from 'node:child_process'
import { createWriteStream, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import { convert } from 'ggml2perfetto'
import { inputOf, openTrace } from 'ggml2perfetto/node'
import { longLog, perRound } from './long-log.mjs'

const [what, ...args] = process.argv.slice(2)
/** The most executions whose trace trace_processor can load: it has 4 GiB of memory. */
const LOADABLE = 2_000_000
const mib = (bytes) => `${(bytes / 2 ** 20).toFixed(0)} MiB`

/** Converts and discards the result. Figures as JSON. */
async function converting(log, options) {
  const start = performance.now()
  let bytes = 0
  for await (const piece of convert(inputOf(log), JSON.parse(options))) bytes += piece.length
  const seconds = (performance.now() - start) / 1e3
  const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage()
  console.log(JSON.stringify({ seconds, cpu: (userCPUTime + systemCPUTime) / 1e6, rss: maxRSS * 1024, bytes }))
}

async function loading(path) {
  const start = performance.now()
  const trace = await openTrace(path)
  const seconds = (performance.now() - start) / 1e3
  const cpu = process.cpuUsage()
  const [[slices, samples]] = trace.query('select (select count(*) from slice), (select count(*) from counter)').rows
  console.log(JSON.stringify({ seconds, cpu: (cpu.user + cpu.system) / 1e6, slices, samples }))
}

const inProcess = (...args) => {
  const { stdout, stderr } = spawnSync(process.execPath, [fileURLToPath(import.meta.url), ...args], {
    encoding: 'utf8',
  })
  if (!stdout) throw new Error(stderr)
  return JSON.parse(stdout)
}

/** A log of that many rounds; the best of three conversions of it. */
async function converted(folder, rounds, options) {
  const log = join(folder, `${rounds}.ggtrace`)
  await pipeline(longLog(rounds), createWriteStream(log))
  const runs = [0, 1, 2].map(() => inProcess('convert', log, options))
  const best = runs.reduce((a, b) => (a.cpu < b.cpu ? a : b))
  const count = rounds * perRound
  console.log(`log        ${mib(statSync(log).size)}, ${count} executions, ${options}`)
  console.log(
    `convert    ${best.seconds.toFixed(2)} s (CPU ${best.cpu.toFixed(2)} s): ${(count / best.seconds / 1e6).toFixed(2)} M executions/s; ` +
      `peak RSS ${mib(best.rss)}`,
  )
  return { log, best }
}

async function main(executions, detail, more) {
  const folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-bench-'))
  const options = JSON.stringify({ detail, all: true, ...more })
  try {
    let { log, best } = await converted(folder, Math.ceil(executions / perRound), options)
    if (executions > LOADABLE) {
      console.log(`more than ${LOADABLE} executions do not fit into the memory of trace_processor.wasm`)
      const smaller = await converted(folder, Math.ceil(LOADABLE / perRound), options)
      log = smaller.log
      best = smaller.best
    }
    const trace = join(folder, 'trace')
    await pipeline(convert(inputOf(log), JSON.parse(options)), createWriteStream(trace))
    const { seconds, cpu, slices, samples } = inProcess('load', trace)
    console.log(
      `trace      ${mib(best.bytes)}, ${slices} slices, ${samples} samples: ${(best.bytes / (slices + samples)).toFixed(1)} bytes each`,
    )
    console.log(
      `load       ${seconds.toFixed(2)} s (CPU ${cpu.toFixed(2)} s) in trace_processor: ${(cpu / best.cpu).toFixed(1)} × the conversion`,
    )
  } finally {
    rmSync(folder, { recursive: true })
  }
}

if (what === 'convert') await converting(...args)
else if (what === 'load') await loading(...args)
else await main(Number(what ?? 1_000_000), args[0] ?? 'shapes', args[1] && JSON.parse(args[1]))
