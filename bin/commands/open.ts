import { hostname } from 'node:os'
import { basename } from 'node:path'
import type { ArgumentsCamelCase, CommandModule, InferredOptionTypes } from 'yargs'
import {
  type ConvertOptions,
  convert,
  fileSize,
  findView,
  type Input,
  type ServedTrace,
  summarize,
  TraceServer,
  UsageError,
  VIEWER,
  type View,
  viewerUrl,
} from '../../lib/cli.ts'
import { openBrowser } from '../browser.ts'
import { COMMANDS } from '../commands.ts'
import { defaultOutput, inputName, type Opened, openInput } from '../inputs.ts'
import { io } from '../io.ts'
import {
  CLOCKS,
  conversionOf,
  DRAWING,
  flag,
  inputsOf,
  READING,
  refuseDrawing,
  seldom,
  valued,
  whole,
} from '../options.ts'
import { type Progress, progressOf } from '../progress.ts'
import { onSignals } from '../signals.ts'
import { describeLogs, warnOfIssues } from '../summary.ts'
import { note, print, quoted } from '../terminal.ts'
import { noteThinned } from '../thinned.ts'
import { keptTrace, traceInFile } from '../trace-file.ts'
import { duration, size } from '../units.ts'
import { verdictOfLogs } from '../verdict.ts'
import { logOf, within } from './convert.ts'

/** The option for opening a browser. */
export const BROWSER = {
  browser: { ...flag('Open the URL in the browser; --no-browser: only print it'), default: true },
} as const

/** Seconds that it waits by default. */
export const WAIT_S = 600

/** The option for how long to wait. */
export const WAIT = {
  wait: seldom(valued(whole('--wait'), 'Where no browser is opened: seconds until it ends', `${WAIT_S}`)),
} as const

const OPTIONS = {
  ...BROWSER,
  ...WAIT,
  ...DRAWING,
  ...CLOCKS,
  ...READING,
  quiet: { alias: 'q', ...flag('Only the URL: no progress bar, no summary, no advice; problems are still reported') },
} as const

interface Arguments extends InferredOptionTypes<typeof OPTIONS> {
  inputs: string[]
}

type Args = ArgumentsCamelCase<Arguments>

/** The largest trace that the UI is likely to load: it needs 2 to 4 times a trace's size, and a browser's WASM typically gets 2 GB. */
const BROWSER_BYTES = 2 ** 30 // source: Perfetto, docs/visualization/large-traces.md
/** The compression ratio of traces with gzip; the UI holds them decompressed. */
const GZIP_RATIO = 3

/** Programs that open a URL on Windows accept no longer one. */
const URL_CHARS_OF_WINDOWS = 2040
const isShortOnly = () => process.platform === 'win32' || Boolean(io().env['WSL_DISTRO_NAME'])

/** `ggml2perfetto open <trace or logs…>` */
export const openCommand: CommandModule<object, Arguments> = {
  ...COMMANDS.open,
  builder: (yargs) =>
    yargs
      .usage(
        `$0 open <trace or logs>\n\nShows a trace, or logs converted to one, in ${VIEWER}: serves it once, on this ` +
          'machine (127.0.0.1:9001; if that is in use, to a page of its own that passes it there) and to pages of that site only, opens the browser, and ' +
          'ends when the trace was fetched. A workspace has the rows of the run, and the slowest decode calls are in view; a track names what made operators slow, ' +
          'a table below what made the run slow. The browser may ask whether the site may access this machine: allow it, the trace does not ' +
          'leave this machine.',
      )
      .positional('inputs', inputsOf("A trace, or logs of one run as for convert; gzip'ed or not; - for stdin"))
      .options(OPTIONS)
      .example('$0 open run.ggtrace', 'no file remains')
      .example('$0 open run.ggtrace run.sched.dat', 'a log and its scheduler events, on one timeline')
      .example('$0 open run.bin --tokens 3..5 --detail full', 'three decode steps, with all arguments')
      .example('$0 open run.pftrace --no-browser', 'prints the URL, to open in a browser of your choice'),
  handler,
}

