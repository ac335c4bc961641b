import { isOwnError, UsageError } from '../lib/cli.ts'
import { COMMANDS } from './commands.ts'
import { noTopic, pageOf, topicText } from './help.ts'
import { type Io, io, withIo } from './io.ts'
import {
  commandsFor,
  expanded,
  helpWidth,
  isHelp,
  MODULES,
  NAMES,
  OLDER,
  parserWithoutTypes,
  parseWith,
} from './parser.ts'
import { note, print, systemReason } from './terminal.ts'
import { version } from './version.ts'

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
  await parse(await expanded(given))
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
  const said = await parseWith(await commandsFor(args), args, areAll)
  if (said !== '') await print(said)
}

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

/** Prints an error as a message for users, and sets the exit code. */
export async function report(error: unknown): Promise<void> {
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
