import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { CHROMIUM, removeProfile } from '../browser.ts'

type Message = Readonly<{
  id?: number
  method?: string
  params?: Record<string, unknown>
  result?: unknown
  error?: unknown
}>

/** A page in Chromium, driven by its DevTools protocol over pipes. */
export class PageVisit {
  /** Messages of the console, and errors, of the page. */
  readonly complaints: string[] = []
  private readonly requestsById = new Map<string, string>()
  private readonly waiting = new Map<number, (message: Message) => void>()
  private readonly listeners = new Set<(message: Message) => void>()
  private nextId = 1
  private session = ''

  private constructor(
    private readonly child: ChildProcess,
    private readonly folder: string,
  ) {
    let rest = ''
    ;(child.stdio[4] as Readable).on('data', (piece) => {
      const messages = (rest + piece).split('\0')
      rest = messages.pop()!
      for (const text of messages) this.receive(JSON.parse(text))
    })
  }

  static async open(): Promise<PageVisit> {
    const folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-page-'))
    const args = [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-dev-shm-usage',
      '--hide-scrollbars',
      '--remote-debugging-pipe',
    ]
    const child = spawn(CHROMIUM!, [...args, `--user-data-dir=${folder}`, 'about:blank'], {
      stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'],
    })
    const visit = new PageVisit(child, folder)
    const { targetId } = await visit.send<{ targetId: string }>('Target.createTarget', { url: 'about:blank' })
    visit.session = (
      await visit.send<{ sessionId: string }>('Target.attachToTarget', { targetId, flatten: true })
    ).sessionId
    for (const domain of ['Page', 'Runtime', 'Log', 'Network']) await visit.send(`${domain}.enable`)
    return visit
  }

  /** Requests that the page made, and that its policy did not stop. */
  get requests(): string[] {
    return [...this.requestsById.values()]
  }

  send<T = unknown>(method: string, params: Record<string, unknown> = {}): Promise<T> {
    const id = this.nextId++
    const message = { id, method, params, ...(this.session ? { sessionId: this.session } : {}) }
    ;(this.child.stdio[3] as Writable).write(`${JSON.stringify(message)}\0`)
    return new Promise((resolve, reject) =>
      this.waiting.set(id, ({ result, error }) =>
        error ? reject(new Error(JSON.stringify(error))) : resolve(result as T),
      ),
    )
  }

  /** Opens a page, waits until it is loaded and painted, and returns the milliseconds. */
  async goto(url: string): Promise<number> {
    this.requestsById.clear()
    const loaded = this.event('Page.loadEventFired')
    const begin = performance.now()
    await this.send('Page.navigate', { url })
    await loaded
    await this.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')
    return performance.now() - begin
  }

  async evaluate<T>(expression: string): Promise<T> {
    const params = { expression, awaitPromise: true, returnByValue: true }
    const { result, exceptionDetails } = await this.send<{ result: { value: T }; exceptionDetails?: unknown }>(
      'Runtime.evaluate',
      params,
    )
    if (exceptionDetails) throw new Error(JSON.stringify(exceptionDetails))
    return result.value
  }

  async press(key: string): Promise<void> {
    for (const type of ['keyDown', 'keyUp'])
      await this.send('Input.dispatchKeyEvent', { type, key, code: key, windowsVirtualKeyCode: KEYS[key] ?? 0 })
  }

  async close(): Promise<void> {
    this.child.kill('SIGKILL')
    await new Promise((resolve) => this.child.once('exit', resolve))
    removeProfile(this.folder)
  }

  private event(method: string): Promise<void> {
    return new Promise((resolve) => {
      const listener = (message: Message) => {
        if (message.method !== method) return
        this.listeners.delete(listener)
        resolve()
      }
      this.listeners.add(listener)
    })
  }

  private receive(message: Message): void {
    if (message.id !== undefined) {
      this.waiting.get(message.id)?.(message)
      this.waiting.delete(message.id)
    }
    const { method, params } = message
    const request = params?.['requestId'] as string
    if (method === 'Network.requestWillBeSent')
      this.requestsById.set(request, (params!['request'] as { url: string }).url)
    if (method === 'Network.loadingFailed' && params!['blockedReason'] === 'csp') this.requestsById.delete(request)
    if (method === 'Runtime.exceptionThrown' || method === 'Runtime.consoleAPICalled' || method === 'Log.entryAdded')
      this.complaints.push(JSON.stringify(params))
    for (const listener of this.listeners) listener(message)
  }
}

const KEYS: Readonly<Record<string, number>> = { Tab: 9, Escape: 27, ArrowRight: 39, ArrowLeft: 37, End: 35, Home: 36 }
