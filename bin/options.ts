import type { ArgumentsCamelCase, InferredOptionTypes } from 'yargs'
import { type ConvertOptions, OP_TABLES, UsageError } from '../lib/cli.ts'
import { textOfFile } from './inputs.ts'

/** A smaller log would contain hardly more than its definitions. */
const LOG_BYTES_MIN = 64 * 1024
const tables = OP_TABLES.map(({ name }) => name).join(' | ')

/** An option that `help <command>` lists, and `<command> --help` does not. */
export const seldom = <O extends object>(option: O) => ({ ...option, hidden: true }) as const

/** An option with a value, which `read` reads; `byDefault` describes what applies without it. */
export function valued<T>(read: (value: string) => T, describe: string, byDefault?: string) {
  const coerce = (value: string | false): T => {
    if (value === false)
      throw new UsageError('--no-… turns off an option without a value; found an option with a value')
    return read(value)
  }
  const text = byDefault === undefined ? describe : `${describe} (default: ${byDefault})`
  return { type: 'string', requiresArg: true, coerce, describe: text } as const
}

/** An option without a value. */
export const flag = (describe: string) => ({ type: 'boolean', default: false, describe }) as const

/** The option of all commands that write a file. */
export const FORCE = {
  force: seldom(flag('Replace the file of --output even if this command did not write it')),
} as const

/** Options of all commands that read logs. */
export const READING = {
  from: seldom(valued(once('--from'), 'Log format, where it is not detected; help formats lists them')),
  'op-table': seldom(
    valued(
      once('--op-table'),
      `Names of ggml's op numbers, for logs that contain numbers: ${tables}, or a file (JSON array of op names, or ` +
        'one name per line)',
      'inferred from the log',
    ),
  ),
  osrt: seldom(flag('Nsight Systems reports: also draw calls of the OS runtime (often more than all other events)')),
} as const

/** Options of all commands that draw a trace from a log. */
export const DRAWING = {
  detail: valued(
    oneOf('--detail', ['names', 'shapes', 'full']),
    'Arguments of ops: names (none) | shapes (tensor, op, layer, shapes, sources) | full (all recorded)',
    'shapes',
  ),
  'op-name': seldom(
    valued(
      oneOf('--op-name', ['role', 'op', 'tensor']),
      'Names of ops: role (ffn_moe_up MUL_MAT_ID) | op (MUL_MAT_ID) | tensor (ffn_moe_up-3)',
      'role',
    ),
  ),
  tokens: valued(
    parseTokens,
    'Only these llama_decode calls: 3..5 (both included), 7, or 2..; 0 is the prefill',
    'all',
  ),
  memory: seldom(
    valued(
      oneOf('--memory', ['counters', 'lifetimes']),
      'Compute buffers: counters (bytes in use) | lifetimes (also each tensor, from first write to last read)',
      'counters',
    ),
  ),
  barriers: seldom(
    valued(
      oneOf('--barriers', ['long', 'all']),
      'Waits at barriers: long (from 1 µs on; the gap between two operators is a shorter one) | all (as with --detail full)',
      'long',
    ),
  ),
  flows: seldom(
    valued(
      parseFlows,
      'Arrows from each operator to the operators that read its result, for one llama_decode call: token=3',
      'none',
    ),
  ),
  budget: valued(
    bytes('--budget'),
    'Size of the trace that should not be exceeded: what does not fit is summed up; prefills, the first calls, the slowest ' +
      'ones and evenly spread ones stay in full',
    'what viewers open in some 10 s: 96M; JSON 480M',
  ),
  all: flag('All calls in full, however large the trace gets'),
  'all-threads': seldom(flag('Draw all scheduler events, not only those of the traced process and of its CPUs')),
} as const

/** The logs of a command, or its traces. */
export const inputsOf = (describe: string) => ({ type: 'string', array: true, demandOption: true, describe }) as const

/** Throws UsageError for an option that applies only to logs, such as `--op-name`: a trace is shown unchanged. */
export function refuseDrawing(
  args: Readonly<Record<string, unknown>>,
  name: string,
  what = 'a trace, or of no known log format',
): void {
  const options = ['tokens', 'detail', 'opName', 'memory', 'barriers', 'flows', 'budget', 'clock', 'opTable']
  const given = options.find((option) => args[option] !== undefined)
  if (given === undefined) return
  const option = given.replace(/[A-Z]/g, (capital) => `-${capital.toLowerCase()}`)
  throw new UsageError(`--${option} is for logs; ${name} is ${what}`)
}

