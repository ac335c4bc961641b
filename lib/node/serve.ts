import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { endianness } from 'node:os'
import * as self from 'node:process'
import { pipeline } from 'node:stream/promises'
import { UsageError } from '../errors.ts'
import { EXTENSION_PATH, VIEWER } from '../query/view.ts'
import { trustedUsers } from './own-files.ts'
import { PAGE_SUFFIX, pagePolicy, postPage } from './post-page.ts'

const HOST = '127.0.0.1'

/** The only port of this host from which the UI's content security policy permits to fetch (Perfetto, ui/src/frontend/index.ts). */
const PORT = 9001

/** How long a viewer may take to close the connection after everything was sent. */
const HANG_UP_MS = 5000

/** A trace to serve. */
export interface ServedTrace {
  /** A file name; the viewer shows it as the trace's name. */
  readonly name: string
  readonly bytes: number
  /** Its bytes, from the start; called again if the viewer aborts and tries again. */
  read(): AsyncIterable<Uint8Array>
}

/**
 * Serves one trace to the Perfetto UI, once, on this machine: an HTTP server on 127.0.0.1:9001. Only pages of
 * https://ui.perfetto.dev get it, at an unguessable address. Other pages are refused by their `Origin`, other host names that
 * resolve to this address by their `Host`. At `/ggml` it is an extension server of the UI, with the views of `GGML_PACKAGE`. Where another program
 * uses that port, it serves a page on another one, which passes the trace to the UI.
 */
export class TraceServer {
  private trace: ServedTrace | undefined
  private path = ''
  private ownPath = ''
  private isSending = false
  private lead!: (viewer: string) => void
  /** Where the short address leads to, once that is known. */
  private readonly viewer = new Promise<string>((resolve) => {
    this.lead = resolve
  })
  private settle!: { resolve: () => void; reject: (error: unknown) => void }
  /** Settles when the viewer has received the whole trace; rejects with what `read` throws. */
  private readonly fetched = new Promise<void>((resolve, reject) => {
    this.settle = { resolve, reject }
  })

  /** `isPosting`: the UI cannot fetch from its port; a page passes the trace to it. */
  private constructor(
    private readonly server: Server,
    private readonly host: string,
    readonly isPosting: boolean,
  ) {
    this.fetched.catch(() => undefined) // there may be no listener yet
    server.on('request', (request, response) => this.answer(request, response))
  }

  /**
   * Opens the port: by default 9001, the only one from which the UI fetches; a free one, from which a page passes the trace to the UI (`isPosting`), if
   * another program uses that. Throws UsageError if another program uses the given one.
   */
  static async listen(port?: number): Promise<TraceServer> {
    const server = (await import('node:http')).createServer()
    const failure = await failureToListen(server, port ?? PORT)
    const isPosting = port === undefined && failure?.code === 'EADDRINUSE'
    const further = isPosting ? await failureToListen(server, 0) : failure
    if (further) throw explainListenError(further, port ?? PORT)
    return new TraceServer(server, `${HOST}:${(server.address() as AddressInfo).port}`, isPosting)
  }

  /**
   * Serves a trace. Returns its address (where {@link isPosting}, that of the page), another one that only programs of this user can fetch (arguments of
   * programs, such as the one that opens a browser, are visible to all users), and a promise that resolves when the last byte was fetched.
   */
  offer(trace: ServedTrace): { url: string; ownUrl: string; fetched: Promise<void> } {
    const address = () => `/${randomBytes(16).toString('base64url')}/${trace.name.replace(/[^\w.+-]+/g, '_')}`
    this.trace = trace
    this.path = address()
    this.ownPath = address()
    return { url: this.urlOf(this.path), ownUrl: this.urlOf(this.ownPath), fetched: this.fetched }
  }

  private urlOf(path: string): string {
    return `http://${this.host}${path}${this.isPosting ? PAGE_SUFFIX : ''}`
  }

  /** The address that is easy to type: programs of this user are led from it to `viewer`, or to the page, as soon as that is known. */
  get shortUrl(): string {
    return `http://${this.host}/`
  }

  /** The address of the UI, with what it is to show: {@link shortUrl} leads there, or the page opens it. */
  leadTo(viewer: string): void {
    this.lead(viewer)
  }

  /** Closes the port and aborts a transfer. */
  close(): void {
    this.server.close()
    this.server.closeAllConnections()
  }

