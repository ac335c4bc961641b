import { fileSize } from '../lib/cli.ts'
import { io } from './io.ts'
import { size } from './units.ts'

/** Shorter conversions have no progress bar, which would only flash. */
const PATIENCE_MS = 250

/** How much of the inputs has been read, shown on standard error. */
export interface Progress {
  /** Returns a function that takes the number of bytes read so far of the input with that index. */
  onRead(input: number): (bytes: number) => void
  /** Some inputs are read twice: called with their indexes before their first reading, and with undefined after it. */
  onFirstReading(inputs: readonly number[] | undefined): void
  /** Removes the bar from the screen. */
  stop(): void
}

/** Progress of reading these inputs, if it can be shown. Throws UsageError for unreadable files. */
export async function progressOf(paths: readonly string[], quiet: boolean): Promise<Progress> {
  const sizes = await Promise.all(paths.map((path) => (path === '-' ? undefined : fileSize(path))))
  if (!quiet && io().stderr.isTTY) return progressBar(sizes, await import('cli-progress'))
  return { onRead: () => () => undefined, onFirstReading: () => undefined, stop: () => undefined }
}

/** A bar for reading inputs of these sizes; if one is not known (a pipe), only the bytes read and the rate. */
function progressBar(
  sizes: readonly (number | undefined)[],
  { Presets, SingleBar }: typeof import('cli-progress'),
): Progress {
  let total = sizes.includes(undefined) ? undefined : sizes.reduce((sum: number, bytes) => sum + bytes!, 0)
  const bar = new SingleBar(
    {
      stream: io().stderr,
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
  /** By input, and by input of a first reading. */
  const [read, readFirst]: [number[], number[]] = [[], []]
  let reading = read
  return {
    onFirstReading(inputs) {
      reading = inputs ? readFirst : read
      if (total === undefined || !inputs) return
      for (const input of inputs) total += sizes[input]!
      if (bar.isActive) bar.setTotal(total)
    },
    onRead: (input) => (bytes) => {
      reading[input] = bytes
      const ms = performance.now() - startedAt
      if (ms < PATIENCE_MS) return
      const sum = [...read, ...readFirst].reduce((sum, bytes) => sum + (bytes ?? 0), 0)
      const shown = { done: size(sum), all: size(total ?? sum), rate: size((1000 * sum) / ms) }
      if (bar.isActive) bar.update(sum, shown)
      else bar.start(total ?? sum, sum, shown)
    },
    stop: () => bar.stop(),
  }
}
