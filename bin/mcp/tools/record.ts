import { lstat, realpath } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { UsageError } from '../../../lib/cli.ts'
import { callOf, shortened, shortText } from '../answer.ts'
import { runCli } from '../child.ts'
import { oneOf, type Session, type Tool, text, whole } from '../tool.ts'

interface Arguments {
  readonly program: string
  readonly arguments?: readonly string[]
  readonly output?: string
  readonly level?: string
  readonly seconds?: number
}

/** Bytes of a log, at most. */
const MAX_SIZE = '512M'
/** Characters of what the program printed that an answer contains: the last ones. */
const SHOWN = 700
const LEVELS = ['token', 'graph', 'op']

/** The tool `record`, which the server has only with --allow-record. */
export const recordTool: Tool<Arguments> = {
  name: 'record',
  title: 'Record a program',
  description:
    'Runs one of the programs that the server allows, without a shell, and records what ggml does in it. The log is written to the first folder. ' +
    'A run of some seconds is enough: -n 32. Then call `summary` with the log.',
  input: {
    program: { type: 'string', minLength: 1, maxLength: 4096, description: 'A program, as in --program, or its name' },
    arguments: {
      ...{ type: 'array', items: { type: 'string', maxLength: 32_768 }, maxItems: 256 },
      description: 'Its arguments',
    },
    output: { type: 'string', pattern: '^[\\w][\\w.-]{0,100}\\.ggtrace$', description: 'Name of a new log' },
    level: oneOf(LEVELS, 'What is recorded; by default op: each operator'),
    seconds: whole('The program is ended after so many seconds', 1, 86_400),
  },
  required: ['program'],
  evidence: {
    log: { type: 'string', description: 'The log' },
    exit_code: { type: 'integer', description: 'That of the program' },
    is_ended: { type: 'boolean', description: 'It was ended at the limit of time' },
    printed: text('The end of what the program printed', 2 * SHOWN),
    messages: text('The end of what it, and the recorder, printed to standard error', 2 * SHOWN),
  },
  isReadOnly: false,
  async run(args, session, { signal, onTick }) {
    const { arguments: given = [], level = 'op', seconds = Infinity } = args
    const program = await allowed(args.program, session)
    if (given.some((argument) => argument.includes('\0')))
      throw new UsageError('arguments: expected texts, found a character NUL')
    const log =
      args.output ?? `${basename(program)}-${new Date().toISOString().replace(/[:.]/g, '-').slice(0, 19)}.ggtrace`
    if (await lstat(join(session.places.first, log)).catch(() => undefined))
      throw new UsageError(`${log}: exists\nhint: name another log with output`)
    const command = ['record', '-o', log, '--level', level, '--max-size', MAX_SIZE, '--', program, ...given]
    const ran = await runCli(
      command,
      {
        folder: session.places.first,
        limitMs: Math.min(session.options.recordMs, seconds * 1000),
        ...{ signal, onTick, isOfProgram: true, isEnded: true },
      },
      Array.from({ length: 256 }, (_, code) => code),
    )
    if (!(await lstat(join(session.places.first, log)).catch(() => undefined)))
      throw new UsageError(shortText(`${program} wrote no log: ${ran.stderr.slice(-SHOWN).trim()}`, 2 * SHOWN))
    return shortened({
      verdict: ran.isEnded ? `recorded ${log} until the limit of time` : `recorded ${log}, exit code ${ran.code}`,
      evidence: {
        ...{ log, exit_code: ran.code, is_ended: ran.isEnded },
        ...{ printed: ran.stdout.slice(-SHOWN), messages: ran.stderr.slice(-SHOWN) },
      },
      check: [callOf('stats', { logs: [log], section: 'run.losses' }, 'whether records are missing')],
      next: [callOf('summary', { logs: [log] }, 'how fast it was, and why')],
      left: null,
    })
  },
}

/** The file of a program of the list. Throws UsageError for others. */
async function allowed(given: string, { options }: Session): Promise<string> {
  const { programs = [] } = options
  const program = programs.find((path) => path === given) ?? programs.find((path) => basename(path) === given)
  if (program === undefined)
    throw new UsageError(`${given}: expected one of the programs that may be recorded, ${programs.join(', ')}`)
  return realpath(program).catch(() => {
    throw new UsageError(`${program}: no such program`)
  })
}
