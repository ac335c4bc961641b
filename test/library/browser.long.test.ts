import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { gunzipSync, gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { parquetReadObjects } from 'hyparquet'
import { traceIdOf } from '../../lib/datasets.ts'
import { summarize } from '../../lib/index.ts'
import { removeProfile } from '../browser.ts'
import { converted } from '../line/support.ts'
import '../live.ts'

/** The browser's build in a real browser: what it makes of a log is compared, byte by byte, with what Node makes of it. */

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const read = (path: string) => readFileSync(join(ROOT, path))

const CHROMIUM = ['chromium', 'chromium-browser', 'google-chrome'].find((name) => {
  try {
    return execFileSync(name, ['--version'], { stdio: 'pipe' }).length > 0
  } catch {
    return false
  }
})

const TORN = gzipSync(read('examples/moe.csv')).subarray(0, 40_000)

const WORKER = `
import { convert, toWebStream } from '/ggml2perfetto/index.js'
onmessage = async ({ data }) => {
  postMessage(await new Response(toWebStream(convert({ name: data.name, source: data }))).blob())
}`

/** What pages can fetch. */
const FILES: Readonly<Record<string, { readonly type: string; readonly bytes: () => Uint8Array }>> = {
  '/vendor/trace_processor.wasm': { type: 'application/wasm', bytes: () => read('vendor/trace_processor.wasm') },
  '/worker.js': { type: 'text/javascript', bytes: () => Buffer.from(WORKER) },
  '/run.csv': { type: 'text/csv', bytes: () => read('examples/moe.csv') },
  '/run.ggtrace.gz': { type: 'application/octet-stream', bytes: () => read('examples/moe.ggtrace.gz') },
  '/run.bin.gz': { type: 'application/gzip', bytes: () => read('test/fixtures/tensor-trace/moe-2threads.bin.gz') },
  '/torn.csv.gz': { type: 'application/gzip', bytes: () => TORN },
}

/** A file of dist/, which pages have as /ggml2perfetto/. */
const moduleAt = (pathname: string) => {
  const [, path] = /^\/ggml2perfetto\/((?:chunks\/)?[\w-]+\.js)$/.exec(pathname) ?? []
  return path === undefined ? undefined : { type: 'text/javascript', bytes: () => read(`dist/${path}`) }
}

/** A page that runs a program and sends what it returns (bytes, a stream of them, or an error's text) back to us. */
const page = (program: string) => `<!doctype html><title>test</title><script type="module">
  const send = (path, body) => fetch(path, { method: 'POST', body })
  const run = async () => {
    const { convert, gzip, summarize, toWebStream } = await import('/ggml2perfetto/index.js')
    ${program}
  }
  run().then((body) => send('/result', body), (error) => send('/error', error.name + ': ' + error.message))
</script>`

let server: Server
const pages = new Map<string, { html: string; done(result: Promise<Uint8Array>): void }>()
let profile: string

beforeAll(async () => {
  profile = mkdtempSync(join(tmpdir(), 'ggml2perfetto-chromium-'))
  server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url!, 'http://localhost')
    const opened = pages.get(request.method === 'POST' ? new URL(request.headers.referer!).pathname : pathname)
    const file = FILES[pathname] ?? moduleAt(pathname)
    if (request.method === 'POST') opened?.done(resultOf(request, pathname))
    // No eval, no code from elsewhere: the build must do without.
    response.setHeader('Content-Security-Policy', "script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'")
    response.writeHead(file || opened ? 200 : 404, { 'Content-Type': file?.type ?? 'text/html' })
    response.end(file?.bytes() ?? opened?.html)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
})

afterAll(async () => {
  server.closeAllConnections()
  server.close()
  removeProfile(profile)
})

async function resultOf(request: IncomingMessage, pathname: string): Promise<Uint8Array> {
  const body = await buffer(request)
  if (pathname === '/error') throw new Error(body.toString())
  return body
}

