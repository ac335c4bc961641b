import { realpath } from 'node:fs/promises'
import type { ArgumentsCamelCase, CommandModule, InferredOptionTypes } from 'yargs'
import { type Comparison, compareRuns, gateOf, recordRuns, UsageError } from '../../lib/cli.ts'
import { COMMANDS } from '../commands.ts'
import { comparisonSections } from '../compare/sections.ts'
import { filesOf, sideOf } from '../compare/sides.ts'
import { io } from '../io.ts'
import { FORCE, flag, once, oneOf, READING, seldom, valued, whole } from '../options.ts'
import { checkOutput } from '../output.ts'
import { writeReport } from '../report-file.ts'
import { interruptible } from '../signals.ts'
import { toMarkdown, toText } from '../stats/section.ts'
import { note, print, printJson, quoted } from '../terminal.ts'
import { plural } from '../units.ts'

/** Characters of a line where the output is no terminal. */
const WIDTH = 120
const RUNS = 5
const EXIT = { within: 0, worse: 2, inconclusive: 3 } as const

const OPTIONS = {
  with: {
    type: 'string',
    array: true,
    requiresArg: true,
    describe: 'The other side: logs, folders of logs, or Analyses',
  },
  name: {
    type: 'string',
    array: true,
    requiresArg: true,
    nargs: 1,
    describe: 'Names of the sides: --name before --name after',
  },
  runs: valued(whole('--runs'), 'Record two commands by turns, so many runs of each', `${RUNS}`),
  warmup: seldom(valued(whole('--warmup'), 'Runs of each command before, which do not count', '1')),
  output: {
    alias: 'o',
    ...valued(once('--output'), 'Folder for the logs that are recorded', 'compare-<time> in this folder'),
  },
  level: seldom(valued(oneOf('--level', ['token', 'graph', 'op']), 'What to record, as for record', 'op')),
  'fail-above': valued(
    shareOf,
    'Exit code 2 if b is slower by more than this, such as 5%; 3 if that is not certain, such as with fewer than 3 runs a side',
  ),
  top: seldom(valued(whole('--top'), 'Rows of each table', '10 of changes, 3 where there are none')),
  report: valued(once('--report'), 'Also write a report of both sides: one HTML page, which needs no network'),
  ...FORCE,
  json: flag('Print the comparison as JSON; docs/reference/comparisons.md describes it'),
  markdown: flag('Print Markdown, for a pull request'),
  ...READING,
} as const

interface Arguments extends InferredOptionTypes<typeof OPTIONS> {
  inputs: string[] | undefined
}

/** `ggml2perfetto compare <logs…> --with <logs…>` */
export const compareCommand: CommandModule<object, Arguments> = {
  ...COMMANDS.compare,
  builder: (yargs) =>
    yargs
      .usage(
        '$0 compare <logs…> --with <logs…>\n$0 compare [--runs 5] -- <command a> <command b>\n\nCompares runs of two sides. ' +
          'The unit is the run: five a side are a good start. With two commands, records both by turns.',
      )
      .positional('inputs', {
        type: 'string',
        array: true,
        describe: 'Logs, folders of logs, or Analyses (stats --json) of side a; or two commands, each in quotes',
      })
      .options(OPTIONS)
      .example(
        "$0 compare -- 'llama-cli -m a.gguf -p Hi -n 64' 'llama-cli -m b.gguf -p Hi -n 64'",
        'records 5 runs of each',
      )
      .example('$0 compare old/*.ggtrace --with new/*.ggtrace', 'logs that were recorded before')
      .example('$0 compare old/ --with new/ --fail-above 5%', 'for CI: exit code 0, 2 (slower) or 3 (not certain)'),
  handler,
}

/** For yargs' `coerce`: `5%` or `5`. */
function shareOf(value: string): number {
  const [, number] = /^\s*(\d+(?:\.\d+)?)(?:\s*%)?\s*$/.exec(once('--fail-above')(value)) ?? []
  if (number === undefined) throw new UsageError(`--fail-above "${value}": expected a percentage, such as 5%`)
  return Number(number) / 100
}

