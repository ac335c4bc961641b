import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { commandsFor, expanded, parseWith } from '../../bin/parser.ts'
import { bin, file } from './files.ts'

/** Parses the calls of this program in printed command lines. Nothing is executed. */

/** A redirection, or what ends a command. */
const END = /^(?:\d?[<>]+&?\d*|\$?[|;&()]+)$/
/** The same in a line, or a word with what is quoted in it. */
const WORD = /\d?[<>]+&?\d*|\$?[|;&()]+|(?:"[^"]*"|'[^']*'|\\.|\$(?!\()|[^\s"'\\|;&<>()$])+/g

/** The arguments of each call of this program in a line of bash. */
export function callsIn(line: string): string[][] {
  const words = [...line.matchAll(WORD)].map(([word]) => word)
  return words.flatMap((word, i) => {
    if (word !== 'ggml2perfetto') return []
    const rest = words.slice(i + 1)
    const end = rest.findIndex((next) => END.test(next))
    const args = rest.slice(0, end < 0 ? undefined : end).map((arg) => arg.replaceAll(/"([^"]*)"|'([^']*)'/g, '$1$2'))
    return args.length > 0 && args[0] !== 'completion' ? [args] : [] // it prints its script while it is parsed
  })
}

interface Parsed {
  readonly inputs?: readonly string[]
  readonly with?: readonly string[]
  readonly log?: string
  readonly trace?: string
  readonly command?: readonly string[]
}

const isHere = (path: string) => existsSync(join(file(), path))

const isProgram = (name: string) =>
  isHere(name) || [bin(), ...process.env['PATH']!.split(':')].some((folder) => existsSync(join(folder, name)))

/** What is wrong with the arguments of a call: the parser's error, a log that is not among the files, a program that nobody has. */
export async function mistakeIn(given: readonly string[]): Promise<string | undefined> {
  let parsed: Parsed = {}
  try {
    const args = await expanded(given)
    const commands = await commandsFor(args)
    const handler = (args: unknown) => {
      parsed = args as Parsed
    }
    await parseWith(
      commands.map((command) => ({ ...command, handler })),
      args,
    )
  } catch (error) {
    return (error as Error).message
  }
  const { inputs = [], with: others = [], log, trace, command: [program] = [] } = parsed
  if (program !== undefined && !/[$‹]/.test(program) && !isProgram(program)) return `${program}: no such program here`
  // After `--`, commands to compare; after the input of a query, its SQL.
  const logs = given.includes('--') ? [] : given[0] === 'query' ? inputs.slice(0, -1) : inputs
  const files = [...logs, ...others, ...[log, trace].filter((path) => path !== undefined)]
  const absent = files.find((path) => path !== '-' && !/[*?$]/.test(path) && !isHere(path))
  return absent && `${absent}: no such file here`
}
