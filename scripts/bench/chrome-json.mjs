/**
 * Measures how fast, and in how much memory, a file of PyTorch's profiler becomes a trace, and how fast trace_processor imports
 * the file itself, in one process.
 *   node scripts/bench/chrome-json.mjs [MiB, default 200] [--no-import] [--gzip]
 * The file is synthetic, in the temporary folder.
 */
import { mkdtempSync, openSync, readFileSync, rmSync, statSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { convert } from 'ggml2perfetto'
import { inputOf, openTrace } from 'ggml2perfetto/node'
import { makeKineto } from './long-kineto.mjs'

const mebibytes = Number(process.argv.slice(2).find((arg) => /^\d+$/.test(arg)) ?? 200)
const isImported = !process.argv.includes('--no-import')
const isZipped = process.argv.includes('--gzip')

const seconds = async (work) => {
  const start = performance.now()
  await work()
  return (performance.now() - start) / 1e3
}
const mib = (bytes) => `${(bytes / 2 ** 20).toFixed(1)} MiB`

const folder = mkdtempSync(join(tmpdir(), 'chrome-json-'))
try {
  let path = join(folder, 'synthetic.json')
  const events = makeKineto(path, mebibytes * 2 ** 20)
  const { size } = statSync(path)
  console.log(`file       ${mib(size)}, ${events} events`)
  if (isZipped) {
    const zipped = gzipSync(readFileSync(path), { level: 1 })
    path += '.gz'
    writeSync(openSync(path, 'w'), zipped)
  }
  const before = process.resourceUsage().maxRSS
  let written = 0
  const converting = await seconds(async () => {
    for await (const piece of convert(inputOf(path))) written += piece.length
  })
  const rss = process.resourceUsage().maxRSS * 1024
  console.log(
    `convert    ${converting.toFixed(2)} s: ${mib(size / converting)}/s, ${Math.round(events / converting / 1e3)} k events/s; trace of ${mib(written)}`,
  )
  console.log(`peak RSS   ${mib(rss)} (${mib(before * 1024)} after making the file)`)
  if (isImported) {
    let trace
    const bytes = readFileSync(path)
    const importing = await seconds(async () => {
      trace = await openTrace(bytes)
    })
    const [[slices]] = trace.query('select count(*) from slice').rows
    trace.close()
    console.log(
      `import     ${importing.toFixed(2)} s in trace_processor: ${mib(size / importing)}/s, ${slices} slices: ${(importing / converting).toFixed(1)} × the conversion`,
    )
  }
} finally {
  rmSync(folder, { recursive: true })
}