async function handler(args: ArgumentsCamelCase<Arguments>): Promise<void> {
  const { json, markdown, failAbove, top, report } = args
  if (json && markdown) throw new UsageError('--json and --markdown: expected one of them')
  if (report === '-') throw new UsageError('--report -: expected the name of a file, such as compared.html')
  if (report !== undefined) await checkOutput(report, args.inputs ?? [], 'html', args.force)
  const comparison = await comparisonOf(args)
  if (report !== undefined) await writeReport(comparison, report, undefined)
  const gate = failAbove === undefined ? undefined : gateOf(comparison, failAbove)
  if (gate) io().exitCode = EXIT[gate.answer]
  if (json) return printJson(JSON.stringify(gate ? { ...comparison, gate } : comparison, null, 2))
  const sections = comparisonSections(comparison, top, gate)
  // In Markdown, what is not among the first lines is folded.
  const isSpeed = ({ title }: { title: string }) => title === 'speed'
  const [verdict, ...rest] = sections
  const inMarkdown = [verdict!, ...rest.filter(isSpeed), ...rest.filter((section) => !isSpeed(section))]
  return print(markdown ? toMarkdown(inMarkdown) : toText(sections, io().stdout.columns ?? WIDTH))
}

/** The names of both sides: those of `--name`, or others. */
function namesOf({ name = [] }: Arguments, others: readonly [string, string]): readonly [string, string] {
  if (name.length !== 0 && name.length !== 2)
    throw new UsageError(
      `--name: expected the names of both sides, --name before --name after; found ${plural(name.length, 'name')}`,
    )
  return [name[0] ?? others[0], name[1] ?? others[1]]
}

/** Are the files of both sides the same ones, however they are named? */
async function areSame(before: readonly string[], after: readonly string[]): Promise<boolean> {
  const pathsOf = async (files: readonly string[]) => (await Promise.all(files.map((file) => realpath(file)))).sort()
  return `${await pathsOf(before)}` === `${await pathsOf(after)}`
}

async function comparisonOf(args: ArgumentsCamelCase<Arguments>): Promise<Comparison> {
  const { inputs = [], with: others = [], runs, warmup, output, level, from, opTable } = args
  const isRecording = io().argv.includes('--')
  const reading = { from, opTable }
  if (isRecording) {
    if (others.length > 0) throw new UsageError('--with is for logs; found commands after --')
    const [a, b, ...more] = inputs
    if (a === undefined || b === undefined || more.length > 0)
      throw new UsageError(
        `${plural(inputs.length, 'command')} after --; expected two, each in quotes\nhint: ggml2perfetto compare -- 'llama-cli -m a.gguf' 'llama-cli -m b.gguf'`,
      )
    const folder = output ?? `compare-${new Date().toISOString().replace(/[:.]/g, '-').slice(0, 19)}`
    const all = 2 * (runs ?? RUNS)
    let ended = -1
    const kept = () => `${plural(Math.max(ended, 0), 'run')} of ${all} are complete in ${folder}`
    const onRun = ({ side, number, isWarmup }: { side: 'a' | 'b'; number: number; isWarmup: boolean }) => {
      if (!isWarmup) ended++
      void note(isWarmup ? `warm-up of ${side}` : `run ${number} of ${all / 2} of ${side}`)
    }
    const options = { commands: [a, b] as const, runs: all / 2, warmup: warmup ?? 1, folder, level, onRun }
    const logs = await interruptible(
      () => `interrupted: ${kept()}`,
      () => recordRuns(options),
    ).catch(async (error) => {
      if (ended > 0) await note(kept())
      throw error
    })
    await note(`the logs are in ${folder}; again: ggml2perfetto compare ${quoted(folder)}`)
    const [nameOfA, nameOfB] = namesOf(args, [a, b])
    return compareRuns(await sideOf(nameOfA, logs.a, reading), await sideOf(nameOfB, logs.b, reading))
  }
  for (const option of ['runs', 'warmup', 'output', 'level'] as const)
    if (args[option] !== undefined)
      throw new UsageError(
        `--${option} is for commands that are recorded: compare --${option} … -- <command a> <command b>`,
      )
  if (inputs.length === 0) throw new UsageError('no input is given\nhint: ggml2perfetto compare --help')
  const files = await filesOf(inputs, others)
  const folders = others.length === 1 && inputs.length === 1 ? ([inputs[0]!, others[0]!] as const) : undefined
  const name = (side: readonly string[]) => (side.length === 1 ? side[0]! : `${side[0]} … ${side.at(-1)}`)
  const [before, after] = namesOf(args, folders ?? [name(files.before), name(files.after)])
  const comparison = compareRuns(await sideOf(before, files.before, reading), await sideOf(after, files.after, reading))
  if (!(await areSame(files.before, files.after))) return comparison
  const logs = files.before.length === 1 ? 'log' : 'logs'
  return { ...comparison, verdict: `both sides are the same ${logs}: there is no difference to find` }
}
