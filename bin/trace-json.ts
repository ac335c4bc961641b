import { openTrace, toChromeJson, VIEWER } from '../lib/cli.ts'
import { type Opened, openInput } from './inputs.ts'
import { writeTrace } from './output.ts'
import { print, quoted } from './terminal.ts'
import { size } from './units.ts'

/** A trace that is to be written as Chrome's JSON; undefined for logs, and for standard input, which can be read only once. */
export async function traceForJson(inputs: readonly string[]): Promise<Opened | undefined> {
  const [path] = inputs
  if (path === undefined || inputs.length > 1 || path === '-') return undefined
  const opened = await openInput(path)
  if (opened.kind === 'trace') return opened
  await opened.source.return()
  return undefined
}

/** Writes a trace as Chrome's JSON. */
export async function writeAsJson({ source }: Opened, output: string, isQuiet: boolean | undefined): Promise<void> {
  const trace = await openTrace(source)
  try {
    const { bytes } = await writeTrace(output, piecesOf(trace), () => undefined)
    if (isQuiet || output === '-') return
    const [[scheduled]] = trace.query('select count(*) from sched_slice').rows as [[number]]
    const leftOut = scheduled > 0 ? [`left out: ${scheduled} slices of CPUs, for which Chrome's JSON has no place`] : []
    await print([
      ...leftOut,
      `wrote ${output} (${size(bytes)}): drag it into chrome://tracing or ${VIEWER}, or: ggml2perfetto open ${quoted(output)}`,
    ])
  } finally {
    trace.close()
  }
}

async function* piecesOf(trace: Parameters<typeof toChromeJson>[0]): AsyncGenerator<Uint8Array, void> {
  yield* toChromeJson(trace)
}
