import { type Analysis, describeProgramClock, type RunVerdict, type Summary } from '../lib/cli.ts'
import type { Section } from './stats/section.ts'
import { quoted } from './terminal.ts'
import { duration, plural } from './units.ts'

/** The first lines of a command: the answer, and how to get what is missing in it. `inputs`: the logs, as they were given. */
export function verdictLines({ sentence, hint }: RunVerdict, inputs: readonly string[]): string[] {
  return [sentence, ...(hint === null ? [] : [`  ${hintText(hint, inputs)}`])]
}

const hintText = (hint: string, inputs: readonly string[]) => hint.replace('<logs>', () => inputs.map(quoted).join(' '))

/** After them, where the times are not those that the program prints. */
export function clockLines({ run: { program_clock: clock } }: Analysis): string[] {
  return clock ? [`  ${describeProgramClock(clock)}: times here are of the system`] : []
}

/** The same of the logs of a trace. */
export function verdictOfLogs(summaries: readonly Summary[], inputs: readonly string[]): string[] {
  const verdict = summaries.flatMap(({ verdict }) => verdict ?? [])[0]
  return verdict ? verdictLines(verdict, inputs) : gpuLine(summaries, inputs)
}

/** Of work of GPUs: gaps in it are not looked for while a trace is written. */
function gpuLine(summaries: readonly Summary[], inputs: readonly string[]): string[] {
  const sum = (of: (summary: Summary) => number) => summaries.reduce((all, summary) => all + of(summary), 0)
  const [work, ns] = [sum(({ gpu_work }) => gpu_work), sum(({ gpu_work_ns }) => gpu_work_ns)]
  if (work === 0) return []
  const why = `ggml2perfetto why ${inputs.map(quoted).join(' ')}`
  return [`GPU: ${plural(work, 'piece')} of work, ${duration(ns)} in all`, `  how busy it was, and why not: ${why}`]
}

/** The same as the first section of statistics. */
export function verdictSection({ sentence, hint }: RunVerdict, inputs: readonly string[]): Section {
  return { title: sentence, ...(hint !== null && { lines: [hintText(hint, inputs)] }) }
}
