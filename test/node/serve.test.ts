import { request } from 'node:http'
import { connect, createServer } from 'node:net'
import { afterEach, describe, expect, test } from '@jest/globals'
import { type ServedTrace, TraceServer } from '../../lib/node.ts'
import { GGML_PACKAGE, VIEWER } from '../../lib/sql.ts'
import { inLong } from '../long.ts'

const TRACE = Buffer.alloc(3_000_000, 'ggml2perfetto ')

const servers: TraceServer[] = []
afterEach(() => {
  for (const server of servers.splice(0)) server.close()
})

/** A server on a port of its own; `ServedTrace` over `bytes`, in pieces. */
async function serve(bytes = TRACE, over: Partial<ServedTrace> = {}) {
  const server = await TraceServer.listen(0)
  servers.push(server)
  const read = async function* () {
    for (let at = 0; at < bytes.length; at += 65536) yield bytes.subarray(at, at + 65536)
  }
  const { url, fetched } = server.offer({ name: 'run.pftrace', bytes: bytes.length, read, ...over })
  return { url: new URL(url), fetched }
}

/** What came back, or the code of the error. */
function ask(url: URL, options: { method?: string; path?: string; headers?: Record<string, string> } = {}) {
  return new Promise<{ status: number | string; headers: Record<string, unknown>; body: Buffer }>((resolve) => {
    const headers = { origin: VIEWER, ...options.headers }
    const failed = ({ code }: NodeJS.ErrnoException) =>
      resolve({ status: code ?? '', headers: {}, body: Buffer.alloc(0) })
    const sent = request(url, { agent: false, ...options, headers }, async (response) => {
      try {
        const pieces: Buffer[] = []
        for await (const piece of response) pieces.push(piece)
        resolve({ status: response.statusCode!, headers: response.headers, body: Buffer.concat(pieces) })
      } catch (error) {
        failed(error as Error)
      }
    })
    sent.on('error', failed).end()
  })
}

/** What comes back to bytes that are sent as they are; the other side may close before it has all. */
async function answerTo(text: string, { port }: URL): Promise<string> {
  const socket = connect(Number(port), '127.0.0.1')
  socket.on('error', () => undefined)
  socket.write(text, 'latin1')
  let answer = ''
  socket.setEncoding('latin1').on('data', (piece) => (answer += piece))
  await new Promise((resolve) => socket.once('close', resolve))
  return answer
}

const isSettled = (promise: Promise<void>) =>
  Promise.race([promise.then(() => true), new Promise((resolve) => setImmediate(resolve, false))])

test('the UI gets the trace, as it is, and then it is served', async () => {
  const { url, fetched } = await serve()
  expect(url.href).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/[\w-]{22}\/run\.pftrace$/)
  const { status, headers, body } = await ask(url)
  expect(status).toBe(200)
  expect(headers).toMatchObject({
    'access-control-allow-origin': VIEWER,
    'cache-control': 'no-store',
    'content-length': '3000000',
    'content-type': 'application/octet-stream',
  })
  expect(body.equals(TRACE)).toBe(true)
  await fetched
})

test('the UI gets the SQL package from an extension server, as often as it asks, and other pages do not', async () => {
  const { url, fetched } = await serve()
  const json = async (path: string) => {
    const { status, headers, body } = await ask(url, { path })
    expect([status, headers['access-control-allow-origin']]).toEqual([200, VIEWER])
    return JSON.parse(body.toString())
  }
  const { namespace, features, modules } = await json('/ggml/manifest')
  expect([namespace, features, modules.length]).toEqual([GGML_PACKAGE.name, [{ name: 'sql_modules' }], 1])
  const found = await json(`/ggml/modules/${modules[0].id}/sql_modules`)
  expect(found).toEqual({
    sql_modules: Object.entries(GGML_PACKAGE.modules).map(([name, sql]) => ({ name: `ggml.${name}`, sql })),
  })
  await json('/ggml/manifest')
  const others = await ask(url, { path: '/ggml/manifest', headers: { origin: 'https://other.example' } })
  expect([others.status, (await ask(url, { path: '/ggml/macros' })).status]).toEqual([403, 404])
  expect(await isSettled(fetched)).toBe(false)
})

