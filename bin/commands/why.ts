import type { ArgumentsCamelCase, CommandModule, InferredOptionTypes } from 'yargs'
import { type Analysis, findings, lookedAt } from '../../lib/index.ts'
import { describeFinding } from '../findings.ts'
import { CLOCKS, flag, inputsOf, READING } from '../options.ts'
import { analysisOf } from '../stats/inputs.ts'
import { MACHINE, machineOf } from '../stats/machine.ts'
import { print, printJson, quoted } from '../terminal.ts'

const OPTIONS = {
  json: flag('Print the findings as JSON; docs/findings.md describes them'),
  ...MACHINE,
  ...CLOCKS,
  ...READING,
} as const

interface Arguments extends InferredOptionTypes<typeof OPTIONS> {
  inputs: string[]
}

/** `ggml2perfetto why <logs…>` */
export const whyCommand: CommandModule<object, Arguments> = {
  command: 'why <inputs..>',
  describe: 'Print what made the run slow: findings, each with its evidence and a check',
  builder: (yargs) =>
    yargs
      .positional(
        'inputs',
        inputsOf(
          "Log, gzip'ed or not, or an Analysis (stats --json); - for stdin. Several logs must be of one run, as in convert",
        ),
      )
      .options(OPTIONS)
      .example('$0 why run.ggtrace', 'the findings, most time first')
      .example('$0 why run.ggtrace run.sched.dat', 'also names the programs that took the CPUs'),
  handler,
}

async function handler(args: ArgumentsCamelCase<Arguments>): Promise<void> {
  const analysis = await analysisOf(args, await machineOf(args))
  const found = findings(analysis)
  if (args.json) return printJson(JSON.stringify(found, null, 2))
  const query = `ggml2perfetto query ${analysis.inputs.map(({ name }) => quoted(name)).join(' ')}`
  const lines = found.flatMap((finding, i) => [...describeFinding(finding, i + 1, query), ''])
  await print([
    ...(found.length === 0 ? ['no findings: nothing is unusual in what was recorded', ''] : lines),
    ...describeFigures(analysis),
  ])
}

/** The figures within what a quiet run shows, and what could not be looked at. */
function describeFigures(analysis: Analysis): string[] {
  const rules = lookedAt(analysis)
  const figures = rules.flatMap(({ figures }) =>
    figures.filter(({ finding }) => !finding).map(({ figure }) => `  ${figure}`),
  )
  const without = rules.filter(({ figures }) => figures.length === 0).map(({ rule }) => rule)
  return [
    ...(figures.length > 0 ? ['looked at, and within what a quiet run shows:', ...figures] : []),
    ...(without.length > 0 ? [`not looked at, as the log does not contain it: ${without.join(', ')}`] : []),
  ]
}
