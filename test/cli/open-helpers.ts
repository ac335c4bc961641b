import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, writeFileSync } from 'node:fs'
import { get, type IncomingMessage } from 'node:http'
import { connect, createServer, type Server } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach } from '@jest/globals'
import { CHROMIUM, type Sites } from '../browser.ts'
import { at, start } from './helpers.ts'

/** What opens the UI, and what the UI then does. */

export const UI = 'https://ui.perfetto.dev'

/** A running `open`, or `record --open`. */
export interface Running {
  readonly child: ChildProcess
  /** What the UI is opened with; where port 9001 is in use, the page that passes the trace to the UI. */
  readonly url: string
  /** What the UI or the page fetches. */
  readonly traceUrl: string
  readonly ended: Promise<{ code: number; stdout: string; stderr: string }>
}

/** Commands that are to end with the test. */
export const running: ChildProcess[] = []
/** Servers of the port that are not ours. */
const others: Server[] = []

/** Who listens here may use port 9001, the only one that the UI fetches from: one test of all files at a time. */
const TURN = 19_001

/** Waits until the port may be used, until what is returned is closed. */
export async function takePort(): Promise<Server> {
  for (;;) {
    const turn = createServer().listen(TURN, '127.0.0.1')
    if (await once(turn, 'listening').then(Boolean, () => false)) {
      while (!(await isFree())) await sleep(50) // somebody else's, or one that is just ending
      return turn
    }
    await sleep(50)
  }
}

/** Call at the top of a test file: each test waits for the port, and ends its commands. */
export function usePort(): void {
  let turn: Server
  beforeEach(async () => {
    turn = await takePort()
  })
  afterEach(async () => {
    for (const child of running.splice(0)) {
      if (child.exitCode !== null || child.signalCode !== null) continue
      child.kill('SIGKILL')
      await once(child, 'exit')
    }
    for (const other of others.splice(0)) other.close()
    turn.close()
  })
}

/** Starts `open` and waits for the URL that it prints. */
export const opened = (args: readonly string[], input?: Uint8Array, env?: Record<string, string>) =>
  showing(['open', ...args], input, env)

/** Starts a command that shows a trace, and waits for the URL that it prints: `open` to stdout, `record --open` to stderr. */
export async function showing(
  args: readonly string[],
  input?: Uint8Array,
  env: Record<string, string> = {},
): Promise<Running> {
  const plain = { DISPLAY: '', WAYLAND_DISPLAY: '', BROWSER: '', WSL_DISTRO_NAME: '' }
  const child = start(args, { ...plain, ...env })
  running.push(child)
  const said = { stdout: '', stderr: '' }
  const ended = once(child, 'close').then(([code]) => ({ code, ...said }))
  child.stdin.end(input ?? '')
  const url = await new Promise<string>((resolve, reject) => {
    for (const stream of ['stdout', 'stderr'] as const) {
      child[stream].on('data', (text) => {
        said[stream] += text
        const line = /^(https:\/\/ui\.perfetto\.dev.*|http:\/\/127\.0\.0\.1:\d+\/.*\.html)\n/m.exec(said[stream])
        if (line) resolve(line[1]!)
      })
    }
    void ended.then(() => reject(new Error(said.stderr)))
  })
  const ofPage = url.startsWith(UI) ? undefined : url.replace(/\.html$/, '')
  const traceUrl = ofPage ?? new URLSearchParams(url.slice(`${UI}/#!/?`.length)).get('url')!
  return { child, url, traceUrl, ended }
}

/** Begins to fetch as the UI does. */
export const fetching = (url: string, headers: Record<string, string> = { origin: UI }) =>
  new Promise<IncomingMessage>((resolve, reject) => {
    get(url, { agent: false, headers }, resolve).on('error', reject)
  })

export const fetched = async (url: string, headers?: Record<string, string>) => {
  const pieces: Buffer[] = []
  for await (const piece of await fetching(url, headers)) pieces.push(piece)
  return Buffer.concat(pieces)
}

/** Another program uses the port until the test ends. */
export async function occupyPort(): Promise<void> {
  const other = createServer().listen(9001, '127.0.0.1')
  await once(other, 'listening')
  others.push(other)
}

/** Does nobody listen? (Asked by connecting: to listen would take the port from those who are about to.) */
export function isFree(): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(9001, '127.0.0.1', () => {
      socket.destroy()
      resolve(false)
    })
    socket.once('error', () => resolve(true))
  })
}

/** Does what the UI does: asks for a trace_processor, then fetches what its URL names, or waits for a page to pass the trace. Reports how that went. */
export const PAGE = `<!doctype html><script type="module">
const outcome = async (...args) => {
  try {
    const response = await fetch(...args)
    return { status: response.status, body: await response.blob() }
  } catch (error) { return { error: String(error) } }
}
const hash = async (blob) => [...new Uint8Array(await crypto.subtle.digest('SHA-256', await blob.arrayBuffer()))].join()
const parameters = Object.fromEntries(location.hash.slice(4).split('&').map((part) => part.split('=').map(decodeURIComponent)))
if (parameters.url === undefined) {
  const passed = await new Promise((resolve) => addEventListener('message', (event) => {
    if (event.data !== 'PING') resolve(event)
    else event.source.postMessage('PONG', '*')
  }))
  const { buffer, title } = passed.data.perfetto
  const report = { origin: location.origin, from: passed.origin, title, hash: await hash(new Blob([buffer])) }
  await fetch('/report', { method: 'POST', body: JSON.stringify(report) })
  await new Promise(() => {})
}
const probe = await outcome('http://127.0.0.1:9001/status', { method: 'post', cache: 'no-cache' })
const opaque = await outcome(parameters.url, { mode: 'no-cors' })
const trace = location.search === '?opaque' ? opaque : await outcome(parameters.url)
const report = {
  origin: location.origin, probe: probe.status ?? probe.error, status: trace.status, error: trace.error,
  hash: trace.body && (await hash(trace.body)), opaque: opaque.body?.size,
}
await fetch('/report', { method: 'POST', body: JSON.stringify(report) })
</script>`

/** A program that opens a URL in Chromium, which may reach this machine from the sites. Its number is in browser.pid. */
export function browserFor(sites: Sites): string {
  const line = [CHROMIUM!, ...sites.arguments(true, [UI])].map((arg) => `'${arg}'`).join(' ')
  writeFileSync(at('browser'), `#!/bin/sh\necho $$ > '${at('browser.pid')}'\nexec ${line} "$@"\n`)
  chmodSync(at('browser'), 0o755)
  return at('browser')
}
