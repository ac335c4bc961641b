import yargs, { type Argv, type CommandModule } from 'yargs'
import { isOwnError, removeUnfinished, UsageError } from '../lib/cli.ts'
import { version } from '../package.json'
import { COMMANDS } from './commands.ts'
import { noTopic, pageOf, topicText } from './help.ts'
import { type Io, io, withIo } from './io.ts'
import { knownCommand, withMeant } from './mistakes.ts'
import { note, print, systemReason } from './terminal.ts'

/** Each command is imported when it is used. */
const MODULES = {
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

const NAMES = [...Object.keys(MODULES), 'help', 'completion']

/** What older names of commands are short for. */
const OLDER: Readonly<Record<string, readonly string[]>> = {
  info: ['stats', '--contents'],
  ask: ['query'],
  sql: ['query', '--package'],
}

/** Arguments with which all commands may be listed. */
const LISTING = /^(completion|--get-yargs-completions)$/

/** The command that arguments begin with, or the default one; all of them where they are listed. */
async function commandsFor(args: readonly string[]): Promise<CommandModule[]> {
  const [first = ''] = args
  const areListed = args.some((arg) => LISTING.test(arg))
  const name = first in MODULES ? (first as keyof typeof MODULES) : 'convert'
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
function parserWithoutTypes(): Argv {
  const parser = yargs() as Argv & { usageConfiguration(configuration: object): Argv }
  return parser.usageConfiguration({ 'hide-types': true })
}

function parser(args: readonly string[], commands: CommandModule[], areAll: boolean) {
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
        throw new UsageError(
          explainUsage(withMeant(message ?? error.message, args, Object.keys(options().key)), args[0]),
        )
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

/** Runs the CLI as `io` says, and sets its exit code. Never rejects. */
export function main(args: readonly string[], io: Io): Promise<void> {
  return withIo(io, () => run(args).catch(report))
}

async function run(given: readonly string[]): Promise<void> {
  if (given.length === 0) {
    io().exitCode = 1
    return note(await overview())
  }
  if (isHelp(given[0]) && given.length === 1) return print(await overview())
  if (given[0] === 'help') return printHelp(given.slice(1))
  const [first = '', ...rest] = given
  await parse(await marked(knownCommand(first in OLDER ? [...OLDER[first]!, ...rest] : given, NAMES)))
}

/** Prints the commands, the topics and the words, or all about one of them. */
async function printHelp([topic, ...more]: readonly string[]): Promise<void> {
  if (more.length > 0) throw new UsageError(`${more[0]}: one argument too many\nhint: ggml2perfetto help`)
  if (topic === undefined) return print(`${await overview()}\n${await topicText()}`)
  const [command, ...options] = OLDER[topic] ?? [topic]
  const page = await pageOf(topic)
  if (command! in MODULES) await parse([command!, ...options, '--help'], true)
  else if (page === undefined) throw new UsageError(await noTopic(topic, NAMES))
  if (page !== undefined) await print(command! in MODULES ? `\n${page}` : page)
}

async function parse(args: readonly string[], areAll = false): Promise<void> {
  const commands = await commandsFor(args)
  // yargs passes its output (help, version) to a callback; without one, it prints it and ignores errors.
  let said = ''
  const isAboutDefault = !(args[0]! in MODULES) && args.some(isHelp)
  const parsed = isAboutDefault ? ['convert', ...args] : args
  await parser(args, commands, areAll).parseAsync(protect(parsed), {}, (_error, _args, output) => {
    said = output
  })
  if (said !== '') await print(said)
}

const isHelp = (arg: string | undefined) => arg === '--help' || arg === '-h'

const helpWidth = () => Math.min(110, io().stdout.columns ?? 80)

/** The commands, in few lines. */
function overview(): Promise<string> {
  const names = Object.keys(COMMANDS) as (keyof typeof COMMANDS)[]
  const lister = parserWithoutTypes()
  for (const name of names.slice(0, names.indexOf('export') + 1)) {
    const { command, describe } = COMMANDS[name]
    lister.command([command].flat()[0]!, describe)
  }
  return lister
    .scriptName('ggml2perfetto')
    .usage('See what a ggml / llama.cpp run did.\n\n$0 <logs…>   converts them to a trace for https://ui.perfetto.dev')
    .example('$0 record -- llama-cli -m model.gguf -p Hello', '')
    .example('$0 stats run.ggtrace', '')
    .example('$0 doctor', 'finds llama.cpp and a model: what limits them here?')
    .epilogue(
      'Options of a command: ggml2perfetto <command> --help\nAll of them, docs, words and exit codes: ggml2perfetto help',
    )
    .help()
    .alias('help', 'h')
    .version(version)
    .wrap(helpWidth())
    .locale('en')
    .exitProcess(false)
    .getHelp()
}

/** With `--` before the program to record. */
async function marked(args: readonly string[]): Promise<readonly string[]> {
  return args[0] === 'record' ? (await import('./commands/record.ts')).markProgram(args) : args
}

/** Reports an error that no command caught; no incomplete file remains. */
export function endByError(error: unknown): Promise<void> {
  removeUnfinished()
  return report(error)
}

/** Prints an error as a message for users, and sets the exit code. */
async function report(error: unknown): Promise<void> {
  const { code, path, message, stack } = error as NodeJS.ErrnoException
  // The reader of our output has closed it (`| head`): not an error.
  if (code === 'EPIPE') return
  io().exitCode = (error as { exitCode?: number }).exitCode ?? 1
  const reason = systemReason(error)
  if (isOwnError(error)) await note(`error: ${message}`)
  else if (reason !== undefined) await note(`error: ${path ?? 'standard output'}: ${reason}`)
  else await note(`error: a bug in ggml2perfetto ${version}: ${message}\nhint: please report it`)
  if (io().env['GGML2PERFETTO_DEBUG'] === '1') await note(String(stack))
}
