import type { ArgumentsCamelCase, CommandModule } from 'yargs'
import { type CheckResult, checkTrace, UsageError } from '../../lib/cli.ts'
import { COMMANDS } from '../commands.ts'
import { openInput, readWhole } from '../inputs.ts'
import { io } from '../io.ts'
import { aligned, note, print } from '../terminal.ts'
import { count, plural, size } from '../units.ts'

interface Arguments {
  trace: string
}

/** `ggml2perfetto check <trace>` */
export const checkCommand: CommandModule<object, Arguments> = {
  ...COMMANDS.check,
  builder: (yargs) =>
    yargs
      .positional('trace', {
        type: 'string',
        demandOption: true,
        describe: "Perfetto trace, Chrome JSON or a ZIP of traces, gzip'ed or not, written by any tool; - for stdin",
      })
      .example('$0 check run.csv.pftrace', 'walks the packets or events, then loads it in trace_processor'),
  handler,
}

async function handler({ trace }: ArgumentsCamelCase<Arguments>): Promise<void> {
  const { name, kind, isTrace, source } = await openInput(trace)
  const bytes = trace === '-' ? await readWhole(source) : undefined
  await source.return()
  if (kind === 'log' && !isTrace) {
    throw new UsageError(`${name}: is a log, not a trace\nhint: convert it first: ggml2perfetto ${name}`)
  }
  const result = await checkTrace(bytes ?? trace)
  const report = describe(name, result)
  if (report.isSound) return print(report.lines)
  io().exitCode = 1
  await note(report.lines)
}

function describe(name: string, { kind, walk, problems }: CheckResult): { isSound: boolean; lines: string[] } {
  const { packets, bytes, problem } = walk
  const parts = kind === 'zip' ? 'an archive' : plural(packets, kind === 'json' ? 'event' : 'packet')
  const read = `${parts}, ${size(bytes)}`
  if (kind === 'perfetto' && problem?.kind === 'garbage' && packets === 0) {
    return { isSound: false, lines: [`error: ${name}: not a Perfetto trace (protobuf): ${problem.message}`] }
  }
  if (problem) return { isSound: false, lines: [`error: ${name}: ${problem.kind} after ${read}: ${problem.message}`] }
  if (problems.length === 0) {
    return { isSound: true, lines: [`${name}: ${read}: complete; trace_processor imports it without errors`] }
  }
  const lines = aligned(
    problems.map(({ name, idx, severity, value, description }) => {
      const which = idx === null ? name : `${name}[${idx}]`
      return [`${which} (${severity})`, `${count(value)} ×  ${description.replace(/\s+/g, ' ').trim()}`]
    }),
  )
  return { isSound: false, lines: [`error: ${name}: ${read}: complete, but on import:`, ...lines] }
}
