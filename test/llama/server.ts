import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, linkSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type Answer, type Ask, send } from './client.ts'
import { IN_ROOT, inRoot, ROOT, whyNoDebian } from './debian.ts'
import type { ModelSpec, Preset } from './gguf.mjs'
import { hasLlama, model } from './testbed.ts'

/**
 * Real llama-servers for tests: one compiled from the source of the fetched llama.cpp, and the newest that Debian has. They listen on
 * 127.0.0.1 only, on a free port.
 */

const FETCH = fileURLToPath(new URL('../../scripts/fetch-llama.mjs', import.meta.url))
const VENDOR = fileURLToPath(new URL('../../vendor', import.meta.url))
const BUNDLED = join(VENDOR, 'llama/server/llama-server')
const START_MS = 180_000

/** Where a llama-server comes from. */
export interface ServerSource {
  readonly name: string
  /** Why it cannot run here; undefined where it can. */
  readonly problem: string | undefined
  /** Fetches or compiles it where it is missing. */
  readonly prepare: () => void
  /** Where the files of its runs lie. */
  readonly folder: string
  /** A path in that folder as the server sees it. */
  readonly see: (path: string) => string
  /** A command that becomes the server, with its arguments. */
  readonly before: readonly string[]
  readonly program: string
}

const hasCompiler = () =>
  existsSync(BUNDLED) ||
  ['g++', 'make'].every((tool) => spawnSync(tool, ['--version'], { stdio: 'ignore' }).status === 0)

/** Of the same llama.cpp as the libraries of the other tests. Compiled once, in about a minute. */
export const bundledServer: ServerSource = {
  name: 'llama-server of the fetched source',
  problem: hasLlama() && hasCompiler() ? undefined : 'needs Linux on x64, cc, g++, make, git',
  prepare: () => {
    const lock = join(VENDOR, 'llama-server.lock')
    const { status, stderr } = spawnSync('flock', [lock, process.execPath, FETCH, '--server'], { encoding: 'utf8' })
    if (status !== 0) throw new Error(stderr)
  },
  folder: tmpdir(),
  see: (path) => path,
  before: [],
  program: BUNDLED,
}

/** Limit of {@link ServerSource.prepare} in a test's `beforeAll`, in ms: a busy machine compiles for many minutes. */
export const PREPARE_MS = 1_200_000

/** Debian's newest. */
export const debianServer = (): ServerSource => ({
  name: 'llama-server of Debian sid',
  problem: whyNoDebian(),
  prepare: () => undefined,
  folder: join(ROOT, 'tmp'),
  see: inRoot,
  before: IN_ROOT,
  program: 'llama-server',
})

/** Those that a suite is about. */
export const servers = (): readonly ServerSource[] => [bundledServer, debianServer()]

export interface ServerOptions {
  readonly model: Preset | ModelSpec
  /** A model that drafts for it. */
  readonly draft?: Preset | ModelSpec
  readonly args?: readonly (string | number)[]
  readonly env?: Readonly<Record<string, string>>
  /** The recorder's library: with it, the run is recorded to {@link Server.log}. */
  readonly recorder?: string
}

/** A server that runs. */
export interface Server {
  readonly url: string
  readonly pid: number
  /** The recorder's log, complete after {@link Server.stop}. */
  readonly log: string
  /** What it wrote to stdout and stderr so far. */
  readonly output: () => string
  readonly ask: (ask: Ask) => Promise<Answer>
  /** Waits until no slot works: the server still processes requests whose clients have left. */
  readonly untilIdle: () => Promise<void>
  /** Ends it as Ctrl+C does; its exit status. */
  readonly stop: () => Promise<number | null>
  /** Ends it, and removes its files. */
  readonly remove: () => Promise<void>
}

const freePort = () =>
  new Promise<number>((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number }
      server.close(() => resolve(port))
    })
  })

/** A file in another folder: a link, or a copy on another file system. */
const provide = (from: string, folder: string) => {
  const to = join(folder, basename(from))
  try {
    linkSync(from, to)
  } catch {
    copyFileSync(from, to)
  }
  return to
}

const untilUp = async (url: string, child: ChildProcess, output: () => string) => {
  const isUp = () =>
    fetch(`${url}/health`).then(
      ({ ok }) => ok,
      () => false,
    )
  for (const start = performance.now(); performance.now() - start < START_MS; await sleep(20)) {
    if (await isUp()) return
    if (child.exitCode !== null || child.signalCode !== null) break
  }
  child.kill('SIGKILL')
  throw new Error(`llama-server did not start:\n${output()}`)
}

const untilIdle = async (url: string) => {
  const isBusy = async () => {
    const slots = (await (await fetch(`${url}/slots`)).json()) as readonly { readonly is_processing: boolean }[]
    return slots.some(({ is_processing }) => is_processing)
  }
  while (await isBusy()) await sleep(20)
}

/** Starts a server and waits until it has loaded its model. */
export async function startServer(source: ServerSource, options: ServerOptions): Promise<Server> {
  source.prepare()
  const folder = mkdtempSync(join(source.folder, 'ggml2perfetto-server-'))
  const place = async (wanted: Preset | ModelSpec) => source.see(provide((await model(wanted)).path, folder))
  const log = join(folder, 'run.ggtrace')
  const { recorder } = options
  const preload = recorder && {
    LD_PRELOAD: source.see(provide(recorder, folder)),
    GGML2PERFETTO_OUT: source.see(log),
  }
  const environment = Object.entries({ ...preload, ...options.env }).map(([key, value]) => `${key}=${value}`)
  const port = await freePort()
  const draft = options.draft && ['-md', await place(options.draft)]
  const words = [
    '-m',
    await place(options.model),
    ...(draft ?? []),
    '--host',
    '127.0.0.1',
    '--port',
    port,
    '--no-webui',
  ]
  // `env`: only the server itself is recorded, not the programs that start it.
  const command = [...source.before, 'env', ...environment, source.program, ...words, ...(options.args ?? [])]
  const [first, ...rest] = command.map(String)
  const child = spawn(first!, rest, { stdio: ['ignore', 'pipe', 'pipe'] })
  let text = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
    })
  const ended = new Promise<number | null>((resolve) => child.on('close', resolve))
  const [url, output] = [`http://127.0.0.1:${port}`, () => text]
  const ask = (ask: Ask) => send(url, ask)
  await untilUp(url, child, output)
  const stop = async () => {
    child.kill('SIGINT')
    const timer = setTimeout(() => child.kill('SIGKILL'), START_MS)
    return await ended.finally(() => clearTimeout(timer))
  }
  const remove = async () => {
    await stop()
    rmSync(folder, { recursive: true })
  }
  return { url, pid: child.pid!, log, output, ask, untilIdle: () => untilIdle(url), stop, remove }
}
