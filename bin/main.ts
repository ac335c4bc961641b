import yargs, { type CommandModule } from 'yargs'
import { isOwnError, removeUnfinished, UsageError } from '../lib/cli.ts'
import { version } from '../package.json'
import { type Io, io, withIo } from './io.ts'
import { knownCommand, withMeant } from './mistakes.ts'
import { note, print, systemReason } from './terminal.ts'

const EPILOGUE = `Words, as llama.cpp uses them:
  call     one call of llama_decode, or one step of vLLM or SGLang; numbered from 0, except warm-up calls
  prefill  calls that process the prompt       decode  calls that make one token of each sequence
  TTFT     time to first token: from the start of the first call to the end of the last call before a decode
  TPOT     time per output token: mean time from the end of one call to the end of the next decode call
  tok/s    tokens of all sequences per second: TPOT × tok/s = sequences decoded at once
  graph    a ggml graph; one compute of it is a run    op  the operation of a node, such as MUL_MAT
  worker   a thread of ggml's pool; all workers share each op, then wait for each other (barrier)

Exit codes:
  0         success. A damaged log is read to its end, and its issues are printed
  1         an error, such as a log that contains nothing to draw
  compare   with --fail-above: 0 not slower by more, 2 slower, 3 not certain
  record    the exit code of the program; 1 if the program succeeded, but its log is incomplete (a full disk);
            127: there is no such program; 126: it cannot be run`

/** The commands in the order of the help; each is imported when it is used. */
const MODULES = {
  convert: async () => (await import('./commands/convert.ts')).convertCommand,
  open: async () => (await import('./commands/open.ts')).openCommand,
  info: async () => (await import('./commands/info.ts')).infoCommand,
  stats: async () => (await import('./commands/stats.ts')).statsCommand,
  why: async () => (await import('./commands/why.ts')).whyCommand,
  dag: async () => (await import('./commands/dag.ts')).dagCommand,
  compare: async () => (await import('./commands/compare.ts')).compareCommand,
  report: async () => (await import('./commands/report.ts')).reportCommand,
  export: async () => (await import('./commands/export.ts')).exportCommand,
  check: async () => (await import('./commands/check.ts')).checkCommand,
  query: async () => (await import('./commands/query.ts')).queryCommand,
  ask: async () => (await import('./commands/ask.ts')).askCommand,
  sql: async () => (await import('./commands/sql.ts')).sqlCommand,
  record: async () => (await import('./commands/record.ts')).recordCommand,
  nvtx: async () => (await import('./commands/nvtx.ts')).nvtxCommand,
  peaks: async () => (await import('./commands/peaks.ts')).peaksCommand,
} satisfies Record<string, () => Promise<unknown>>

const COMMANDS = [...Object.keys(MODULES), 'help', 'completion']

/** Arguments with which all commands are listed, or may be. */
const LISTING = /^(-[^\Wh]*h\w*|--help.*|completion|--get-yargs-completions)$/

/** The command that arguments begin with, or the default one; all of them where they are listed. */
async function commandsFor(args: readonly string[]): Promise<CommandModule[]> {
  const [first = ''] = args
  const areListed = args.length === 0 || args.some((arg) => LISTING.test(arg))
  const name = first in MODULES ? (first as keyof typeof MODULES) : 'convert'
  const modules = areListed && name !== first ? Object.values(MODULES) : [MODULES[name]]
  return (await Promise.all(modules.map((load) => load()))) as unknown as CommandModule[]
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

function parser(args: readonly string[], commands: CommandModule[]) {
  const parser = yargs()
  // Types of yargs do not contain it: the options of the command that is parsed.
  const options = () => (parser as unknown as { getOptions(): { key: Record<string, unknown> } }).getOptions()
  return (
    parser
      .scriptName('ggml2perfetto')
      .usage('See what a ggml / llama.cpp run did: converts its logs to traces for https://ui.perfetto.dev.')
      .command(commands)
      .command('help [command]', 'Show the help of a command')
      .command(
        'completion',
        'Print a script for Tab completion in bash and zsh: source <(ggml2perfetto completion)',
        {},
        () => {
          parser.showCompletionScript()
        },
      )
      .middleware(restore)
      .strict()
      .parserConfiguration({
        'parse-positional-numbers': false,
        'strip-dashed': true,
      })
      .help()
      .alias('help', 'h')
      .version(version)
      .epilogue(EPILOGUE)
      .wrap(Math.min(110, io().stdout.columns ?? 110))
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

function explainUsage(message: string, command: string | undefined): string {
  const option = /^Not enough arguments following: (.+)$/.exec(message)?.[1]
  if (option !== undefined) return `${option.length > 1 ? '--' : '-'}${option}: its value is missing`
  const what = message.startsWith('Not enough non-option') ? 'no input is given' : message
  // An error that starts with an option's name is ours, and contains its own advice.
  return /^--\w.* "/.test(what) || what.includes('\nhint: ')
    ? what
    : `${what}\nhint: ggml2perfetto ${command === undefined || !COMMANDS.includes(command) ? '' : `${command} `}--help`
}

/** Runs the CLI as `of` says, and sets its exit code. Never rejects. */
export function main(args: readonly string[], io: Io): Promise<void> {
  return withIo(io, () => run(args).catch(report))
}

async function run(given: readonly string[]): Promise<void> {
  const args = await marked(knownCommand(given, COMMANDS))
  const commands = await commandsFor(args)
  if (given.length === 0) {
    await note(await parser(given, commands).getHelp())
    io().exitCode = 1
    return
  }
  // yargs passes its output (help, version) to a callback; without one, it prints it and ignores errors.
  let said = ''
  await parser(given, commands).parseAsync(protect(args), {}, (_error, _args, output) => {
    said = output
  })
  if (said !== '') await print(said)
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
