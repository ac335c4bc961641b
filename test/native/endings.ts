import { spawn } from 'node:child_process'
import type { ModelSpec, Preset } from '../llama/gguf.mjs'
import { endingsProgram, LIB, model } from '../llama/testbed.ts'

/** The ways in which a recorded program ends (endings.c). */

/** A program that never ends is killed after this time, which is a difference. */
export const TIMEOUT_MS = 120_000

/** How a program ends, and how many calls of it are recorded: a child's are not. */
export const WAYS: readonly (readonly [way: string, calls: number])[] = [
  ['return', 2],
  ['exit', 2],
  ['exit, objects of loading', 2],
  ['exit, objects of a graph', 2],
  ['_exit', 2],
  ['quick_exit', 2],
  ['abort', 2],
  ['pthread_exit', 2],
  ['pthread_exit, a thread works', 3],
  ['pthread_exit, a thread exits', 3],
  ['pthread_exit, SIGTERM', 3],
  ['pthread_exit, SIGTERM handler', 3],
  ['SYS_exit', 2],
  ...(process.getuid?.() === 0 ? [['chroot, pthread_exit', 3] as const] : []),
  ['exec', 2],
  ['SIGTERM', 2],
  ['SIGINT', 2],
  ['SIGKILL', 2],
  ['SIGSEGV', 2],
  ['SIGBUS', 2],
  ['SIGBUS, sent', 2],
  ['SIGBUS, handler', 2],
  ['daemon', 2],
]

export interface Ending {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly output: string
}

/** Runs endings.c's program, with a command before it that becomes it. */
export type Run = (
  way: string,
  env: Readonly<Record<string, string>>,
  before?: readonly string[],
) => Promise<Ending & { ms: number }>

export async function runnerOf(preset: Preset | ModelSpec): Promise<Run> {
  const command = [await endingsProgram(), LIB, (await model(preset)).path]
  return (way, env, before = []) =>
    new Promise<Ending & { ms: number }>((resolve, reject) => {
      const [program, ...args] = [...before, ...command] as [string, ...string[]]
      const child = spawn(program, [...args, way], {
        env: { ...process.env, ...env },
        stdio: ['ignore', 'pipe', 'pipe'],
        timeout: TIMEOUT_MS,
        killSignal: 'SIGKILL',
      })
      const start = performance.now()
      let output = ''
      for (const stream of [child.stdout, child.stderr]) {
        stream.setEncoding('utf8').on('data', (text: string) => {
          output += text
        })
      }
      child.on('error', reject)
      // A daemon's output ends later than the program that started it.
      child.on('close', (code, signal) => resolve({ code, signal, output, ms: performance.now() - start }))
    })
}

/** What must be the same with and without the recorder. Its two streams come in any order. */
export const endingOf = ({ code, signal, output }: Ending) => ({ code, signal, lines: output.split('\n').sort() })
