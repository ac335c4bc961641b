import { basename } from 'node:path'
import type { ArgumentsCamelCase, CommandModule, InferredOptionTypes } from 'yargs'
import {
  convert,
  fileSize,
  findView,
  type ServedTrace,
  type Summary,
  summarize,
  TraceServer,
  UsageError,
  VIEWER,
  type View,
  viewerUrl,
} from '../../lib/index.ts'
import { openBrowser } from '../browser.ts'
import { defaultOutput, type Opened, openInput } from '../inputs.ts'
import { DRAWING, READING, readOpTable } from '../options.ts'
import { onSignals } from '../output.ts'
import { type Progress, progressBar, SILENT, totalSize } from '../progress.ts'
import { describeLog, issueCount } from '../summary.ts'
import { note, print } from '../terminal.ts'
import { keptTrace, traceInFile } from '../trace-file.ts'
import { plural, size } from '../units.ts'
import { quoted, within } from './convert.ts'

const OPTIONS = {
  browser: { type: 'boolean', default: true, describe: 'Open the URL in the browser; --no-browser: only print it' },
  ...DRAWING,
  ...READING,
  quiet: {
    alias: 'q',
    type: 'boolean',
    default: false,
    describe: 'Only the URL: no progress bar, no summary, no advice; problems are still reported',
  },
} as const

interface Arguments extends InferredOptionTypes<typeof OPTIONS> {
  input: string
}

type Args = ArgumentsCamelCase<Arguments>

/** The largest trace that the UI is likely to load: it needs 2 to 4 times a trace's size, and a browser's WASM typically gets 2 GB. */
const BROWSER_BYTES = 2 ** 30 // source: Perfetto, docs/visualization/large-traces.md
/** The compression ratio of traces with gzip; the UI holds them decompressed. */
const GZIP_RATIO = 3

/** `ggml2perfetto open <trace or log>` */
export const openCommand: CommandModule<object, Arguments> = {
  command: 'open <input>',
  describe: `Show a trace or a log in ${VIEWER}, in your browser`,
  builder: (yargs) =>
    yargs
      .usage(
        `$0 open <trace or log>\n\nShows a trace, or a log converted to one, in ${VIEWER}: serves it once, on this ` +
          'machine (127.0.0.1:9001) and to pages of that site only, opens the browser, and ends when the trace was ' +
          'fetched. The first decode calls are in view; calls and workers are pinned to the top; a track names ' +
          'what made operators slow. The browser may ask whether the site may access this machine: allow it, the trace does not ' +
          'leave this machine.',
      )
      .positional('input', {
        type: 'string',
        demandOption: true,
        describe: "Trace (Perfetto's, …) or log, gzip'ed or not; - for stdin",
      })
      .options(OPTIONS)
      .example('$0 open run.ggtrace', 'no file remains')
      .example('$0 open run.bin --tokens 3..5 --detail full', 'three decode steps, with all arguments')
      .example('$0 open run.pftrace --no-browser', 'prints the URL, to open in a browser of your choice'),
  handler,
}

async function handler(args: Args): Promise<void> {
  const progress = args.quiet || !process.stderr.isTTY ? SILENT : progressBar(await totalSize([args.input]))
  const opened = await openInput(args.input, progress.onRead(0))
  const release = onSignals('interrupted: the trace was not fetched', progress.stop)
  const server = await TraceServer.listen()
  try {
    const trace = await traceFrom(opened, args, progress)
    const view = await viewOf(trace, opened)
    const { url, fetched } = server.offer(trace)
    await warnOfSize(trace.bytes, opened, args)
    await show(viewerUrl(url, view), trace.bytes, args)
    await fetched
    if (!args.quiet) await note('the browser has the trace')
  } finally {
    progress.stop()
    release()
    server.close()
  }
}

/** The input if it is a trace, else the trace converted from it, in a form that can be read more than once. */
async function traceFrom(opened: Opened, args: Args, progress: Progress): Promise<ServedTrace> {
  const { name, source } = opened
  const opTable = await readOpTable(args.opTable)
  if (isLog(opened, args)) {
    const { from, detail, opName, tokens, memory, flows, allThreads, osrt: osRuntime, quiet } = args
    const options = { from, opTable, detail, opName, tokens, memory, flows, allThreads, osRuntime }
    const pieces = within(args, [name], convert({ name, source }, options))
    const { trace, result } = await keptTrace(defaultOutput(args.input, 'perfetto'), pieces)
    progress.stop()
    await tellLog(name, result[0]!, quiet)
    return trace
  }
  refuseOptions(args, name)
  const isFile = args.input !== '-' && (await fileSize(args.input)) !== undefined
  if (!isFile) return (await keptTrace(name, source)).trace
  await source.return()
  return traceInFile(basename(args.input), args.input)
}

function isLog({ kind }: Opened, { from }: Args): boolean {
  return kind === 'log' || from !== undefined
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

/** A trace is shown unchanged. Throws UsageError for options that apply only to logs. */
function refuseOptions(args: Args, name: string): void {
  const given = (['tokens', 'detail', 'opName', 'memory', 'flows', 'opTable'] as const).find(
    (option) => args[option] !== undefined,
  )
  if (given === undefined) return
  const option = given.replace(/[A-Z]/g, (capital) => `-${capital.toLowerCase()}`)
  throw new UsageError(`--${option} is for logs; ${name} is a trace, or of no known log format`)
}

async function tellLog(name: string, summary: Summary, quiet: boolean): Promise<void> {
  const issues = issueCount(summary)
  if (!quiet) {
    const where = issues > 0 ? ['  the Issues track shows where'] : []
    await print([...describeLog(name, summary), ...where])
  } else if (issues > 0) await note(`warning: ${name}: ${plural(issues, 'issue')}, on the Issues track`)
}

/** Warns about a trace that is probably too large for the browser, and suggests alternatives. */
async function warnOfSize(bytes: number, opened: Opened, args: Args): Promise<void> {
  const asLog = isLog(opened, args)
  const held = bytes * (opened.isZipped && !asLog ? GZIP_RATIO : 1)
  if (held <= BROWSER_BYTES) return
  const name = quoted(args.input)
  const trace = asLog ? quoted(defaultOutput(args.input, 'perfetto')) : name
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

async function show(url: string, bytes: number, { browser, quiet }: Args): Promise<void> {
  await print(url)
  const failure = browser ? await openBrowser(url) : undefined
  if (failure !== undefined) await note(`no browser was opened: ${failure}; open the URL above yourself`)
  if (quiet) return
  const isElsewhere = process.env['SSH_CONNECTION'] !== undefined && (failure !== undefined || !browser)
  await note(
    [
      `serving the trace (${size(bytes)}) on 127.0.0.1:9001, once, to ${VIEWER} only; Ctrl-C ends`,
      ...(isElsewhere
        ? ['for a browser on another machine, first run there: ssh -L 9001:127.0.0.1:9001 <this one>']
        : []),
      'if the browser asks whether ui.perfetto.dev may access this device or the local network: allow it',
      ...(process.platform === 'darwin' ? ['Safari cannot fetch it; Chrome, Edge and Firefox can'] : []),
    ].join('\n'),
  )
}
