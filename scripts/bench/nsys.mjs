/**
 * Measures how fast, and in how much memory, a large report of Nsight Systems becomes a trace.
 *   node scripts/bench/nsys.mjs [megabytes, default 500] [unordered]
 * The report is synthetic. With `unordered`, the rows are not in order.
 */
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { convert } from 'ggml2perfetto'
import { inputOf } from 'ggml2perfetto/node'
import { makeReport } from './long-nsys.mjs'

const megabytes = Number(process.argv[2] ?? 500)
const isUnordered = process.argv[3] === 'unordered'

const folder = mkdtempSync(join(tmpdir(), 'nvtx-bench-'))
const path = join(folder, 'report.sqlite')
try {
  await measure(makeReport(path, megabytes, isUnordered))
} finally {
  rmSync(folder, { recursive: true })
}

async function measure(rows) {
  const { size } = statSync(path)
  const started = performance.now()
  let written = 0
  let peakRss = 0
  const timer = setInterval(() => (peakRss = Math.max(peakRss, process.memoryUsage().rss)), 100)
  for await (const piece of convert(inputOf(path))) {
    written += piece.length
    peakRss = Math.max(peakRss, process.memoryUsage().rss)
  }
  clearInterval(timer)
  const seconds = (performance.now() - started) / 1e3
  const allowed = 400e6 + 24 * rows
  const megabytesOf = (bytes) => `${Math.round(bytes / 1e6)} MB`
  process.stdout.write(
    `${megabytesOf(size)} of ${(rows / 1e6).toFixed(1)} M rows become ${megabytesOf(written)} in ${seconds.toFixed(1)} s: ` +
      `${(rows / seconds / 1e6).toFixed(2)} M rows a second; ${megabytesOf(peakRss)} at most, of ${megabytesOf(allowed)} allowed ` +
      '(400 MB and 24 bytes a row)\n',
  )
}