  private answer(request: IncomingMessage, response: ServerResponse): void {
    const { headers, url, method = '' } = request
    request.resume()
    response.setHeader('Cache-Control', 'no-store')
    response.setHeader('Vary', 'Origin')
    response.setHeader('X-Content-Type-Options', 'nosniff')
    if (headers.host !== this.host) return refuse(response, 403, `Host: expected ${this.host}`)
    if (url === '/' && method === 'GET' && headers.origin === undefined) return this.redirect(request, response)
    if (this.isPosting) return this.answerOwn(request, response)
    if (headers.origin !== VIEWER) return refuse(response, 403, `Origin: expected ${VIEWER}`)
    response.setHeader('Access-Control-Allow-Origin', VIEWER)
    if (url!.startsWith(`${EXTENSION_PATH}/`) && method === 'GET') return void extend(response, url!)
    // The UI also fetches /status, to find a running trace_processor: there is none.
    if (!this.trace || !this.knows(url, request.socket)) return refuse(response, 404, 'no such trace')
    if (method === 'OPTIONS') return allow(request, response)
    this.answerTrace(this.trace, request, response)
  }

  /** Is it an address of the trace, for this program? */
  private knows(url: string | undefined, socket: Socket): boolean {
    return url === this.path || (url === this.ownPath && isOwnPeer(socket))
  }

  /** Answers with the page, or with the trace that the page asks for: with browsers, no other site gets that. */
  private answerOwn(request: IncomingMessage, response: ServerResponse): void {
    const { headers, url = '', method, socket } = request
    const { trace } = this
    const own = `http://${this.host}`
    if ((headers.origin ?? own) !== own) return refuse(response, 403, `Origin: expected ${own}`)
    const isPage = url.endsWith(PAGE_SUFFIX) && this.knows(url.slice(0, -PAGE_SUFFIX.length), socket)
    if (!trace || !(isPage || this.knows(url, socket))) return refuse(response, 404, 'no such trace')
    if (isPage && method === 'GET') return this.sendPage(trace, response)
    if (!isPage && (headers['sec-fetch-site'] ?? 'same-origin') === 'same-origin')
      return this.answerTrace(trace, request, response)
    refuse(response, isPage ? 405 : 403, isPage ? 'expected GET' : `Sec-Fetch-Site: expected ${own}`)
  }

  private sendPage({ name }: ServedTrace, response: ServerResponse): void {
    const nonce = randomBytes(16).toString('base64url')
    const headers = {
      'Content-Type': 'text/html; charset=utf-8',
      Connection: 'close',
      'Referrer-Policy': 'no-referrer',
    }
    void this.viewer.then((viewer) => {
      response.writeHead(200, { ...headers, 'Content-Security-Policy': pagePolicy(nonce) })
      response.end(postPage({ name, viewer, nonce }))
    })
  }

  private answerTrace(trace: ServedTrace, { method, socket }: IncomingMessage, response: ServerResponse): void {
    if (method !== 'GET' && method !== 'HEAD') {
      response.setHeader('Allow', 'GET, HEAD, OPTIONS')
      return refuse(response, 405, 'expected GET')
    }
    if (this.isSending) return refuse(response, 409, 'the trace is being fetched already')
    // Whatever the viewer asks for, the connection stays open until it has everything: hangUp() ends it.
    const headersOfTrace = { 'Content-Length': trace.bytes, Connection: 'keep-alive' }
    response.writeHead(200, { 'Content-Type': 'application/octet-stream', ...headersOfTrace })
    if (method === 'HEAD') response.end()
    else void this.send(trace, socket, response)
  }

  private redirect({ headers, socket }: IncomingMessage, response: ServerResponse): void {
    // A page of another site, which knows this address, too, could have the trace fetched in a frame that nobody sees: then it is served.
    if ((headers['sec-fetch-site'] ?? 'none') !== 'none')
      return refuse(response, 403, 'Sec-Fetch-Site: expected none: type this address into the browser')
    if (!isOwnPeer(socket)) return refuse(response, 403, 'expected a program of the same user')
    void this.viewer.then((viewer) => {
      const target = this.isPosting ? this.urlOf(this.path) : viewer
      response.writeHead(302, { Location: target, Connection: 'close' }).end()
    })
  }

  private async send(trace: ServedTrace, socket: Socket, response: ServerResponse): Promise<void> {
    this.isSending = true
    let failure: unknown
    try {
      await pipeline(
        whole(trace, (error) => (failure = error)),
        response,
      )
      if (await hangUp(socket)) this.settle.resolve()
    } catch {
      // The viewer aborted, and may try again. But an error of reading the trace would occur again.
      if (failure !== undefined) this.settle.reject(failure)
    } finally {
      this.isSending = false
    }
  }
}

