import { Presets, SingleBar } from 'cli-progress'
import { fileSize } from '../lib/index.ts'
import { size } from './units.ts'

/** Shorter conversions have no progress bar, which would only flash. */
const PATIENCE_MS = 250

/** How much of the inputs has been read, shown on standard error. */
export interface Progress {
  /** Returns a function that takes the number of bytes read so far of the input with that index. */
  onRead(input: number): (bytes: number) => void
  /** Removes the bar from the screen. */
  stop(): void
}

/** Progress of reading these inputs, if it can be shown. Throws UsageError for unreadable files. */
export async function progressOf(paths: readonly string[], quiet: boolean): Promise<Progress> {
  const total = await totalSize(paths)
  if (!quiet && process.stderr.isTTY) return progressBar(total)
  return { onRead: () => () => undefined, stop: () => undefined }
}

/** The size of all inputs together, or undefined if one of them is a pipe. */
async function totalSize(paths: readonly string[]): Promise<number | undefined> {
  const sizes = await Promise.all(paths.map((path) => (path === '-' ? undefined : fileSize(path))))
  return sizes.reduce<number | undefined>(
    (sum, bytes) => (sum === undefined || bytes === undefined ? undefined : sum + bytes),
    0,
  )
}

/** A bar for reading `total` bytes; without a total, only the bytes read and the rate. */
function progressBar(total: number | undefined): Progress {
  const bar = new SingleBar(
    {
      stream: process.stderr,
      format:
        total === undefined
          ? 'reading {done} · {rate}/s'
          : 'reading {bar} {percentage}% · {done} of {all} · {rate}/s · {eta_formatted} left',
      barsize: 24,
      clearOnComplete: true,
      hideCursor: true,
      // Our own handler of signals also removes incomplete files.
      gracefulExit: false,
    },
    Presets.shades_classic,
  )
  const startedAt = performance.now()
  const read: number[] = []
  return {
    onRead: (input) => (bytes) => {
      read[input] = bytes
      const ms = performance.now() - startedAt
      if (ms < PATIENCE_MS) return
      const sum = read.reduce((sum, bytes) => sum + (bytes ?? 0), 0)
      const shown = { done: size(sum), all: size(total ?? sum), rate: size((1000 * sum) / ms) }
      if (bar.isActive) bar.update(sum, shown)
      else bar.start(total ?? sum, sum, shown)
    },
    stop: () => bar.stop(),
  }
}
