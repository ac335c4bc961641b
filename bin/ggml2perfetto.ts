#!/usr/bin/env node
import { readFileSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import yargs from 'yargs'
import { hideBin } from 'yargs/helpers'
import { isOwnError, removeUnfinished, UsageError } from '../lib/index.ts'
import { askCommand } from './commands/ask.ts'
import { checkCommand } from './commands/check.ts'
import { compareCommand } from './commands/compare.ts'
import { convertCommand } from './commands/convert.ts'
import { dagCommand } from './commands/dag.ts'
import { exportCommand } from './commands/export.ts'
import { infoCommand } from './commands/info.ts'
import { nvtxCommand } from './commands/nvtx.ts'
import { openCommand } from './commands/open.ts'
import { peaksCommand } from './commands/peaks.ts'
import { queryCommand } from './commands/query.ts'
import { markProgram, recordCommand } from './commands/record.ts'
import { reportCommand } from './commands/report.ts'
import { sqlCommand } from './commands/sql.ts'
import { statsCommand } from './commands/stats.ts'
import { whyCommand } from './commands/why.ts'
import { knownCommand, withMeant } from './mistakes.ts'
import { note, print, systemReason } from './terminal.ts'

// trace_processor is 13 MB of WASM. V8's optimizing compiler takes longer for it than a small trace takes to load (1.3 s
// of 1.7 s), and a large trace hardly loads faster with it (6.0 s instead of 6.4 s for 40 MB).
setFlagsFromString('--liftoff-only')
// The same of its optimizing compiler for JavaScript: for a log of a second it takes as long as all else, as it compiles what is
// done soon. Functions must be eight times as hot as V8's default (67584 bytes of bytecode) requires.
setFlagsFromString('--interrupt-budget=540672')

const { version, bugs } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))

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

const COMMANDS = [
  'convert',
  'open',
  'info',
  'stats',
  'why',
  'dag',
  'compare',
  'report',
  'export',
  'check',
  'query',
  'ask',
  'sql',
  'record',
  'nvtx',
  'peaks',
  'help',
  'completion',
]

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

function parser(args: readonly string[]) {
  const parser = yargs()
  // Types of yargs do not contain it: the options of the command that is parsed.
  const options = () => (parser as unknown as { getOptions(): { key: Record<string, unknown> } }).getOptions()
  return (
    parser
      .scriptName('ggml2perfetto')
      .usage('See what a ggml / llama.cpp run did: converts its logs to traces for https://ui.perfetto.dev.')
      .command(convertCommand)
      .command(openCommand)
      .command(infoCommand)
      .command(statsCommand)
      .command(whyCommand)
      .command(dagCommand)
      .command(compareCommand)
      .command(reportCommand)
      .command(exportCommand(version))
      .command(checkCommand)
      .command(queryCommand)
      .command(askCommand)
      .command(sqlCommand)
      .command(recordCommand)
      .command(nvtxCommand)
      .command(peaksCommand)
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
      .wrap(Math.min(110, process.stdout.columns ?? 110))
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

async function main(args: readonly string[]): Promise<void> {
  if (args.length === 0) {
    await note(await parser(args).getHelp())
    process.exitCode = 1
    return
  }
  // yargs passes its output (help, version) to a callback; without one, it prints it and ignores errors.
  let said = ''
  await parser(args).parseAsync(protect(markProgram(knownCommand(args, COMMANDS))), {}, (_error, _args, output) => {
    said = output
  })
  if (said !== '') await print(said)
}

/** Prints an error as a message for users, and sets the exit code. */
async function report(error: unknown): Promise<void> {
  const { code, path, message, stack } = error as NodeJS.ErrnoException
  // The reader of our output has closed it (`| head`): not an error.
  if (code === 'EPIPE') return
  process.exitCode = (error as { exitCode?: number }).exitCode ?? 1
  const reason = systemReason(error)
  if (isOwnError(error)) await note(`error: ${message}`)
  else if (reason !== undefined) await note(`error: ${path ?? 'standard output'}: ${reason}`)
  else
    await note(
      `error: a bug in ggml2perfetto ${version}: ${message}\nhint: please report it${bugs ? ` at ${bugs.url}` : ''}`,
    )
  if (process.env['GGML2PERFETTO_DEBUG'] === '1') await note(String(stack))
}

// Failed writes reject their promise; without a listener, the same error would also end the process.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined)

// Listeners are not awaited, so the `catch` below does not cover them. No error should get here; if one does, no incomplete file remains.
process.on('uncaughtException', (error) => {
  removeUnfinished()
  void report(error).then(() => process.exit())
})

await main(hideBin(process.argv)).catch(report)
// An input that was not read to its end (a pipe that stays open) must not keep the process alive.
process.exit()