/** A trace's bytes; calls `onFailure` if they cannot be read. */
async function* whole(trace: ServedTrace, onFailure: (error: unknown) => void): AsyncGenerator<Uint8Array> {
  let bytes = 0
  try {
    for await (const piece of trace.read()) {
      bytes += piece.length
      yield piece
    }
    if (bytes !== trace.bytes) {
      throw new UsageError(`${trace.name}: changed while it was read: ${trace.bytes} bytes before, now ${bytes}`)
    }
  } catch (error) {
    onFailure(error)
    throw error
  }
}

/**
 * Ends the connection, and waits until the other side has received everything and has closed. False if it aborted
 * before.
 */
function hangUp(socket: Socket): Promise<boolean> {
  return new Promise((resolve) => {
    if (socket.destroyed) return resolve(socket.errored === null)
    // Of all time, and not of silence: whatever the other side sends, this ends.
    const late = setTimeout(() => socket.destroy(), HANG_UP_MS)
    socket.once('close', (hadError) => {
      clearTimeout(late)
      resolve(!hadError)
    })
    socket.end()
  })
}

function refuse(response: ServerResponse, status: number, reason: string): void {
  response.writeHead(status, { 'Content-Type': 'text/plain', Connection: 'close' }).end(`${reason}\n`)
}

/** Answers with a file of the extension server: the UI keeps a copy. */
async function extend(response: ServerResponse, url: string): Promise<void> {
  const text = (await import('../query/extension.ts')).EXTENSION.get(url)
  if (text === undefined) return refuse(response, 404, 'no such trace')
  response.writeHead(200, { 'Content-Type': 'application/json', Connection: 'close' }).end(text)
}

/** Answers a preflight request, which some browsers send for addresses of the local machine. */
function allow({ headers }: IncomingMessage, response: ServerResponse): void {
  response.setHeader('Access-Control-Allow-Methods', 'GET, HEAD')
  if (headers['access-control-request-private-network'] === 'true') {
    response.setHeader('Access-Control-Allow-Private-Network', 'true')
  }
  response.writeHead(204, { Connection: 'close' }).end()
}

/** Listens; returns why it cannot. */
function failureToListen(server: Server, port: number): Promise<NodeJS.ErrnoException | undefined> {
  return new Promise((resolve) => {
    server.once('error', resolve)
    server.listen(port, HOST, () => {
      server.off('error', resolve)
      resolve(undefined)
    })
  })
}

function explainListenError(error: NodeJS.ErrnoException, port: number): Error {
  if (error.code !== 'EADDRINUSE') return new UsageError(`${HOST}:${port}: cannot listen: ${error.message}`)
  return new UsageError(
    `${HOST}:${port} is in use, by a trace_processor server or another ggml2perfetto open; ` +
      `it is the only port that ${VIEWER} may fetch from\n` +
      `hint: end that program (which: lsof -i :${port}), or drag the trace into ${VIEWER}`,
  )
}

/** The state of a connection in /proc/net/tcp. */
const ESTABLISHED = '01'

/**
 * Is the other end of a connection within this machine a program of this user, of root, or of the user who called sudo? Where the system does not
 * report it (not Linux), every program counts as one.
 */
function isOwnPeer({ remoteAddress, remotePort, localAddress, localPort }: Socket): boolean {
  if (self.platform !== 'linux') return true
  const [peer, here] = [endOf(remoteAddress, remotePort), endOf(localAddress, localPort)]
  const owners = ['tcp', 'tcp6'].flatMap((name) =>
    linesOf(`/proc/net/${name}`).flatMap((line) => {
      const [, local, remote, state, , , , uid] = line.trim().split(/\s+/)
      const isPeer = state === ESTABLISHED && local!.endsWith(peer) && remote!.endsWith(here)
      return isPeer ? [Number(uid)] : []
    }),
  )
  const own = trustedUsers()
  return owners.length > 0 && owners.every((uid) => own.includes(uid))
}

function linesOf(path: string): string[] {
  try {
    return readFileSync(path, 'latin1').trim().split('\n').slice(1)
  } catch {
    return [] // a system without IPv6
  }
}

/** An end of a connection as in /proc/net/tcp, and the end of it in /proc/net/tcp6: the bytes of the address as one number of this machine. */
function endOf(address = '', port = 0): string {
  const bytes = address
    .replace(/^::ffff:/, '')
    .split('.')
    .map(Number)
  const hex = (number: number, digits: number) => number.toString(16).toUpperCase().padStart(digits, '0')
  const ordered = endianness() === 'LE' ? bytes.reverse() : bytes
  return `${ordered.map((byte) => hex(byte, 2)).join('')}:${hex(port, 4)}`
}