async function handler(args: Args): Promise<void> {
  const { inputs, browser, quiet, wait } = args
  if (inputs.filter((input) => input === '-').length > 1) throw new UsageError('stdin (-) can be read only once')
  const showing = { inputs, browser, quiet, wait: wait ?? WAIT_S, say: print }
  const options = await conversionOf(args)
  const progress = await progressOf(inputs, quiet)
  if (inputs.length > 1) {
    const logs = inputs.map((input, i) => logOf(input, progress.onRead(i)))
    return showLogs(showing, logs, options, progress)
  }
  const opened = await openInput(inputs[0]!, progress.onRead(0))
  const { name, source, kind } = opened
  if (kind === 'log' || args.from !== undefined) {
    return showLogs(showing, [{ name, source }], options, progress)
  }
  await show(showing, progress, async () => {
    const trace = await traceFrom(opened, args)
    return { trace, view: await viewOf(trace, opened), heldBytes: trace.bytes * (opened.isZipped ? GZIP_RATIO : 1) }
  })
}

/** What is shown, and how. */
interface Showing {
  /** Paths of the trace or the logs. */
  readonly inputs: readonly string[]
  /** Opens a browser; else the URL is only printed. */
  readonly browser: boolean
  readonly quiet: boolean
  /** Seconds after which it ends where no browser was opened. */
  readonly wait: number
  /** Prints the URL, and what is in the logs. */
  readonly say: typeof print
  /** The logs were described before. */
  readonly isDescribed?: boolean
}

interface Shown {
  readonly trace: ServedTrace
  readonly view: View
  /** Decompressed bytes, about. */
  readonly heldBytes: number
}

/** Serves what `make` returns, once, and opens the browser; ends when the trace was fetched. */
async function show(showing: Showing, progress: Progress, make: () => Promise<Shown>, isLog = false): Promise<void> {
  const release = onSignals('interrupted: the trace was not fetched', progress.stop)
  let server: TraceServer | undefined
  try {
    server = await TraceServer.listen()
    const { trace, view, heldBytes } = await make()
    const { url, ownUrl, fetched } = server.offer(trace)
    await warnOfSize(trace.bytes, heldBytes, showing.inputs, isLog)
    const { isPosting, shortUrl } = server
    const viewerOf = (traceUrl?: string) => viewerUrl(traceUrl, view, ...(isShortOnly() ? [URL_CHARS_OF_WINDOWS] : []))
    const urlOf = (address: string) => (isPosting ? address : viewerOf(address))
    server.leadTo(isPosting ? viewerOf() : urlOf(url))
    const urls = { url: urlOf(url), ownUrl: urlOf(ownUrl), shortUrl, isPosting }
    let onFailure!: (failure: string) => void
    const failed = new Promise<void>((resolve) => {
      onFailure = (failure) => void note(`${failure}; open the URL above yourself`).then(resolve)
    })
    const isByHand = await printUrls(urls, trace.bytes, showing, onFailure)
    const waited = (isByHand ? Promise.resolve() : failed).then(() => later(showing.wait))
    const isFetched = await Promise.race([fetched.then(() => true), waited])
    if (!isFetched) await note(`ended: no browser fetched the trace in ${duration(showing.wait * 1e9)}`)
    else if (!showing.quiet) await note('the browser has the trace')
  } finally {
    progress.stop()
    release()
    server?.close()
  }
}

/** What to do where no browser can be opened here. */
const byHand = (url: string, seconds: number) => [
  `shorter: ${url}, which leads there`,
  `for a browser on another machine, first run there: ssh -L ${new URL(url).port}:${new URL(url).host} ${hostname()}`,
  `this ends when the browser has the trace, or after ${duration(seconds * 1e9)} (--wait)`,
]

const later = (seconds: number) =>
  new Promise<false>((resolve) => setTimeout(resolve, Math.min(seconds * 1000, 2 ** 31 - 1), false).unref())

/** Shows logs, converted to a trace of which no file remains. */
async function showLogs(showing: Showing, logs: Input[], options: ConvertOptions, progress: Progress): Promise<void> {
  const { inputs } = showing
  const names = inputs.map(inputName)
  const make = async () => {
    const { onFirstReading } = progress
    const pieces = within(options, names, convert(logs, { ...options, findings: true, grouped: true, onFirstReading }))
    const { trace, result } = await keptTrace(defaultOutput(inputs[0]!, 'perfetto'), pieces)
    progress.stop()
    await noteThinned(names, result, trace.bytes)
    if (!showing.isDescribed) {
      await (showing.quiet
        ? warnOfIssues(names, result)
        : showing.say([...verdictOfLogs(result, inputs), ...describeLogs(names, result)]))
    }
    return { trace, view: await findView(trace.read()), heldBytes: trace.bytes }
  }
  await show(showing, progress, make, true)
}