/** The option for the clocks of inputs. */
export const CLOCKS = {
  clock: {
    type: 'string',
    array: true,
    requiresArg: true,
    nargs: 1,
    coerce: (values: string[] | undefined) => values && Object.fromEntries(values.map(parseClockOf)),
    hidden: true,
    describe:
      '<input>=<clock>: the clock of an input that does not contain it: mono, boot, mono_raw or real; or what to add to its times ' +
      '(+1.2ms), or when it begins on the clock of the log (@1444.4s), or the time zone of local times (UTC+2). By default, the ' +
      'relation is inferred',
  },
} as const

function parseClockOf(text: string): [string, string] {
  const at = text.lastIndexOf('=')
  if (at > 0 && at < text.length - 1) return [text.slice(0, at), text.slice(at + 1)]
  throw new UsageError(
    `--clock "${text}": expected <input>=<clock or offset>, such as trace.txt=mono or trace.txt=+1.2ms`,
  )
}

/** For yargs' `coerce`: the text of an option. Throws UsageError if the option is given twice, because only one would count. */
export function once(option: string): (value: string) => string {
  return (value) => {
    if (Array.isArray(value)) throw new UsageError(`${option} is given ${value.length} times; expected once`)
    return value
  }
}

/** For yargs' `coerce`: one of `choices`. Throws UsageError, with the choices, for anything else. */
export function oneOf<const T extends string>(option: string, choices: readonly T[]): (value: string) => T {
  return (value) => {
    const given = once(option)(value)
    const choice = choices.find((known) => known === given)
    if (choice !== undefined) return choice
    throw new UsageError(`${option} "${given}": expected ${choices.slice(0, -1).join(', ')} or ${choices.at(-1)}`)
  }
}

/** For yargs' `coerce`: one or more of `choices`, separated by commas. */
export function oneOrMore<const T extends string>(option: string, choices: readonly T[]): (value: string) => T[] {
  const one = oneOf(option, choices)
  return (value) =>
    once(option)(value)
      .split(',')
      .map((word) => one(word.trim()))
}

/** For yargs' `coerce`: words, separated by commas or blanks. */
export const words = (option: string) => (value: string) =>
  once(option)(value)
    .split(/[\s,]+/)
    .filter(Boolean)

/** For yargs' `coerce`: `3..5`, `7` or `2..`, the first and the last call, both included. */
export function parseTokens(value: string): readonly [number, number] {
  const text = once('--tokens')(value)
  const match = /^(\d+)(?:(\.\.)(\d+)?)?$/.exec(text.trim())
  const first = Number(match?.[1])
  const last = match?.[2] === undefined ? first : match[3] === undefined ? Infinity : Number(match[3])
  if (match && first <= last) return [first, last]
  const what = match ? 'the first comes after the last' : 'not a range of tokens'
  throw new UsageError(
    `--tokens "${text}": ${what}; expected 3..5 (both included), 7 (one) or 2.. (to the end); 0 is the prefill`,
  )
}

/** `token=3`: the call whose data flow is drawn. */
function parseFlows(value: string): { readonly token: number } {
  const text = once('--flows')(value)
  const match = /^token=(\d{1,9})$/.exec(text.trim())
  if (match) return { token: Number(match[1]) }
  throw new UsageError(
    `--flows "${text}": expected token=<number of a llama_decode call>, such as token=3; 0 is the prefill`,
  )
}

/** For yargs' `coerce`: a whole number from 1. */
export function whole(option: string, least = 1): (value: string) => number {
  return (value) => {
    const text = once(option)(value)
    if (/^\d{1,9}$/.test(text) && Number(text) >= least) return Number(text)
    throw new UsageError(`${option} "${text}": expected a whole number from ${least}`)
  }
}

/** For yargs' `coerce`: whole numbers from 1, separated by commas. */
export const wholes = (option: string) => (value: string) => words(option)(value).map(whole(option))

const TIME_UNITS: Readonly<Record<string, number>> = { us: 1e-3, µs: 1e-3, ms: 1, s: 1000, min: 60_000 }

