/**
 * Measures whether a conversion gives the event loop its turns, in Node and in a page of Chromium: the gaps between ticks of a timer of 5 ms
 * while a log of 20 MB is converted, three times, and how long 20 conversions take to stop after an abort.
 *   node scripts/bench/cooperative.mjs [--browser]
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { longLog, perRound } from './long-log.mjs'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const BYTES = 20e6

/** In Node and in a page: prints as it measures. */
async function measure(convert, bytes, print) {
  const log = { name: 'run.ggtrace', source: new Blob([bytes]) }
  for (let run = 1; run <= 3; run++) {
    const gaps = []
    let lastMs = performance.now()
    const timer = setInterval(() => {
      gaps.push(performance.now() - lastMs)
      lastMs = performance.now()
    }, 5)
    const startMs = performance.now()
    for await (const _ of convert(log));
    const tookMs = performance.now() - startMs
    clearInterval(timer)
    gaps.sort((a, b) => a - b)
    const at = (share) => gaps[Math.min(gaps.length - 1, Math.floor(share * gaps.length))].toFixed(1)
    print(
      `run ${run}: ${tookMs.toFixed(0)} ms, ${gaps.length} ticks, p50 ${at(0.5)} ms, p99.9 ${at(0.999)} ms, most ${at(1)} ms`,
    )
  }
  const stops = []
  for (let i = 0; i < 20; i++) {
    const abort = new AbortController()
    let atMs = 0
    setTimeout(
      () => {
        atMs = performance.now()
        abort.abort()
      },
      20 + 25 * i,
    )
    try {
      for await (const _ of convert(log, { signal: abort.signal }));
    } catch {}
    stops.push(performance.now() - atMs)
  }
  stops.sort((a, b) => a - b)
  print(`abort: median ${((stops[9] + stops[10]) / 2).toFixed(1)} ms, most ${stops[19].toFixed(1)} ms of 20`)
}

const PAGE = `<!doctype html><script type="module">
  import { convert } from '/dist/index.js'
  ${measure}
  const send = (text) => fetch('/print', { method: 'POST', body: text })
  const bytes = await (await fetch('/log')).arrayBuffer()
  await measure(convert, bytes, send).catch((error) => send(String(error)))
  await send('end')
</script>`

async function inPage(bytes) {
  const server = createServer(async (request, response) => {
    const { url } = request
    if (url === '/print') {
      let text = ''
      for await (const piece of request) text += piece
      response.end()
      if (text === 'end') server.emit('end')
      else console.log(`page  ${text}`)
    } else if (url === '/log') response.end(bytes)
    else if (url.startsWith('/dist/')) {
      response.setHeader('Content-Type', 'text/javascript').end(readFileSync(join(ROOT, url)))
    } else response.setHeader('Content-Type', 'text/html').end(PAGE)
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  const profile = mkdtempSync(join(tmpdir(), 'ggml2perfetto-page-'))
  const args = ['--headless', '--no-sandbox', '--disable-gpu', `--user-data-dir=${profile}`]
  const browser = spawn('chromium', [...args, `http://127.0.0.1:${server.address().port}/`], { stdio: 'ignore' })
  await new Promise((resolve) => server.once('end', resolve))
  browser.kill()
  await new Promise((resolve) => browser.once('exit', resolve))
  server.close()
  rmSync(profile, { recursive: true, force: true, maxRetries: 5 })
}

const pieces = []
let size = 0
for await (const piece of longLog(Math.ceil(1e7 / perRound))) {
  pieces.push(piece)
  size += piece.length
  if (size >= BYTES) break
}
const bytes = Buffer.concat(pieces).subarray(0, BYTES)
console.log(`log of ${(bytes.length / 1e6).toFixed(1)} MB`)
if (process.argv.includes('--browser')) await inPage(bytes)
else {
  const { convert } = await import('ggml2perfetto')
  await measure(convert, bytes, (text) => console.log(`Node  ${text}`))
}