/** Shows logs that were just recorded, and described: the URL goes to stderr, because stdout is the program's. */
export async function showRecorded(
  inputs: readonly string[],
  how: Pick<Showing, 'browser' | 'quiet' | 'wait'>,
): Promise<void> {
  const progress = await progressOf(inputs, how.quiet)
  const logs = inputs.map((input, i) => logOf(input, progress.onRead(i)))
  await showLogs({ ...how, inputs, say: note, isDescribed: true }, logs, {}, progress)
}

/** The trace, in a form that can be read more than once. */
async function traceFrom({ name, source }: Opened, args: Args): Promise<ServedTrace> {
  refuseDrawing(args, name)
  const [path] = args.inputs as [string]
  const isFile = path !== '-' && (await fileSize(path)) !== undefined
  if (!isFile) return (await keptTrace(name, source)).trace
  await source.return()
  return traceInFile(basename(path), path)
}

async function viewOf(trace: ServedTrace, { name, head }: Opened): Promise<View> {
  try {
    return await findView(trace.read())
  } catch (error) {
    // An unknown format: the library's error lists the formats and shows the first bytes.
    await summarize({ name, source: head })
    throw error
  }
}

/** Warns about a trace that is probably too large for the browser, and suggests alternatives. */
async function warnOfSize(bytes: number, held: number, inputs: readonly string[], asLog: boolean): Promise<void> {
  if (held <= BROWSER_BYTES) return
  const name = inputs.map(quoted).join(' ')
  const trace = asLog ? quoted(defaultOutput(inputs[0]!, 'perfetto')) : name
  await note(
    [
      `warning: the trace is large (${size(held)}${held === bytes ? '' : ' decompressed, about'}): ` +
        `a browser can hold some ${size(BROWSER_BYTES)}`,
      ...(asLog ? [`hint: show less of it: ggml2perfetto open ${name} --tokens 0..8`] : []),
      "hint: or let Perfetto's native trace_processor (https://get.perfetto.dev/trace_processor) hold it for the UI:",
      ...(asLog ? [`  ggml2perfetto ${name} -o ${trace}`] : []),
      `  trace_processor server http ${trace}   # then open ${VIEWER}, and let it use the trace_processor`,
    ].join('\n'),
  )
}

/** Prints the URL, and opens a browser; returns whether it has to be opened by hand. `onFailure` reports that the browser failed later. `ownUrl`: the one for a browser of this user, as all users see the arguments of the program that opens it. */
async function printUrls(
  { url, ownUrl, shortUrl, isPosting }: Urls,
  bytes: number,
  { browser, quiet, wait, say }: Showing,
  onFailure: (failure: string) => void,
): Promise<boolean> {
  await say(url)
  // A browser on Windows, outside of this Linux, has no user here.
  const isOnWindows = Boolean(io().env['WSL_DISTRO_NAME'])
  const failure = browser ? await openBrowser(isOnWindows ? url : ownUrl, onFailure) : undefined
  if (failure !== undefined) await note(`no browser was opened: ${failure}; open the URL above yourself`)
  const isByHand = !browser || failure !== undefined
  if (quiet) return isByHand
  const { host } = new URL(shortUrl)
  const isServed = isPosting
    ? `port 9001 is in use: serving the trace (${size(bytes)}) on ${host}, once, to the page above, whose button passes it to ${VIEWER}; Ctrl-C ends`
    : `serving the trace (${size(bytes)}) on ${host}, once, to ${VIEWER} only; Ctrl-C ends`
  const permission = [
    'if the browser asks whether ui.perfetto.dev may access this device or the local network: allow it',
    ...(process.platform === 'darwin' ? ['Safari cannot fetch it; Chrome, Edge and Firefox can'] : []),
  ]
  await note([isServed, ...(isByHand ? byHand(shortUrl, wait) : []), ...(isPosting ? [] : permission)].join('\n'))
  return isByHand
}

interface Urls extends Readonly<Record<'url' | 'ownUrl' | 'shortUrl', string>> {
  readonly isPosting: boolean
}