describe('refused, without a header that would allow it, and the trace stays to be had', () => {
  test.each([
    ['another origin', { origin: 'https://ui.perfetto.dev.evil.example' }, 403],
    ['the same site without TLS', { origin: 'http://ui.perfetto.dev' }, 403],
    ['a sandboxed page', { origin: 'null' }, 403],
    ['no origin: an image, a link, a script of another page', { origin: '' }, 403],
    ['a name that points here (DNS rebinding)', { host: 'evil.example:9001' }, 403],
    ['the machine by another name', { host: 'localhost:9001' }, 403],
  ])('%s', async (_, headers, status) => {
    const { url, fetched } = await serve()
    const answer = await ask(url, { headers })
    expect(answer.status).toBe(status)
    expect(Object.keys(answer.headers).filter((name) => name.startsWith('access-control'))).toEqual([])
    expect(answer.body.toString()).toMatch(/^(Host|Origin): expected /)
    expect(await isSettled(fetched)).toBe(false)
    expect((await ask(url)).status).toBe(200)
    await fetched
  })

  test.each([
    ['POST', undefined, 405],
    ['PUT', undefined, 405],
    ['DELETE', undefined, 405],
    ['GET', '/', 404],
    ['POST', '/status', 404], // the UI looks for a trace_processor there
    ['GET', '/status', 404],
    ['GET', '/run.pftrace', 404],
    ['GET', '/../../etc/passwd', 404],
    ['OPTIONS', '/other', 404],
  ])('%s %s', async (method, path, status) => {
    const { url, fetched } = await serve()
    const answer = await ask(url, { method, ...(path === undefined ? {} : { path }) })
    expect(answer).toMatchObject({ status, headers: { 'access-control-allow-origin': VIEWER } })
    expect(answer.body.length).toBeLessThan(100)
    expect(await isSettled(fetched)).toBe(false)
    expect((await ask(url)).status).toBe(200)
  })
})

/** What no client of Node sends: `$` is the path of the trace, and the lines that permit the UI to have it follow. */
test.each([
  ['an absolute URL', 'GET http://evil.example/ HTTP/1.1', 404],
  ['an absolute URL of this server', 'GET http://127.0.0.1$ HTTP/1.1', 404],
  ['a path with its dots', 'GET /x/..$ HTTP/1.1', 404],
  ['an encoded path', 'GET /%2e$ HTTP/1.1', 404],
  ['a path of the extension server', 'GET /ggml/..$ HTTP/1.1', 404],
  ['another host before', 'GET $ HTTP/1.1\r\nHost: evil.example', 403],
  ['another origin before', 'GET $ HTTP/1.1\r\nOrigin: https://evil.example', 403],
  ['a method of proxies', 'CONNECT 127.0.0.1:22 HTTP/1.1', undefined],
  ['a protocol to change to', 'GET /x HTTP/1.1\r\nConnection: Upgrade, close\r\nUpgrade: websocket', 404],
  ['two lengths', 'POST $ HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked', 400],
  ['a header that is too large', `GET $ HTTP/1.1\r\nX: ${'x'.repeat(100_000)}`, 431],
  ['no HTTP', '\x16\x03\x01\x02\x00\x01', 400],
])('%s does not get the trace', async (_, text, status) => {
  const { url, fetched } = await serve()
  const headers = `Host: ${url.host}\r\nOrigin: ${VIEWER}\r\n`
  const answer = await answerTo(`${text.replace('$', url.pathname)}\r\n${headers}\r\n`, url)
  expect(answer.match(/(?<=^HTTP\/1\.1 )\d+/)?.[0]).toBe(status?.toString())
  expect(answer.length).toBeLessThan(400)
  expect(await isSettled(fetched)).toBe(false)
})

test.each([
  ['a frame or a script of another site', 'cross-site', 403],
  ['another port of this machine', 'same-site', 403],
  ['the user', 'none', 302],
])('the short address leads to the UI for who typed it: %s', async (_, site, status) => {
  const server = await TraceServer.listen(0)
  servers.push(server)
  server.leadTo(VIEWER)
  expect(
    (
      await answerTo(
        `GET / HTTP/1.1\r\nHost: ${new URL(server.shortUrl).host}\r\nSec-Fetch-Site: ${site}\r\n\r\n`,
        new URL(server.shortUrl),
      )
    ).slice(9, 12),
  ).toBe(`${status}`)
})

test('connections that say nothing, or half a request, are closed in the end', async () => {
  const { url, fetched } = await serve()
  const silent = ['', 'GET / HTTP/1.1\r\nHo', `POST ${url.pathname} HTTP/1.1\r\nContent-Length: 9\r\n\r\nx`]
  const closed = Array.from({ length: 99 }, (_, i) => answerTo(silent[i % 3]!, url))
  expect((await ask(url)).status).toBe(200)
  await fetched
  servers.pop()!.close()
  await Promise.all(closed)
})

inLong(test)('who has everything and only writes on is left', async () => {
  const { url, fetched } = await serve()
  const socket = connect({ port: Number(url.port), host: '127.0.0.1', allowHalfOpen: true }).on(
    'error',
    () => undefined,
  )
  socket.resume().write(`GET ${url.pathname} HTTP/1.1\r\nHost: ${url.host}\r\nOrigin: ${VIEWER}\r\n\r\n`)
  socket.write('GET / HTTP/1.1\r\nX: ')
  const writing = setInterval(() => socket.write('x'), 500)
  await fetched.finally(() => clearInterval(writing))
  socket.destroy()
})

