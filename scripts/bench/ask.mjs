#!/usr/bin/env node
/**
 * Measures what `record` asks at its end about the refusals in a log: npm run bench:ask -- <log>... The libraries of the recorded program must
 * be where they were. Each log is copied and asked about ten times; printed are the number of answers, the shortest and the median wall
 * time, and the CPU time of reading and writing the log; the rest is that of the process which asks.
 */
import { copyFileSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { register } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

register('../typescript-hooks.mjs', import.meta.url)
const { askDevices } = await import('../../lib/node/record/ask.ts')

const TIMES = 10
const RECORDER = fileURLToPath(new URL('../../native/build/libggml2perfetto.so', import.meta.url))
const logs = process.argv.slice(2)
if (logs.length === 0) throw new Error('usage: npm run bench:ask -- <log>...')

const folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-ask-'))
try {
  for (const log of logs) {
    const copy = join(folder, 'run.ggtrace')
    const walls = []
    const before = process.resourceUsage()
    for (let i = 0; i < TIMES; i++) {
      copyFileSync(log, copy)
      const start = performance.now()
      await askDevices(copy, RECORDER, process.env)
      walls.push(performance.now() - start)
    }
    const { userCPUTime, systemCPUTime } = process.resourceUsage()
    const own = (userCPUTime + systemCPUTime - before.userCPUTime - before.systemCPUTime) / TIMES / 1e3
    walls.sort((a, b) => a - b)
    const answers = readFileSync(copy, 'latin1').split('asked.').length - 1
    const figures = [
      `${answers} answers`,
      `${walls[0].toFixed(0)} ms`,
      `median ${walls[TIMES / 2].toFixed(0)} ms`,
      `reading ${own.toFixed(0)} ms of CPU`,
    ]
    console.log(`${log} (${(statSync(log).size / 2 ** 20).toFixed(1)} MiB): ${figures.join(', ')}`)
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
