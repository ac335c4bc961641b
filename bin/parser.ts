import yargs, { type Argv, type CommandModule } from 'yargs'
import { UsageError } from '../lib/cli.ts'
import type { COMMANDS } from './commands.ts'
import { io } from './io.ts'
import { knownCommand, withMeant } from './mistakes.ts'
import { version } from './version.ts'

/** Each command is imported when it is used. */
export const MODULES = {
  record: async () => (await import('./commands/record.ts')).recordCommand,
  convert: async () => (await import('./commands/convert.ts')).convertCommand,
  open: async () => (await import('./commands/open.ts')).openCommand,
  stats: async () => (await import('./commands/stats.ts')).statsCommand,
  why: async () => (await import('./commands/why.ts')).whyCommand,
  'what-if': async () => (await import('./commands/what-if.ts')).whatIfCommand,
  compare: async () => (await import('./commands/compare.ts')).compareCommand,
  report: async () => (await import('./commands/report.ts')).reportCommand,
  dag: async () => (await import('./commands/dag.ts')).dagCommand,
  query: async () => (await import('./commands/query.ts')).queryCommand,
  export: async () => (await import('./commands/export.ts')).exportCommand,
  doctor: async () => (await import('./commands/doctor.ts')).doctorCommand,
  check: async () => (await import('./commands/check.ts')).checkCommand,
  peaks: async () => (await import('./commands/peaks.ts')).peaksCommand,
  nvtx: async () => (await import('./commands/nvtx.ts')).nvtxCommand,
} satisfies Record<keyof typeof COMMANDS, () => Promise<unknown>>

export const NAMES = [...Object.keys(MODULES), 'help', 'completion']

/** What older names of commands are short for. */
export const OLDER: Readonly<Record<string, readonly string[]>> = {
  info: ['stats', '--contents'],
  ask: ['query'],
  sql: ['query', '--package'],
}

/** Arguments with which all commands may be listed. */
const LISTING = /^(completion|--get-yargs-completions)$/

/** The command that arguments begin with, or the default one; all of them where they are listed. */
export async function commandsFor(args: readonly string[]): Promise<CommandModule[]> {
  const [first = ''] = args
  const areListed = args.some((arg) => LISTING.test(arg))
  const name = Object.hasOwn(MODULES, first) ? (first as keyof typeof MODULES) : 'convert'
  const modules = areListed && name !== first ? Object.values(MODULES) : [MODULES[name]]
  return (await Promise.all(modules.map((load) => load()))) as unknown as CommandModule[]
}

/** Hidden options that the list of all options lacks, too. */
const NEVER_LISTED = ['version', 'worker']

interface ParsedOptions {
  readonly key: Record<string, unknown>
  hiddenOptions: string[]
}

/** A prefix for arguments that yargs would parse as options, or lose: `-`, SQL that starts with a comment, all after `--`. */
const PLAIN = '\0'

function protect(args: readonly string[]): string[] {
  const end = args.indexOf('--')
  const isPlain = (arg: string, i: number) => arg === '-' || /^--[^=]*\s/.test(arg) || (end >= 0 && i > end)
  return args.map((arg, i) => (isPlain(arg, i) ? PLAIN + arg : arg)).filter((_, i) => i !== end)
}

function restore(args: Record<string, unknown>): void {
  const plain = (value: unknown) => (typeof value === 'string' && value.startsWith(PLAIN) ? value.slice(1) : value)
  for (const [key, value] of Object.entries(args)) args[key] = Array.isArray(value) ? value.map(plain) : plain(value)
}

/** A parser whose help contains no `[string]`: types of yargs lack the option for it. */
export function parserWithoutTypes(): Argv {
  const parser = yargs() as Argv & { usageConfiguration(configuration: object): Argv }
  return parser.usageConfiguration({ 'hide-types': true })
}