test('nothing is to be had before a trace is offered', async () => {
  const server = await TraceServer.listen(0)
  servers.push(server)
  const later = server.offer({ name: 'x', bytes: 1, read: async function* () {} })
  const other = await TraceServer.listen(0)
  servers.push(other)
  const { port } = new URL(later.url)
  expect((await ask(new URL(`http://127.0.0.1:${port}/`))).status).toBe(404)
})

test('each trace has an address of its own, which names it in characters that every reader leaves alone', async () => {
  const paths = await Promise.all([1, 2].map(async () => (await serve(TRACE, { name: 'a b/ü"#?&%.pftrace' })).url))
  expect(paths[0]!.pathname).not.toBe(paths[1]!.pathname)
  expect(paths[0]!.pathname).toMatch(/^\/[\w-]{22}\/a_b_.pftrace$/)
})

test('HEAD tells the size and leaves the trace to be had; ranges are not taken apart', async () => {
  const { url, fetched } = await serve()
  expect(await ask(url, { method: 'HEAD' })).toMatchObject({ status: 200, headers: { 'content-length': '3000000' } })
  expect(await isSettled(fetched)).toBe(false)
  const { status, body } = await ask(url, { headers: { range: 'bytes=0-9' } })
  expect({ status, length: body.length }).toEqual({ status: 200, length: TRACE.length })
})

test('a browser that asks first is answered, for private networks too', async () => {
  const { url } = await serve()
  const asked = { 'access-control-request-method': 'GET', 'access-control-request-private-network': 'true' }
  expect(await ask(url, { method: 'OPTIONS', headers: asked })).toMatchObject({
    status: 204,
    headers: {
      'access-control-allow-origin': VIEWER,
      'access-control-allow-methods': 'GET, HEAD',
      'access-control-allow-private-network': 'true',
    },
  })
  const others = await ask(url, { method: 'OPTIONS', headers: { ...asked, origin: 'https://evil.example' } })
  expect(others).toMatchObject({ status: 403 })
  expect(others.headers).not.toHaveProperty('access-control-allow-private-network')
})

test('who breaks off may come again; meanwhile a second one is refused', async () => {
  const { url, fetched } = await serve(Buffer.alloc(50_000_000))
  const socket = connect(Number(url.port), '127.0.0.1')
  socket.write(`GET ${url.pathname} HTTP/1.1\r\nHost: ${url.host}\r\nOrigin: ${VIEWER}\r\n\r\n`)
  await new Promise((resolve) => socket.once('readable', resolve))
  expect((await ask(url)).status).toBe(409)
  socket.destroy()
  let answer = await ask(url)
  while (answer.status === 409) answer = await ask(url)
  expect(answer.body.length).toBe(50_000_000)
  await fetched
})

test.each([
  ['closes', '1.1', 'Connection: close'],
  ['keeps alive', '1.1', 'Connection: keep-alive'],
  ['is of HTTP 1.0', '1.0', 'Accept: */*'],
])('who %s the connection has the trace only when everything arrived', async (_, version, header) => {
  // Less than what the system holds for a reader that has stopped.
  const small = TRACE.subarray(0, 100_000)
  const { url, fetched } = await serve(small)
  const socket = connect(Number(url.port), '127.0.0.1').pause()
  socket.write(`GET ${url.pathname} HTTP/${version}\r\nHost: ${url.host}\r\nOrigin: ${VIEWER}\r\n${header}\r\n\r\n`)
  await new Promise((resolve) => setTimeout(resolve, 300))
  expect(await isSettled(fetched)).toBe(false)
  let bytes = 0
  for await (const piece of socket) bytes += (piece as Buffer).length
  expect(bytes).toBeGreaterThan(small.length)
  await fetched
})

test('a trace that cannot be read to its end is an error, and the UI does not take it for whole', async () => {
  const { url, fetched } = await serve(TRACE, { bytes: TRACE.length + 1 })
  expect((await ask(url)).status).not.toBe(200)
  await expect(fetched).rejects.toThrow('run.pftrace: changed while it was read: 3000001 bytes before, now 3000000')
})

test('after close there is nothing', async () => {
  const { url } = await serve()
  servers.pop()!.close()
  expect((await ask(url)).status).toBe('ECONNREFUSED')
})

test('a port in use: what it may be, and what to do', async () => {
  const other = createServer()
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
  const { port } = other.address() as { port: number }
  await expect(TraceServer.listen(port)).rejects.toThrow(
    new RegExp(`^127.0.0.1:${port} is in use, .*only port that https://ui.perfetto.dev may fetch from\nhint: end that`),
  )
  other.close()
})
