import { stat } from 'node:fs/promises'
import { basename, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { gzipSync } from 'node:zlib'
import type { ArgumentsCamelCase, CommandModule, InferredOptionTypes } from 'yargs'
import { type Analysis, UsageError, visible, WHAT_IF_SERIES, writeFileWhole } from '../../lib/cli.ts'
import { openBrowser } from '../browser.ts'
import { COMMANDS } from '../commands.ts'
import { CLOCKS, FORCE, flag, inputsOf, once, oneOf, READING, valued, whole } from '../options.ts'
import { checkOutput, writeTrace } from '../output.ts'
import { issueText, redacted } from '../report/issue.ts'
import { predictionsOf } from '../report/predictions.ts'
import { reportOutput, writeFleetReport, writeReport } from '../report-file.ts'
import { analysisOf } from '../stats/inputs.ts'
import { MACHINE, machineOf } from '../stats/machine.ts'
import { note } from '../terminal.ts'
import { size } from '../units.ts'
import { verdictLines } from '../verdict.ts'

const OPTIONS = {
  output: {
    alias: 'o',
    ...valued(once('--output'), 'The page; - for stdout', '<first input>.html in this folder; .md with --to issue'),
  },
  to: valued(
    oneOf('--to', ['html', 'issue']),
    "html | issue: Markdown with the parts of llama.cpp's form, and all figures without host, folders and prompts as .json.gz",
    'html',
  ),
  title: valued(once('--title'), 'Title of the page', 'the name of the model'),
  with: {
    type: 'string',
    array: true,
    requiresArg: true,
    describe:
      'Runs of the same program with other numbers of threads, by which others are predicted: logs of one run each, or Analyses',
  },
  call: valued(whole('--call', 0), 'The call whose memory and graph are shown', 'a decode call'),
  open: flag('Open the page in the browser'),
  ...FORCE,
  ...MACHINE,
  ...CLOCKS,
  ...READING,
} as const

interface Arguments extends InferredOptionTypes<typeof OPTIONS> {
  inputs: string[]
}

/** `ggml2perfetto report <logs…> -o report.html` */
export const reportCommand: CommandModule<object, Arguments> = {
  ...COMMANDS.report,
  builder: (yargs) =>
    yargs
      .positional(
        'inputs',
        inputsOf(
          "Logs of one run, as for convert, and its model (GGUF or config.json), or an Analysis that `stats --json --series calls,memory,offsets,graph` wrote; gzip'ed or not; - for stdin; or a dataset that export wrote",
        ),
      )
      .options(OPTIONS)
      .example('$0 report run.ggtrace --open', 'writes run.ggtrace.html, and opens it')
      .example('$0 report run.ggtrace model.gguf --peaks measure -o run.html', 'with the roof of this machine')
      .example('$0 report t1.ggtrace --with t2.ggtrace', 'with predictions for other numbers of threads')
      .example('$0 report run.ggtrace --to issue', 'writes run.ggtrace.md and run.ggtrace.json.gz')
      .example('$0 report dataset/ -o fleet.html', 'many runs: builds, hosts, outliers (docs/fleet.md)')
      .example('$0 compare old/ --with new/ --report compared.html', 'two sides'),
  handler,
}

const isFolder = async (path: string) => (await stat(path).catch(() => undefined))?.isDirectory() ?? false

async function handler(args: ArgumentsCamelCase<Arguments>): Promise<void> {
  const { inputs, title, call, with: paths = [] } = args
  const isIssue = args.to === 'issue'
  const output = args.output ?? reportOutput(inputs[0]!, isIssue ? 'md' : 'html')
  await checkOutput(output, [...inputs, ...paths], isIssue ? 'issue' : 'html', args.force)
  const isDataset = await isFolder(inputs[0]!)
  if (paths.length > 0 && (isIssue || isDataset)) throw new UsageError('--with: only for the page of one run')
  if (isDataset) {
    if (inputs.length > 1)
      throw new UsageError(`${inputs[0]}: a dataset is a report's only input, found ${inputs.length} inputs`)
    await writeFleetReport(inputs[0]!, output, title)
    return args.open ? openPage(output) : undefined
  }
  if (isIssue) return writeIssue(redacted(await analysisOf(args, await machineOf(args))), output)
  const analysis = await analysisOf(args, {
    series: ['calls', 'memory', 'offsets', 'graph', 'steps'],
    call,
    ...(await machineOf(args)),
  })
  const others: Analysis[] = []
  for (const path of paths) others.push(await analysisOf({ ...args, inputs: [path] }, { series: WHAT_IF_SERIES }))
  if (output !== '-') await noteVerdict(analysis)
  await writeReport(analysis, output, title, predictionsOf(analysis, others))
  if (args.open) await openPage(output)
}

const noteVerdict = ({ verdict, inputs }: Analysis) =>
  note(
    verdictLines(
      verdict,
      inputs.map(({ name }) => name),
    ),
  )

/** The most bytes that are attached to an issue. */
const ATTACHED_MAX = 1e6

/** Writes the text of an issue, and all figures to another file in its folder. */
async function writeIssue(analysis: Analysis, output: string): Promise<void> {
  if (output !== '-') await noteVerdict(analysis)
  const figures = gzipSync(JSON.stringify(analysis))
  const beside = output === '-' || figures.length > ATTACHED_MAX ? undefined : `${output.replace(/\.md$/, '')}.json.gz`
  if (beside !== undefined) {
    await writeFileWhole(beside, only(figures))
    await note(`wrote ${beside} (${size(figures.length)}), to attach`)
  }
  const text = new TextEncoder().encode(`${visible(issueText(analysis, beside && basename(beside)))}\n`)
  await writeTrace(output, only(text), () => undefined, 'issue')
  if (output !== '-') await note(`wrote ${output}: look at it before you send it`)
}

async function* only(bytes: Uint8Array): AsyncGenerator<Uint8Array, void> {
  yield bytes
}

async function openPage(output: string): Promise<void> {
  if (output === '-') throw new UsageError('--open: expected a file, found -o -')
  const url = pathToFileURL(resolve(output)).href
  const failure = await openBrowser(url)
  if (failure !== undefined) await note(`no browser was opened: ${failure}; open ${url} yourself`)
}
