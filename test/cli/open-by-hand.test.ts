import { get, type IncomingMessage } from 'node:http'
import { expect, test } from '@jest/globals'
import { CHROMIUM, Sites } from '../browser.ts'
import { inLong } from '../long.ts'
import { at, MOE, read, run, useFolder } from './helpers.ts'
import { occupyPort, opened, PAGE, UI, usePort } from './open-helpers.ts'

/** `open` where no browser is opened here. */

useFolder()
usePort()

test('the short URL leads to the one that is printed; without a browser it ends after --wait', async () => {
  run([MOE, '-o', at('moe.pftrace')])
  const { url, ended } = await opened(['moe.pftrace', '--no-browser', '--wait', '2'])
  const response = await new Promise<IncomingMessage>((resolve) => get('http://127.0.0.1:9001/', resolve))
  expect([response.statusCode, response.headers.location]).toEqual([302, url])
  const { code, stderr } = await ended
  expect(code).toBe(0)
  expect(stderr).toMatch(/^shorter: http:\/\/127\.0\.0\.1:9001\/, /m)
  expect(stderr).toMatch(/^for a browser on another machine, first run there: ssh -L 9001:127\.0\.0\.1:9001 /m)
  expect(stderr).toMatch(/ended: no browser fetched the trace in 2 s\n$/)
})

/** The answer to a request with these headers. */
async function answer(url: string, headers: Record<string, string> = {}) {
  const response = await new Promise<IncomingMessage>((resolve) => get(url, { agent: false, headers }, resolve))
  const pieces: Buffer[] = []
  for await (const piece of response) pieces.push(piece)
  return { status: response.statusCode, headers: response.headers, body: Buffer.concat(pieces) }
}

test('where port 9001 is in use, a page on another one has the trace for the UI; other sites do not get it', async () => {
  run([MOE, '-o', at('moe.pftrace')])
  await occupyPort()
  const { url, traceUrl, ended } = await opened(['moe.pftrace', '--no-browser'])
  const { origin } = new URL(url)
  expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/[\w-]{22}\/moe\.pftrace\.html$/)
  const page = await answer(url)
  expect([page.status, page.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8'])
  expect(page.headers['content-security-policy']).toMatch(
    /^default-src 'none';.* connect-src 'self'; frame-ancestors 'none'$/,
  )
  // The UI gets its view, and nothing to fetch.
  const viewer = /"viewer":"([^"]*)"/.exec(`${page.body}`)![1]!
  const parameters = new URLSearchParams(viewer.slice(`${UI}/#!/?`.length))
  expect([viewer.startsWith(`${UI}/#!/?`), [...parameters.keys()]]).toEqual([
    true,
    ['visStart', 'visEnd', 'startupCommands'],
  ])
  expect((await answer(`${origin}/`)).headers.location).toBe(url)
  for (const headers of [{ origin: UI }, { origin: 'null' }, { 'sec-fetch-site': 'cross-site' }])
    expect([headers, (await answer(traceUrl, headers)).status]).toEqual([headers, 403])
  expect((await answer(url, { origin: UI })).status).toBe(403)
  expect((await answer(`${origin}/x/moe.pftrace`)).status).toBe(404)
  const trace = await answer(traceUrl, { 'sec-fetch-site': 'same-origin' })
  expect([trace.status, trace.headers['access-control-allow-origin']]).toEqual([200, undefined])
  expect(trace.body.equals(read('moe.pftrace'))).toBe(true)
  const { code, stderr } = await ended
  expect(code).toBe(0)
  expect(stderr).toMatch(
    /^port 9001 is in use: serving the trace \(.*\) on 127\.0\.0\.1:\d+, once, to the page above, whose button /,
  )
  expect(stderr).not.toMatch(/may access/)
})

inLong(CHROMIUM === undefined ? test.skip : test)(
  'its button passes the trace to the UI (needs chromium, openssl)',
  async () => {
    run([MOE, '-o', at('moe.pftrace')])
    const sites = await Sites.open(PAGE, ['ui.perfetto.dev'])
    await occupyPort()
    const { url, ended } = await opened(['moe.pftrace', '--no-browser'])
    const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', read('moe.pftrace'))).join()
    const from = new URL(url).origin
    expect(await sites.click(url, '#open')).toEqual({ origin: UI, from, title: 'moe.pftrace', hash })
    expect((await ended).code).toBe(0)
    await sites.close()
  },
)
