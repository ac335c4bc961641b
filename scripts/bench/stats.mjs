/**
 * Measures `analyze`, and a report with all its series, against `convert` on a long `.ggtrace`, in turn, each in a separate process: the
 * ratio of their CPU times, and their memory.
 *   node scripts/bench/stats.mjs [executions, default 2000000] [pairs, default 3]
 */
import { spawnSync } from 'node:child_process'
import { createWriteStream, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import { analyze, convert } from 'ggml2perfetto'
import { inputOf } from 'ggml2perfetto/node'
import { reportHtml } from 'ggml2perfetto/report'
import { longLog, perRound } from './long-log.mjs'

const [what, ...args] = process.argv.slice(2)

async function run(what, log) {
  const input = inputOf(log)
  let executions
  let page
  if (what === 'convert') for await (const _ of convert(input, { all: true }));
  else {
    const analysis = await analyze(input, { series: what === 'report' ? ['calls', 'memory', 'offsets', 'graph'] : [] })
    executions = analysis.operators.executions
    if (what === 'report') page = reportHtml(analysis).length
  }
  const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage()
  console.log(JSON.stringify({ cpu: (userCPUTime + systemCPUTime) / 1e6, rss: maxRSS / 1024, executions, page }))
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
      const [converted, analysed, reported] = ['convert', 'analyze', 'report'].map((what) => inProcess(what, log))
      const text = ({ cpu, rss }) =>
        `${cpu.toFixed(2)} s, ${rss.toFixed(0)} MiB, ${(cpu / converted.cpu).toFixed(2)} × the conversion`
      console.log(
        `${analysed.executions} executions: convert ${converted.cpu.toFixed(2)} s CPU · analyze ${text(analysed)} · ` +
          `report ${text(reported)}, a page of ${(reported.page / 1e6).toFixed(1)} MB`,
      )
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

if (['convert', 'analyze', 'report'].includes(what)) await run(what, args[0])
else await main(Number(what ?? 2e6), Number(args[0] ?? 3))
