import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from '@jest/globals'
import { NODE } from './helpers.ts'

/** Commands that own processes, what these are, and what becomes of both. */

/** A command has so long to begin, and to end, on a machine that is busy, in ms. */
const PATIENCE_MS = 60_000
const TICK_MS = 20

/** What a command has as a descendant, and what follows when that is killed. */
export interface Role {
  /** Of its arguments, with blanks between them. */
  readonly is: RegExp
  /** The command ends, with this code or signal; else it continues until SIGINT. */
  readonly ends?: number | NodeJS.Signals
  /** If it continues, its code after SIGINT, by default that of the command. */
  readonly code?: number | NodeJS.Signals
  /** What the command then prints. */
  readonly says?: RegExp
  /** It is not the command's: it remains after it. */
  readonly isFree?: boolean
}

/** A command, what it owns, and how it ends. */
export interface Mode {
  readonly args: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** Lines for its standard input. */
  readonly input?: readonly object[]
  /** By name, all that the command has as descendants. */
  readonly roles: Readonly<Record<string, Role>>
  /** What it does before it is disturbed. */
  readonly hasBegun: (running: Command, found: ReadonlyMap<string, number>) => boolean
  /** Exit code after SIGINT and SIGTERM. */
  readonly codes: readonly [sigint: number | 'SIGINT', sigterm: number | 'SIGTERM']
  /** Files that can be read afterwards: the first one also after the command was killed. */
  readonly logs: readonly string[]
}

const textOf = (path: string) => {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return '' // it has ended
  }
}

const commandOf = (pid: number) => textOf(`/proc/${pid}/cmdline`).replaceAll('\0', ' ').trim()

function stateOf(pid: number): { readonly state: string; readonly parent: number } {
  const text = textOf(`/proc/${pid}/stat`)
  const [state = '', parent] = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return { state, parent: Number(parent) }
}

/** Does it exist, and has not ended? */
export const isThere = (pid: number) => !/^[ZX]?$/.test(stateOf(pid).state)

function descendantsOf(pid: number): number[] {
  const pids = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
  const parents = pids.map((of) => stateOf(of).parent)
  const found = [pid]
  for (const parent of found) found.push(...pids.filter((_, i) => parents[i] === parent))
  return found.slice(1).filter(isThere)
}

/** What a process has written to its standard output, a file without a name. */
export const writtenBy = (pid: number | undefined) => textOf(`/proc/${pid}/fd/1`)

async function until(what: string, is: () => boolean, more: () => string): Promise<void> {
  for (const start = performance.now(); !is(); await sleep(TICK_MS))
    if (performance.now() - start > PATIENCE_MS)
      throw new Error(`${what}: not within ${PATIENCE_MS / 1000} s: ${more()}`)
}

/** A command that runs in a folder of its own, in which its temporary files are, too. */
export class Command {
  /** What it has printed. */
  output = ''
  private readonly child: ChildProcess
  /** All that it had, by process. */
  private readonly seen = new Map<number, string>()

  constructor(
    private readonly mode: Mode,
    readonly folder: string,
  ) {
    mkdirSync(join(folder, 'tmp'), { recursive: true })
    const [node, ...flags] = NODE
    this.child = spawn(node, [...flags, ...mode.args], {
      cwd: folder,
      env: { ...process.env, TMPDIR: join(folder, 'tmp'), ...mode.env },
      stdio: 'pipe',
      detached: true, // no terminal, whoever runs the tests
    })
    for (const stream of [this.child.stdout!, this.child.stderr!])
      stream.setEncoding('utf8').on('data', (text: string) => {
        this.output += text
      })
    this.child.stdin!.on('error', () => undefined)
    for (const line of mode.input ?? []) this.child.stdin!.write(`${JSON.stringify({ jsonrpc: '2.0', ...line })}\n`)
  }

  private get isRunning(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null
  }

  private roleOf(command: string): string | undefined {
    return Object.keys(this.mode.roles).find((name) => this.mode.roles[name]!.is.test(command))
  }

  /** Its descendants by role. */
  private now(): Map<string, number> {
    const found = new Map<string, number>()
    for (const pid of descendantsOf(this.child.pid!)) {
      const command = commandOf(pid)
      this.seen.set(pid, command)
      found.set(this.roleOf(command) ?? command, pid)
    }
    return found
  }

  /** Waits until it has begun, and has all that it is to have, and nothing else. Returns the processes by their roles. */
  async begins(): Promise<ReadonlyMap<string, number>> {
    const wanted = Object.keys(this.mode.roles).sort().join()
    const has = () => [...this.now().keys()].sort().join()
    const isBegun = () => {
      expect([this.isRunning, this.output]).toEqual([true, this.output])
      return has() === wanted && this.mode.hasBegun(this, this.now())
    }
    await until(`it has ${wanted}`, isBegun, () => `${has()}; it printed ${this.output}`)
    return this.now()
  }

  /** Sends a signal to it, or to one of its processes. */
  send(signal: NodeJS.Signals, pid = this.child.pid!): void {
    process.kill(pid, signal)
  }

  /** How it ended: its code, or signal. */
  async ends(): Promise<number | string | null> {
    await until(
      'it ends',
      () => !this.isRunning,
      () => this.output,
    )
    return this.child.exitCode ?? this.child.signalCode
  }

  async says(what: RegExp): Promise<void> {
    await until(
      `it prints ${what}`,
      () => what.test(this.output),
      () => this.output,
    )
  }

  /** Waits until nothing remains of what it owned; ends what it did not own. */
  async leavesNoProcess(): Promise<void> {
    const left = () => [...this.seen].filter(([pid, command]) => isThere(pid) && commandOf(pid) === command)
    const isFree = (command: string) => this.mode.roles[this.roleOf(command) ?? '']?.isFree === true
    const owned = () => left().filter(([, command]) => !isFree(command))
    await until(
      'nothing remains',
      () => owned().length === 0,
      () => owned().join('; '),
    )
    for (const [pid] of left()) this.send('SIGKILL', pid)
  }

  /** Ends it and all that it had, where a test failed. */
  remove(): void {
    for (const [pid, command] of [[this.child.pid!, ''] as const, ...this.seen])
      if (command === '' ? this.isRunning : isThere(pid) && commandOf(pid) === command) this.send('SIGKILL', pid)
  }

  /** Names of files that have them for a moment. */
  temporaryFiles(): string[] {
    const names = readdirSync(this.folder, { recursive: true, encoding: 'utf8' })
    return names.filter((name) => /(^|\/)\.|\.tmp$|\.messages$|^tmp\/./.test(name))
  }

  has(file: string): boolean {
    return existsSync(join(this.folder, file))
  }
}