/** A parser of arguments. Errors in them are UsageErrors. */
function parserOf(args: readonly string[], commands: CommandModule[], areAll: boolean): Argv {
  const parser = parserWithoutTypes()
  // Types of yargs do not contain it: the options of the command that is parsed.
  const options = () => (parser as unknown as { getOptions(): ParsedOptions }).getOptions()
  const showAll = () => {
    const known = options()
    known.hiddenOptions = known.hiddenOptions.filter((name) => NEVER_LISTED.includes(name))
  }
  return (
    parser
      .scriptName('ggml2perfetto')
      .command(
        commands.map((command) => ({ ...command, builder: areAll ? withAll(command, showAll) : withHint(command) })),
      )
      .command('help [topic]', 'Print all options of a command, or a page of the docs')
      .command('completion', 'Print a script for Tab completion in bash and zsh', {}, () => {
        parser.showCompletionScript()
      })
      .middleware(restore)
      .strict()
      .parserConfiguration({
        'parse-positional-numbers': false,
        'strip-dashed': true,
      })
      .help()
      .alias('help', 'h')
      .version(version)
      .hide('version')
      .wrap(helpWidth())
      // Only yargs' own messages would be translated, so that languages would mix.
      .locale('en')
      .exitProcess(false)
      .showHelpOnFail(false)
      .fail((message, error) => {
        if (error && error.name !== 'YError') throw error
        const { key, hiddenOptions } = options()
        const positionals = commands.flatMap(({ command }) =>
          [command!].flat().flatMap((text) => text.match(/(?<=[<[])[\w-]+/g) ?? []),
        )
        const unlisted = [...hiddenOptions, ...positionals, 'help']
        const meant = withMeant(message ?? error.message, args, Object.keys(key), unlisted)
        throw new UsageError(explainUsage(meant, args[0]))
      })
  )
}

/** The builder of a command, after which `then` is called. */
const withAll =
  ({ builder }: CommandModule, then: () => void) =>
  (yargs: Argv) => {
    const built = (builder as (yargs: Argv) => Argv)(yargs)
    then()
    return built
  }

/** The builder of a command, whose help names the command that lists hidden options. */
const withHint =
  ({ command, builder }: CommandModule) =>
  (yargs: Argv) =>
    (builder as (yargs: Argv) => Argv)(yargs).epilogue(
      `All options, docs: ggml2perfetto help ${[command!].flat()[0]!.split(' ')[0]}`,
    )

function explainUsage(message: string, command: string | undefined): string {
  const option = /^Not enough arguments following: (.+)$/.exec(message)?.[1]
  if (option !== undefined) return `${option.length > 1 ? '--' : '-'}${option}: its value is missing`
  const what = message.startsWith('Not enough non-option') ? 'no input is given' : message
  // An error that starts with an option's name is ours, and contains its own advice.
  return /^--\w.* "/.test(what) || what.includes('\nhint: ')
    ? what
    : `${what}\nhint: ggml2perfetto ${command === undefined || !NAMES.includes(command) ? '' : `${command} `}--help`
}

/**
 * Arguments as the parser reads them: older names of commands replaced, with `--` before the program to record. Throws UsageError for a word
 * that is neither a command nor a file.
 */
export async function expanded(given: readonly string[]): Promise<readonly string[]> {
  const [first = '', ...rest] = given
  const args = knownCommand(Object.hasOwn(OLDER, first) ? [...OLDER[first]!, ...rest] : given, NAMES)
  return args[0] === 'record' ? (await import('./commands/record.ts')).markProgram(args) : args
}

/**
 * Parses arguments, passes them to the handler of that of `commands` which they select, and returns what yargs prints (help, version). Throws
 * UsageError for an argument that the command does not have, and for a value that is none of its option.
 */
export async function parseWith(commands: CommandModule[], args: readonly string[], areAll = false): Promise<string> {
  const isAboutDefault = !Object.hasOwn(MODULES, args[0] ?? '') && args.some(isHelp)
  const parsed = isAboutDefault ? ['convert', ...args] : args
  // yargs passes its output to a callback; without one, it prints it and ignores errors.
  let said = ''
  await parserOf(args, commands, areAll).parseAsync(protect(parsed), {}, (_error, _args, output) => {
    said = output
  })
  return said
}

/** Does it ask for help? */
export const isHelp = (arg: string | undefined) => arg === '--help' || arg === '-h'

/** Columns of the help. */
export const helpWidth = () => Math.min(110, io().stdout.columns ?? 80)
