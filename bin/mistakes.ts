import { existsSync } from 'node:fs'
import { closest, inspect, readFileChunks, type TraceKind, UsageError } from '../lib/cli.ts'
import { quoted } from './terminal.ts'

/** Endings of files that this program writes and does not convert. */
const TRACE = /\.(pftrace|perfetto-trace|pb|zip)(\.gz)?$|\.json(\.gz)?$/i

/** Commands under the names that other tools have for them. */
const OF_OTHERS: Readonly<Record<string, string>> = {
  view: 'open',
  show: 'open',
  diff: 'compare',
  bench: 'compare',
  trace: 'convert',
  profile: 'record',
  run: 'record',
  summary: 'stats',
  analyze: 'stats',
  explain: 'why',
  diagnose: 'doctor',
  graph: 'dag',
  version: '--version',
}

const ATTACH = 'a process that runs is recorded by sudo ggml2perfetto record --attach <process id>'
/** Options of other tools, and what is meant by them. */
const OPTIONS_OF_OTHERS: Readonly<Record<string, string>> = {
  v: 'did you mean --version?',
  V: 'did you mean --version?',
  p: ATTACH,
  pid: ATTACH,
}

/** What may be the name of a command. */
const WORD = /^\w[\w-]{0,20}$/

/** Throws UsageError for a word that is neither a command nor a file; such a word is not read as one. */
export function knownCommand(args: readonly string[], commands: readonly string[]): readonly string[] {
  const [first] = args
  if (first === undefined || commands.includes(first) || !WORD.test(first) || existsSync(first)) return args
  const meant = Object.hasOwn(OF_OTHERS, first) ? OF_OTHERS[first] : closest(first, commands)
  const hint = meant === undefined ? 'ggml2perfetto --help' : `did you mean ggml2perfetto ${meant}?`
  throw new UsageError(`${first}: no such command, and no such file\nhint: ${first === 'attach' ? ATTACH : hint}`)
}

/** yargs' message about the arguments, with the options that were probably meant, else those of the command without the `unlisted` ones. An unknown option may have taken an input as its value. */
export function withMeant(
  message: string,
  args: readonly string[],
  options: readonly string[],
  unlisted: readonly string[] = [],
): string {
  const known = options.filter((name) => name.length > 1)
  const given = args.flatMap((arg) => /^--?(\w[\w-]*)/.exec(arg)?.[1] ?? [])
  const isKnown = (name: string) => options.includes(name) || known.includes(name.replace(/^no-/, ''))
  const unknown = /^(?:Not enough|Missing required)/.test(message)
    ? given.filter((name) => !isKnown(name))
    : (/^Unknown arguments?: (.*)$/.exec(message)?.[1]?.split(', ') ?? [])
  const [word] = unknown
  if (word === undefined) return message
  const plain = (arg: string) => arg.replace(/^-*(no-)?/, '').replace(/=.*/s, '')
  // yargs names an option that it does not know in its own spelling: gpuLayers.
  const spelling = (name: string) => plain(name).replaceAll('-', '').toLowerCase()
  const option = args.find((arg) => arg.startsWith('-') && spelling(arg) === spelling(word))?.replace(/=.*/s, '')
  if (option === undefined) return `${word}: one argument too many`
  if (Object.hasOwn(OPTIONS_OF_OTHERS, plain(word)))
    return `${option}: no such option\nhint: ${OPTIONS_OF_OTHERS[plain(word)]}`
  const meant = closest(plain(option), known)
  const listed = known.filter((name) => !unlisted.includes(name) && /^[a-z-]+$/.test(name))
  const what = `${option}: no such option`
  if (meant !== undefined) return `${what}\nhint: did you mean --${option.startsWith('--no-') ? 'no-' : ''}${meant}?`
  return listed.length === 0 ? what : `${what}\nhint: the options are ${listed.map((name) => `--${name}`).join(', ')}`
}

/** Throws UsageError if the trace to write seems to be among the inputs, instead of after `-o`. */
export function refuseSwapped(inputs: readonly string[]): void {
  const output = inputs.find((input) => TRACE.test(input) && !existsSync(input))
  const logs = inputs.filter((input) => input !== output)
  if (output === undefined || logs.length === 0 || !logs.every((log) => log === '-' || existsSync(log))) return
  const command = ['ggml2perfetto', ...logs.map(quoted), '-o', quoted(output)].join(' ')
  throw new UsageError(`${output}: no such input\nhint: -o is for the trace to write: ${command}`)
}

/** What an output may replace: an older one of its kind. */
export type OutputKind = TraceKind | 'html' | 'log' | 'graph' | 'arrow' | 'issue'

/** The first bytes of what this program writes, where the reader of logs does not know them. */
const OURS: Readonly<Partial<Record<OutputKind, RegExp>>> = {
  html: /^<!DOCTYPE html>[\s\S]*content="ggml2perfetto"/,
  issue: /^### Name and Version\n/,
  graph: /^(digraph |<\?xml [\s\S]*graphviz|\{\s*"schema": "ggml2perfetto\.)/,
  log: /^(GGT0|\0{4})/, // one that is just created begins with zeros
  arrow: /^\xff\xff\xff\xff/,
}

/** Throws UsageError if the file to write is a log, an Analysis, or nothing that this program writes: it would be lost. */
export async function refuseLoss(output: string, kind: OutputKind): Promise<void> {
  const { kind: found, isTrace, head, source } = await inspect(readFileChunks(output))
  await source.return()
  const ours = OURS[kind]
  if (head.length === 0 || (ours ? ours.test(new TextDecoder('latin1').decode(head)) : isTrace)) return
  const what = found === 'log' ? 'a log' : found === 'analysis' ? 'an Analysis' : 'no file of this program'
  throw new UsageError(
    `${output}: is ${what}, which would be lost\nhint: name another file, such as ${quoted(`${output}.${ENDINGS[kind]}`)}; --force replaces it`,
  )
}

const ENDINGS: Readonly<Record<OutputKind, string>> = {
  ...{ perfetto: 'pftrace', json: 'json', html: 'html', log: 'ggtrace' },
  ...{ graph: 'svg', arrow: 'arrows', issue: 'md' },
}