/** Opens a page and waits for what it sends. */
async function inBrowser(html: string): Promise<Buffer> {
  const path = `/page-${pages.size}.html`
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`
  const flags = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run']
  const result = new Promise<Uint8Array>((done) => {
    pages.set(path, { html, done })
  })
  const chromium = spawn(CHROMIUM!, [...flags, '--remote-debugging-port=0', `--user-data-dir=${profile}`, url], {
    stdio: 'ignore',
    timeout: 250_000, // another one could not use the profile
  })
  const ended = once(chromium, 'exit')
  const early = ended.then(([code]) => Promise.reject(new Error(`${CHROMIUM} ended: ${code}`)))
  try {
    return Buffer.from(await Promise.race([result, early]))
  } finally {
    chromium.kill()
    await ended
  }
}

const sameAsNode = async (trace: Buffer, log: string) => {
  const expected = await converted(FILES[log]!.bytes())
  expect(trace.length).toBe(expected.length)
  expect(trace.equals(expected)).toBe(true)
}

const inChromium = CHROMIUM ? describe : describe.skip

inChromium('in Chromium, a log becomes the very bytes that Node makes of it', () => {
  test.each(['/run.csv', '/run.ggtrace.gz', '/run.bin.gz'])('%s, as it is downloaded', async (log) => {
    const program = `
      const log = { name: 'run', source: await fetch('${log}') }
      return new Response(toWebStream(convert(log))).blob()`
    await sameAsNode(await inBrowser(page(program)), log)
  })

  test('a file of the user, compressed on its way out', async () => {
    const program = `
      const file = new File([await (await fetch('/run.csv')).blob()], 'run.csv')
      return new Response(toWebStream(gzip(convert({ name: file.name, source: file })))).blob()`
    await sameAsNode(gunzipSync(await inBrowser(page(program))) as Buffer, '/run.csv')
  })

  test('a stream that cannot be iterated (Safari)', async () => {
    const program = `
      delete ReadableStream.prototype[Symbol.asyncIterator]
      delete ReadableStream.prototype.values
      delete ReadableStream.from
      const { body } = await fetch('/run.ggtrace.gz')
      return new Response(toWebStream(convert({ name: 'run', source: body }))).blob()`
    await sameAsNode(await inBrowser(page(program)), '/run.ggtrace.gz')
  })

  test('in a worker', async () => {
    const program = `
      const worker = new Worker('/worker.js', { type: 'module' })
      worker.postMessage(new File([await (await fetch('/run.csv')).blob()], 'run.csv'))
      return new Promise((resolve) => { worker.onmessage = ({ data }) => resolve(data) })`
    await sameAsNode(await inBrowser(page(program)), '/run.csv')
  })

  test("in the package's worker, while the page stays free", async () => {
    const program = `
      const { convertInWorker } = await import('/ggml2perfetto/worker.js')
      const file = new File([await (await fetch('/run.csv')).blob()], 'run.csv')
      return new Response(toWebStream(convertInWorker({ name: file.name, source: file }))).blob()`
    await sameAsNode(await inBrowser(page(program)), '/run.csv')
  })

  test("a stream in the package's worker, whose errors keep their fields, and which a signal ends", async () => {
    const program = `
      const { convertInWorker } = await import('/ggml2perfetto/worker.js')
      const wrong = { name: 'x', source: new Uint8Array([1, 2, 3]) }
      const error = await convertInWorker(wrong, { from: 'ggtrace' }).next().catch((error) => error)
      const stalled = new ReadableStream({ pull: () => new Promise(() => {}) })
      const signal = AbortSignal.timeout(50)
      const ended = await convertInWorker({ name: 'x', source: stalled }, { signal }).next().catch((error) => error)
      if (error.at.byte !== 0 || ended.name !== 'TimeoutError') throw new Error(error + ' ' + ended)
      const { body } = await fetch('/run.ggtrace.gz')
      return new Response(toWebStream(convertInWorker({ name: 'run', source: body }))).blob()`
    await sameAsNode(await inBrowser(page(program)), '/run.ggtrace.gz')
  })

  test('the page that docs/library.md shows, with a file that the user chose', async () => {
    const [html] = /(?<=```html\n)[\s\S]*?(?=```)/.exec(String(read('docs/library.md')))!
    const choosing = `
      const chosen = new DataTransfer()
      chosen.items.add(new File([await (await fetch('/run.csv')).blob()], 'run.csv'))
      const input = document.querySelector('input')
      input.files = chosen.files
      input.dispatchEvent(new Event('change'))
      const link = document.querySelector('a')
      while (!link.href) await new Promise((resolve) => setTimeout(resolve, 20))
      return (await fetch(link.href)).blob()`
    await sameAsNode(await inBrowser(html + page(choosing)), '/run.csv')
  })
})

inChromium('in Chromium', () => {
  test('the operators of a run as a Parquet file', async () => {
    const program = `
      const { tablesOf, traceIdOfInputs } = await import('/ggml2perfetto/tables.js')
      const log = { name: 'run', source: await (await fetch('/run.ggtrace.gz')).blob() }
      const pieces = []
      const tables = tablesOf(log, { traceId: await traceIdOfInputs(log) }, { name: 'page', version: '1' })
      for await (const { table, bytes } of tables) if (table === 'operator') pieces.push(bytes)
      return new Blob(pieces)`
    const file = new Uint8Array(await inBrowser(page(program))).buffer
    const rows = await parquetReadObjects({ file, compressors: { GZIP: (bytes) => gunzipSync(bytes) } })
    const { operators } = await summarize({ name: 'run', source: FILES['/run.ggtrace.gz']!.bytes() })
    expect([rows.length, rows[0]!['trace_id']]).toEqual([
      operators,
      await traceIdOf([join(ROOT, 'examples/moe.ggtrace.gz')]),
    ])
  })

  test('SQL on a trace, by trace_processor from where the package has it', async () => {
    const program = `
      const { openTrace } = await import('/ggml2perfetto/sql.js')
      const trace = await openTrace(convert({ name: 'run', source: await fetch('/run.csv') }))
      return JSON.stringify([...trace.rows('select count(*) as n from slice where category = :category', { category: 'operator' })])`
    expect(JSON.parse(String(await inBrowser(page(program))))).toEqual([{ n: 2664 }])
  })

  test('errors are those of Node', async () => {
    const result = inBrowser(page(`await summarize({ name: 'x.bin', source: new Blob(['what?']) })`))
    await expect(result).rejects.toThrow(/^UsageError: x\.bin: not a known format; it begins with 77 68 61 74 3f/)
    const failed = inBrowser(page(`await summarize({ name: 'x.csv', source: await fetch('/nothing') })`))
    await expect(failed).rejects.toThrow('UsageError: x.csv: the request failed: HTTP 404 Not Found')
  })

  test('a torn gzip stream is read as far as it goes, and told', async () => {
    const program = `
      const { operators, issues } = await summarize({ name: 'x', source: await fetch('/torn.csv.gz') })
      return JSON.stringify({ operators, titles: issues.map(({ title }) => title) })`
    const { operators, titles } = JSON.parse(String(await inBrowser(page(program))))
    expect(titles).toContain('broken gzip stream')
    expect(operators).toBeGreaterThan(0)
  })
})
