/**
 * How fast a long `.ggtrace` becomes a trace, its memory, and how long trace_processor takes to load the result: each in a
 * process of its own, which does nothing else.
 *   node scripts/bench/executions.mjs [executions, default 1000000] [detail, default shapes] [more options as JSON]
 */
import { spawnSync } from 'node:child_process'
import { createWriteStream, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import { convert, openTrace, readFileChunks } from 'ggml2perfetto'
import { longLog, perRound } from './long-log.mjs'

const [what, ...args] = process.argv.slice(2)
const mib = (bytes) => `${(bytes / 2 ** 20).toFixed(0)} MiB`

/** Converts, and drops what comes out. Figures as JSON. */
async function converting(log, options) {
  const start = performance.now()
  let bytes = 0
  for await (const piece of convert({ name: log, source: readFileChunks(log) }, JSON.parse(options)))
    bytes += piece.length
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

async function main(executions, detail, more) {
  const folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-bench-'))
  try {
    const rounds = Math.ceil(executions / perRound)
    const log = join(folder, 'log')
    await pipeline(longLog(rounds), createWriteStream(log))
    const options = JSON.stringify({ detail, ...more })
    const runs = [0, 1, 2].map(() => inProcess('convert', log, options))
    const best = runs.reduce((a, b) => (a.cpu < b.cpu ? a : b))
    const count = rounds * perRound
    console.log(`log        ${mib(statSync(log).size)}, ${count} executions, ${options}`)
    console.log(
      `convert    ${best.seconds.toFixed(2)} s (CPU ${best.cpu.toFixed(2)} s): ${(count / best.seconds / 1e6).toFixed(2)} M executions/s; ` +
        `peak RSS ${mib(best.rss)}`,
    )
    const trace = join(folder, 'trace')
    writeFileSync(trace, '')
    await pipeline(convert({ name: log, source: readFileChunks(log) }, JSON.parse(options)), createWriteStream(trace))
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
