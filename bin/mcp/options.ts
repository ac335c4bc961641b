import { parseArgs } from 'node:util'
import { UsageError } from '../../lib/cli.ts'

/** Seconds that a call takes, at most, and that a program is recorded. */
const TIMEOUT_S = 60
const RECORD_S = 600

/** How the server was started. */
export interface Options {
  readonly folders: readonly string[]
  readonly timeoutMs: number
  /** Programs that may be recorded; undefined: none. */
  readonly programs: readonly string[] | undefined
  readonly recordMs: number
}

/** What --help prints. */
export const HELP = `ggml2perfetto-mcp [options]

An MCP server on standard input and output, for coding agents: why a run of llama.cpp was slow, statistics, SQL,
comparisons, graphs. It reads files of given folders only, runs no shell, and sends nothing anywhere.

Options:
  --folder <path>       A folder whose logs may be read; may be given several times. Relative paths are of the
                        first one                                                      [default: this folder]
  --timeout <seconds>   The most time of a call                                                [default: ${TIMEOUT_S}]
  --allow-record        Also record programs: those of --program
  --program <path>      With --allow-record: a program that may be recorded; may be given several times
  --record-timeout <s>  With --allow-record: the most time of a recording                     [default: ${RECORD_S}]
  --version             Print the version
  -h, --help            Print this

Settings of a client:
  { "mcpServers": { "ggml2perfetto": { "command": "npx", "args": ["-y", "-p", "ggml2perfetto", "ggml2perfetto-mcp"] } } }

docs/reference/mcp.md describes the tools; SKILL.md in the package is for agents.`

const OPTIONS = {
  folder: { type: 'string', multiple: true },
  timeout: { type: 'string' },
  'allow-record': { type: 'boolean' },
  program: { type: 'string', multiple: true },
  'record-timeout': { type: 'string' },
  version: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const

/** The options in arguments, or what is only to be printed. Throws UsageError for others. */
export function optionsOf(args: readonly string[]): Options | 'help' | 'version' {
  const values = parsed(args)
  if (values.help) return 'help'
  if (values.version) return 'version'
  const { folder, timeout, program, 'allow-record': allowRecord, 'record-timeout': recordTimeout } = values
  if (!allowRecord && (program ?? recordTimeout) !== undefined)
    throw new UsageError(`--${program ? 'program' : 'record-timeout'}: expected --allow-record, too`)
  if (allowRecord && !program?.length)
    throw new UsageError(
      '--allow-record: expected the programs that may be recorded\nhint: --allow-record --program /usr/bin/llama-bench',
    )
  return {
    folders: folder ?? ['.'],
    timeoutMs: secondsOf('--timeout', timeout ?? `${TIMEOUT_S}`) * 1000,
    programs: allowRecord ? program : undefined,
    recordMs: secondsOf('--record-timeout', recordTimeout ?? `${RECORD_S}`) * 1000,
  }
}

function parsed(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: OPTIONS }).values
  } catch (error) {
    throw new UsageError(`${(error as Error).message}\nhint: ggml2perfetto-mcp --help`)
  }
}

function secondsOf(option: string, text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) > 0) return Number(text)
  throw new UsageError(`${option} "${text}": expected a whole number of seconds from 1`)
}
