import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'

/** Chromium, or undefined where there is none (or no openssl, for the certificate of the sites that it visits). */
export const CHROMIUM = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(
  (path) => existsSync(path) && existsSync('/usr/bin/openssl'),
)

/** How Chromium asks about pages that reach for this machine; to be answered beforehand, for there is nobody to ask. */
const LOCAL_ACCESS = ['local_network_access', 'local_network', 'loopback_network']
const ALLOW = 1

/**
 * Web sites of any name, served from here to Chromium, which takes them for the real ones: `https://ui.perfetto.dev` is
 * the origin of their pages. All have the same page; what its script posts to `/report` is the result of a visit.
 */
export class Sites {
  private readonly children: ChildProcess[] = []
  private onReport: (report: string) => void = () => undefined

  private constructor(
    private readonly server: Server,
    private readonly folder: string,
    private readonly hosts: readonly string[],
  ) {}

  static async open(page: string, hosts: readonly string[]): Promise<Sites> {
    const folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-sites-'))
    const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
    const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1']
    const args = ['req', '-x509', ...curve, '-nodes', '-keyout', key, '-out', cert, '-days', '2', '-subj', '/CN=sites']
    execFileSync('/usr/bin/openssl', args, { stdio: 'ignore' })
    const server = createServer({ key: readFileSync(key), cert: readFileSync(cert) })
    const sites = new Sites(server, folder, hosts)
    server.on('request', async (request, response) => {
      if (request.url !== '/report') return response.setHeader('Content-Type', 'text/html').end(page)
      const pieces: Buffer[] = []
      for await (const piece of request) pieces.push(piece)
      response.end()
      sites.onReport(Buffer.concat(pieces).toString())
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return sites
  }

  /** Arguments for Chromium. `isPublic`: the sites count as ones of the internet; `allowed`: those that may reach us. */
  arguments(isPublic: boolean, allowed: readonly string[]): string[] {
    const { port } = this.server.address() as AddressInfo
    const profile = mkdtempSync(join(this.folder, 'profile-'))
    const grants = Object.fromEntries(allowed.map((origin) => [`${origin}:443,*`, { setting: ALLOW }]))
    const exceptions = Object.fromEntries(LOCAL_ACCESS.map((name) => [name, grants]))
    mkdirSync(join(profile, 'Default'))
    const preferences = { profile: { content_settings: { exceptions } } }
    writeFileSync(join(profile, 'Default/Preferences'), JSON.stringify(preferences))
    return [
      '--headless',
      '--no-sandbox', // root cannot have one
      '--disable-gpu',
      '--disable-dev-shm-usage',
      '--ignore-certificate-errors',
      `--user-data-dir=${profile}`,
      `--host-resolver-rules=${this.hosts.map((host) => `MAP ${host}:443 127.0.0.1:${port}`).join(', ')}`,
      ...(isPublic ? [`--ip-address-space-overrides=127.0.0.1:${port}=public`] : []),
    ]
  }

  /** Waits for the next page's report. */
  report<T>(): Promise<T> {
    return new Promise((resolve) => {
      this.onReport = (report) => resolve(JSON.parse(report))
    })
  }

  /** Lets Chromium visit a page, and returns what that reports. */
  async visit<T>(url: string, { isPublic = false, allowed = [] as readonly string[] } = {}): Promise<T> {
    const report = this.report<T>()
    const args = this.arguments(isPublic, allowed)
    const child = spawn(CHROMIUM!, [...args, url], { stdio: 'ignore' })
    this.children.push(child)
    try {
      return await report
    } finally {
      child.kill()
    }
  }

  /** Lets Chromium visit a page, clicks what `selector` finds as soon as it is enabled, and returns what the page that opens then reports. */
  async click<T>(url: string, selector: string): Promise<T> {
    const report = this.report<T>()
    const args = [...this.arguments(false, []), '--remote-debugging-pipe']
    const child = spawn(CHROMIUM!, args, { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] })
    this.children.push(child)
    const browser = new DevTools(child.stdio[3] as Writable, child.stdio[4] as Readable)
    try {
      const { targetId } = await browser.send<{ targetId: string }>('Target.createTarget', { url })
      const attached = { targetId, flatten: true }
      const { sessionId } = await browser.send<{ sessionId: string }>('Target.attachToTarget', attached)
      const expression = `(() => {
        const found = document.querySelector(${JSON.stringify(selector)})
        if (!found || found.disabled) return false
        found.click()
        return true
      })()`
      const click = { expression, userGesture: true, returnByValue: true }
      const isClicked = async () => {
        const { result } = await browser.send<{ result: { value: boolean } }>('Runtime.evaluate', click, sessionId)
        return result.value
      }
      while (!(await isClicked())) await new Promise((resolve) => setTimeout(resolve, 50))
      return await report
    } finally {
      child.kill()
    }
  }

  async close(): Promise<void> {
    for (const child of this.children) {
      if (child.exitCode === null && child.signalCode === null) {
        child.kill('SIGKILL')
        await new Promise((resolve) => child.once('exit', resolve))
      }
    }
    this.server.close()
    this.server.closeAllConnections()
    removeProfile(this.folder)
  }
}

/** Chromium's DevTools protocol through two pipes: each message is JSON, and ends with a byte 0. */
class DevTools {
  private readonly waiting = new Map<number, (result: never) => void>()
  private rest = ''

  constructor(
    private readonly to: Writable,
    from: Readable,
  ) {
    from.setEncoding('utf8').on('data', (text: string) => {
      const messages = `${this.rest}${text}`.split('\0')
      this.rest = messages.pop()!
      for (const message of messages) {
        const { id, result } = JSON.parse(message)
        this.waiting.get(id)?.(result as never)
      }
    })
  }

  send<T>(method: string, params: object, sessionId?: string): Promise<T> {
    const id = this.waiting.size + 1
    return new Promise((resolve) => {
      this.waiting.set(id, resolve)
      this.to.write(`${JSON.stringify({ id, method, params, sessionId })}\0`)
    })
  }
}

/** Removes a folder where a browser was at work. Its helpers end after it and may write still: what they leave is no fault. */
export function removeProfile(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOTEMPTY') throw error
  }
}
