import { stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { gzip, UsageError, writeFileWhole } from '../lib/cli.ts'
import { standardInput } from './inputs.ts'
import { io } from './io.ts'
import { type OutputKind, refuseLoss } from './mistakes.ts'
import { onSignals } from './signals.ts'
import { send } from './terminal.ts'

/**
 * Throws UsageError for an output that must not be written: a terminal (except texts), a folder, one of the inputs, or an existing file that
 * is no older output of this kind, unless `isForced`.
 */
export async function checkOutput(
  output: string,
  inputs: readonly string[],
  kind: OutputKind,
  isForced = false,
): Promise<void> {
  if (output === '-') {
    if (!io().stdout.isTTY || kind !== 'perfetto') return
    throw new UsageError('a trace is binary: not written to a terminal\nhint: -o <file>, or pipe it on')
  }
  const there = await stat(output).catch(() => undefined)
  if (there?.isDirectory()) {
    const example = join(output, `${basename(inputs[0]!)}.${kind === 'html' ? kind : 'pftrace'}`)
    throw new UsageError(`${output}: cannot write: is a directory\nhint: name a file, such as ${example}`)
  }
  if (!there?.isFile()) return
  for (const input of inputs) {
    const stats = input === '-' ? standardInput() : await stat(input).catch(() => undefined) // an error is reported when it is opened
    if (stats?.ino !== there.ino || stats.dev !== there.dev) continue
    throw new UsageError(`${output}: is the input itself, which would be lost\nhint: name another file with -o`)
  }
  if (!isForced) await refuseLoss(output, kind)
}

/**
 * Writes a trace, or something else, to a file (gzip'ed for `….gz`), which appears only when it is complete, or to standard output for `-`.
 */
export async function writeTrace<R>(
  output: string,
  pieces: AsyncGenerator<Uint8Array, R>,
  onInterrupt: () => void,
  what = 'trace',
): Promise<{ result: R; bytes: number }> {
  if (output === '-') return writeStandardOutput(pieces)
  const release = onSignals(`interrupted: no ${what} was written`, onInterrupt)
  try {
    return await writeFileWhole(output, output.endsWith('.gz') ? gzip(pieces) : pieces)
  } finally {
    release()
  }
}

async function writeStandardOutput<R>(pieces: AsyncGenerator<Uint8Array, R>): Promise<{ result: R; bytes: number }> {
  let bytes = 0
  try {
    let next = await pieces.next()
    for (; !next.done; next = await pieces.next()) {
      bytes += next.value.length
      await send(io().stdout, next.value)
    }
    return { result: next.value, bytes }
  } catch (error) {
    await pieces.return(undefined as R).catch(() => undefined)
    throw error
  }
}