/** For yargs' `coerce`: a duration; `1.5s` is 1500. */
export function milliseconds(option: string): (value: string) => number {
  return (value) => {
    const text = once(option)(value)
    const [, number, unit = ''] = /^(\d{1,9}(?:\.\d+)?) ?(us|µs|ms|s|min)$/.exec(text) ?? []
    const ms = Number(number) * (TIME_UNITS[unit] ?? NaN)
    if (ms > 0) return ms
    throw new UsageError(`${option} "${text}": expected a time such as 200ms or 1.5s`)
  }
}

const SIZE_UNITS = ['', 'K', 'M', 'G', 'T']

/** For yargs' `coerce`: a size in bytes; `500M` is 500 MiB. */
export function bytes(option: string): (value: string) => number {
  return (value) => {
    const text = once(option)(value)
    const [, number, unit = ''] = /^(\d{1,9}(?:\.\d+)?)([KMGT]?)i?B?$/i.exec(text) ?? []
    const size = Math.floor(Number(number) * 1024 ** SIZE_UNITS.indexOf(unit.toUpperCase()))
    if (size >= LOG_BYTES_MIN) return size
    throw new UsageError(`${option} "${text}": expected a size from 64K, such as 500M or 2G`)
  }
}

/** What the options of a command select, as options of the library. */
export async function conversionOf(args: Conversion): Promise<ConvertOptions> {
  const { from, detail, opName, tokens, memory, barriers, flows, allThreads, clock: clocks, osrt: osRuntime } = args
  const { budget, all } = args
  if (budget !== undefined && all) throw new UsageError('--budget: has no meaning with --all')
  const opTable = await readOpTable(args.opTable)
  return { from, opTable, detail, opName, tokens, memory, barriers, flows, budget, all, clocks, allThreads, osRuntime }
}

type Conversion = Partial<ArgumentsCamelCase<InferredOptionTypes<typeof READING & typeof DRAWING & typeof CLOCKS>>>

/** The value of `--op-table`: the name of a table that the library knows, or the names in a file. */
async function readOpTable(value: string | undefined): Promise<string | readonly string[] | undefined> {
  if (value === undefined || OP_TABLES.some(({ name }) => name === value)) return value
  const text = await textOfFile('--op-table', value, (reason) => {
    const known = OP_TABLES.map(({ name, about }) => `  ${name}  ${about}`).join('\n')
    return `--op-table "${value}": no known table, and not a file (${reason}); known tables:\n${known}`
  })
  return /^\s*[[{]/.test(text) ? jsonTable(value, text) : textTable(value, text)
}

const EXPECTED = 'a JSON array of op names, {"tables": {"<name>": [...]}} with one table, or one op name per line'
const OP_NAME = /^(?:GGML_OP_)?(\w+),?$/

function wrongTable(path: string, what: string): UsageError {
  return new UsageError(`--op-table ${path}: ${what}; expected ${EXPECTED}`)
}

function jsonTable(path: string, text: string): string[] {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch (error) {
    throw wrongTable(path, `not valid JSON: ${(error as Error).message.replaceAll('\n', '\\n')}`)
  }
  const tables = (json as { tables?: unknown } | null)?.tables
  if (tables instanceof Object && !Array.isArray(tables)) json = onlyTable(path, tables)
  if (!Array.isArray(json)) throw wrongTable(path, 'not an array of op names')
  return opNames(path, json, (i) => `element ${i}`)
}

const TABLES_SHOWN = 8

/** A value of JSON in short: one that contains others may be of any depth. */
function shown(value: unknown): string {
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? 'an array' : 'an object'
  return JSON.stringify(value).slice(0, 60)
}

function onlyTable(path: string, tables: object): unknown {
  const names = Object.keys(tables)
  if (names.length === 1) return Object.values(tables)[0]
  const list = names.slice(0, TABLES_SHOWN).map(shown)
  if (names.length > TABLES_SHOWN) list.push('…')
  throw wrongTable(path, names.length === 0 ? 'no table in it' : `${names.length} tables in it (${list.join(', ')})`)
}

function textTable(path: string, text: string): string[] {
  return opNames(path, text.trimEnd().split(/\r?\n/), (i) => `line ${i + 1}`)
}

function opNames(path: string, values: readonly unknown[], place: (i: number) => string): string[] {
  if (values.length === 0) throw wrongTable(path, 'no op names in it')
  return values.map((value, i) => {
    const name = typeof value === 'string' ? OP_NAME.exec(value.trim())?.[1] : undefined
    if (name === undefined) throw wrongTable(path, `${place(i)} is ${shown(value)}`)
    return name
  })
}
