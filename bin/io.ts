import { AsyncLocalStorage } from 'node:async_hooks'
import type { StdioOptions } from 'node:child_process'

type Stream = NodeJS.WritableStream & { readonly isTTY?: boolean; readonly columns?: number }

/** What a run of the CLI has of its process. `process` itself is one; others can share a process. */
export interface Io {
  readonly argv: readonly string[]
  readonly env: NodeJS.ProcessEnv
  readonly stdin: NodeJS.ReadableStream & { readonly isTTY?: boolean; readonly fd?: number }
  readonly stdout: Stream
  readonly stderr: Stream
  /** The streams of a program that is recorded; by default those of the process. */
  readonly stdio?: StdioOptions
  exitCode?: number | string | null | undefined
}

const current = new AsyncLocalStorage<Io>()

/** Calls `run`, in which `io()` is `io`. */
export const withIo = <R>(io: Io, run: () => R): R => current.run(io, run)

/** Of the run that asks: it is not handed through all calls, as few of them print. */
export const io = (): Io => current.getStore() ?? process
