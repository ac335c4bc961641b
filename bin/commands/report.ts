import { stat } from 'node:fs/promises'
import type { ArgumentsCamelCase, CommandModule, InferredOptionTypes } from 'yargs'
import { UsageError } from '../../lib/cli.ts'
import { CLOCKS, FORCE, inputsOf, once, READING, valued, whole } from '../options.ts'
import { checkOutput } from '../output.ts'
import { reportOutput, writeFleetReport, writeReport } from '../report-file.ts'
import { analysisOf } from '../stats/inputs.ts'
import { MACHINE, machineOf } from '../stats/machine.ts'

const OPTIONS = {
  output: {
    alias: 'o',
    ...valued(once('--output'), 'The page; - for stdout', '<first input>.html in this folder'),
  },
  title: valued(once('--title'), 'Title of the page', 'the name of the model'),
  call: valued(whole('--call', 0), 'The call whose memory and graph are shown', 'a decode call'),
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
  command: 'report <inputs..>',
  describe: 'Write a report: one HTML page with findings and figures, which needs no network',
  builder: (yargs) =>
    yargs
      .positional(
        'inputs',
        inputsOf(
          "Logs of one run, as for convert, and its model (GGUF or config.json), or an Analysis that `stats --json --series calls,memory,offsets,graph` wrote; gzip'ed or not; - for stdin; or a dataset that export wrote",
        ),
      )
      .options(OPTIONS)
      .example('$0 report run.ggtrace', 'writes run.ggtrace.html')
      .example('$0 report run.ggtrace model.gguf --peaks measure -o run.html', 'with the roof of this machine')
      .example('$0 report dataset/ -o fleet.html', 'many runs: builds, hosts, outliers (docs/fleet.md)')
      .example('$0 compare old/ --with new/ --report compared.html', 'two sides'),
  handler,
}

const isFolder = async (path: string) => (await stat(path).catch(() => undefined))?.isDirectory() ?? false

async function handler(args: ArgumentsCamelCase<Arguments>): Promise<void> {
  const { inputs, title, call } = args
  const output = args.output ?? reportOutput(inputs[0]!)
  await checkOutput(output, inputs, 'html', args.force)
  if (await isFolder(inputs[0]!)) {
    if (inputs.length > 1)
      throw new UsageError(`${inputs[0]}: a dataset is a report's only input, found ${inputs.length} inputs`)
    return writeFleetReport(inputs[0]!, output, title)
  }
  const analysis = await analysisOf(args, {
    series: ['calls', 'memory', 'offsets', 'graph'],
    call,
    ...(await machineOf(args)),
  })
  await writeReport(analysis, output, title)
}
