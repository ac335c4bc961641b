import { existsSync } from 'node:fs'
import { closest, inspect, readFileChunks, UsageError } from '../lib/cli.ts'
import { quoted } from './terminal.ts'

/** Endings of files that this program writes and does not convert. */
const TRACE = /\.(pftrace|perfetto-trace|pb|zip)(\.gz)?$|\.json(\.gz)?$/i

/** Throws UsageError for a word that is neither a command nor a file but resembles a command. */
export function knownCommand(args: readonly string[], commands: readonly string[]): readonly string[] {
  const [first] = args
  const isOther = first === undefined || commands.includes(first) || /^-|[./\\]/.test(first) || existsSync(first)
  const meant = isOther ? undefined : closest(first, commands)
  if (meant === undefined) return args
  throw new UsageError(`${first}: no such command, and no such file\nhint: did you mean ggml2perfetto ${meant}?`)
}

/** yargs' message about the arguments, with the options that were probably meant. An unknown option may have taken an input as its value. */
export function withMeant(message: string, args: readonly string[], options: readonly string[]): string {
  const known = options.filter((name) => name.length > 1)
  const given = args.flatMap((arg) => /^--([\w-]+)/.exec(arg)?.[1] ?? [])
  const isKnown = (name: string) => known.includes(name) || known.includes(name.replace(/^no-/, ''))
  const unknown = /^Not enough/.test(message)
    ? given.filter((name) => !isKnown(name))
    : (/^Unknown arguments?: (.*)$/.exec(message)?.[1]?.split(', ') ?? [])
  const [word] = unknown
  if (word === undefined) return message
  const plain = (arg: string) => arg.replace(/^-*(no-)?/, '').replace(/=.*/s, '')
  const option = args.find((arg) => arg.startsWith('-') && plain(arg) === plain(word))?.replace(/=.*/s, '')
  if (option === undefined) return `${word}: one argument too many`
  const meant = closest(plain(word), known)
  const hint = meant === undefined ? '' : `\nhint: did you mean --${option.startsWith('--no-') ? 'no-' : ''}${meant}?`
  return `${option}: no such option${hint}`
}

/** Throws UsageError if the trace to write seems to be among the inputs, instead of after `-o`. */
export function refuseSwapped(inputs: readonly string[]): void {
  const output = inputs.find((input) => TRACE.test(input) && !existsSync(input))
  const logs = inputs.filter((input) => input !== output)
  if (output === undefined || logs.length === 0 || !logs.every((log) => log === '-' || existsSync(log))) return
  const command = ['ggml2perfetto', ...logs.map(quoted), '-o', quoted(output)].join(' ')
  throw new UsageError(`${output}: no such input\nhint: -o is for the trace to write: ${command}`)
}

/** Throws UsageError if the trace to write is an existing log or Analysis, which would be lost. */
export async function refuseLog(output: string): Promise<void> {
  const { kind, isTrace, source } = await inspect(readFileChunks(output))
  await source.return()
  if (isTrace || (kind !== 'log' && kind !== 'analysis')) return
  throw new UsageError(
    `${output}: is ${kind === 'log' ? 'a log' : 'an Analysis'}, which would be lost\nhint: -o is for the trace to write, such as ${quoted(`${output}.pftrace`)}`,
  )
}
