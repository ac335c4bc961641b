/**
 * Measures `analyze` against `convert` on a long `.ggtrace`, in turn, each in a separate process: the ratio of their CPU times, and
 * the memory of `analyze`.
 *   node scripts/bench/stats.mjs [executions, default 2000000] [pairs, default 3]
 */
import { spawnSync } from 'node:child_process'
import { createWriteStream, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import { analyze, convert, readFileChunks } from 'ggml2perfetto'
import { longLog, perRound } from './long-log.mjs'

const [what, ...args] = process.argv.slice(2)

async function run(what, log) {
  const input = { name: log, source: readFileChunks(log) }
  let executions
  if (what === 'analyze') executions = (await analyze(input)).operators.executions
  else for await (const _ of convert(input, { all: true }));
  const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage()
  console.log(JSON.stringify({ cpu: (userCPUTime + systemCPUTime) / 1e6, rss: maxRSS / 1024, executions }))
}

function inProcess(...args) {
  const { stdout, stderr } = spawnSync(process.execPath, [fileURLToPath(import.meta.url), ...args], {
    encoding: 'utf8',
  })
  if (!stdout) throw new Error(stderr)
  return JSON.parse(stdout)
}

async function main(executions, pairs) {
  const folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-bench-'))
  try {
    const log = join(folder, 'long.ggtrace')
    await pipeline(longLog(Math.ceil(executions / perRound)), createWriteStream(log))
    for (let pair = 0; pair < pairs; pair++) {
      const [converted, analysed] = [inProcess('convert', log), inProcess('analyze', log)]
      const ratio = analysed.cpu / converted.cpu
      console.log(
        `convert ${converted.cpu.toFixed(2)} s CPU · analyze ${analysed.cpu.toFixed(2)} s, ${analysed.rss.toFixed(0)} MiB, ` +
          `${analysed.executions} executions: ${ratio.toFixed(2)} × the conversion`,
      )
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

if (what === 'convert' || what === 'analyze') await run(what, args[0])
else await main(Number(what ?? 2e6), Number(args[0] ?? 3))
