import type { RunVerdict, Summary } from '../lib/cli.ts'
import type { Section } from './stats/section.ts'
import { quoted } from './terminal.ts'

/** The first lines of a command: the answer, and how to get what is missing in it. `inputs`: the logs, as they were given. */
export function verdictLines({ sentence, hint }: RunVerdict, inputs: readonly string[]): string[] {
  return [sentence, ...(hint === null ? [] : [`  ${hintText(hint, inputs)}`])]
}

const hintText = (hint: string, inputs: readonly string[]) => hint.replace('<logs>', () => inputs.map(quoted).join(' '))

/** The same of the logs of a trace. */
export function verdictOfLogs(summaries: readonly Summary[], inputs: readonly string[]): string[] {
  const verdict = summaries.flatMap(({ verdict }) => verdict ?? [])[0]
  return verdict ? verdictLines(verdict, inputs) : []
}

/** The same as the first section of statistics. */
export function verdictSection({ sentence, hint }: RunVerdict, inputs: readonly string[]): Section {
  return { title: sentence, ...(hint !== null && { lines: [hintText(hint, inputs)] }) }
}
