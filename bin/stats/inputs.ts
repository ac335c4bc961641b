import { type Analysis, type AnalyzeOptions, analyze, type LogInput, readAnalysis, UsageError } from '../../lib/cli.ts'
import { asLog, openAny } from '../inputs.ts'
import { io } from '../io.ts'
import { type CLOCKS, conversionOf, type READING } from '../options.ts'
import { progressOf } from '../progress.ts'
import { note, quoted } from '../terminal.ts'
import { otherCsv } from './sections.ts'

/** Inputs of `stats`, and how they are read. */
export type StatsInputs = { readonly inputs: readonly string[] } & Readonly<
  Partial<Record<keyof typeof READING | keyof typeof CLOCKS | 'opTable' | MachineKey, unknown>>
>

type MachineKey = 'expertCache' | 'peaks' | 'peakGflops' | 'peakGbs' | 'flopsPerToken' | 'cacheType'
type More = 'series' | 'call' | 'expertCaches' | 'peaks' | 'flopsPerToken' | 'cacheTypes'

/**
 * The Analysis of logs of one run, or the one that is stored in the only input. Shows the progress of reading. Throws UsageError for
 * several Analyses, and for inputs without anything to analyse. `analyzed`: what analyses logs.
 */
export async function analysisOf(
  args: StatsInputs,
  more: Pick<AnalyzeOptions, More> = {},
  analyzed: typeof analyze = analyze,
): Promise<Analysis> {
  const { inputs } = args
  if (inputs.filter((input) => input === '-').length > 1) throw new UsageError('stdin (-) can be read only once')
  const { from, opTable, clocks, osRuntime } = await conversionOf(args as Parameters<typeof conversionOf>[0])
  if (io().stdin.isTTY && inputs.includes('-')) await note('reading a log from the terminal; Ctrl-D ends it')
  const progress = await progressOf(inputs, false)
  try {
    const logs: LogInput[] = []
    for (const [i, input] of inputs.entries()) {
      const opened = await openAny(input, progress.onRead(i))
      if (opened.kind !== 'analysis') logs.push(await asLog(opened))
      else if (inputs.length > 1)
        throw new UsageError(`${opened.name}: is an Analysis, of a whole run already; found ${inputs.length} inputs`)
      else return await storedAnalysis(opened, args)
    }
    const analysis = await analyzed(logs, { from, opTable, clocks, osRuntime, ...more })
    refuseNothing(analysis)
    return analysis
  } finally {
    progress.stop()
  }
}

/** Options that only a log has a use for. */
const OF_LOGS = [
  ...(['from', 'opTable', 'osrt', 'clock'] as const),
  ...(['peaks', 'peakGflops', 'peakGbs', 'flopsPerToken', 'cacheType', 'expertCache'] as const),
]

async function storedAnalysis(input: LogInput, args: StatsInputs): Promise<Analysis> {
  const given = OF_LOGS.find((option) => args[option] !== undefined && args[option] !== false)
  if (given !== undefined)
    throw new UsageError(
      `--${given.replace(/[A-Z]/g, (capital) => `-${capital.toLowerCase()}`)} is for logs; ${input.name} is an Analysis`,
    )
  return readAnalysis(input)
}

/** Throws UsageError for logs without calls and operators, unless there is a finding: their losses, which `convert` names, too. */
function refuseNothing(analysis: Analysis): void {
  const { inputs, calls, operators, call_time, model, rooflines, requests } = analysis
  const { findings, functions, load, sampling, benchmarks } = analysis
  const lists = [call_time, rooflines, functions, benchmarks, findings]
  const count = operators.executions + inputs.reduce((sum, input) => sum + input.operators, 0)
  if (calls.count + calls.failed + count > 0 || lists.some((list) => list.length > 0)) return
  if (model || requests || load || sampling || otherCsv(analysis, 0)) return
  const formats = inputs.map(({ name, format }) => `${name}: ${format}`).join(', ')
  const hint = `ggml2perfetto stats --contents ${inputs.map(({ name }) => quoted(name)).join(' ')}`
  throw new UsageError(
    `nothing to analyse: no calls, no graphs, no operators, no GPU work (${formats})\nhint: what it contains: ${hint}`,
  )
}
