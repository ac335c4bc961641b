import { readdir, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { type Analysis, type RunsOfSide, UsageError } from '../../lib/cli.ts'
import type { READING } from '../options.ts'
import { analysisOf } from '../stats/inputs.ts'
import { runsOf } from '../stats/scaling.ts'
import { note, quoted } from '../terminal.ts'

/** Files of a folder that are runs: logs, recordings of the scheduler, stored Analyses. */
const RUN_FILE = /\.(ggtrace|csv|ktrace|bin|json|dat)(\.gz)?$/i

/** How the logs of both sides are read. */
export type SideReading = Readonly<Partial<Record<keyof typeof READING | 'opTable', unknown>>>

/** The files of the sides: those given, and those in given folders. One folder alone is one that `compare --runs` wrote. */
export async function filesOf(
  inputs: readonly string[],
  others: readonly string[],
): Promise<{ readonly before: readonly string[]; readonly after: readonly string[] }> {
  if (others.length > 0) return { before: await expanded(inputs), after: await expanded(others) }
  const files = await expanded(inputs)
  const filesOfSide = (side: string) => files.filter((path) => new RegExp(`^${side}-\\d+\\.`).test(basename(path)))
  const [before, after] = [filesOfSide('a'), filesOfSide('b')]
  if (inputs.length === 1 && before.length > 0 && after.length > 0) return { before, after }
  const all = inputs.map(quoted).join(' ')
  if (inputs.length === 2)
    throw new UsageError(
      `${all}: which are the sides?\nhint: ggml2perfetto compare ${quoted(inputs[0]!)} --with ${quoted(inputs[1]!)}`,
    )
  throw new UsageError(
    `nothing to compare ${all} with\nhint: ggml2perfetto compare ${all} --with <logs…>, or a folder that compare --runs wrote`,
  )
}

async function expanded(inputs: readonly string[]): Promise<string[]> {
  const files: string[] = []
  for (const input of inputs) {
    const isFolder = await stat(input).then(
      (entry) => entry.isDirectory(),
      () => false,
    )
    if (!isFolder) files.push(input)
    else {
      const found = (await readdir(input)).filter((name) => RUN_FILE.test(name)).sort(naturally())
      if (found.length === 0) throw new UsageError(`${input}: the folder contains neither logs nor Analyses`)
      files.push(...found.map((name) => join(input, name)))
    }
  }
  return files
}

/** `a-2` before `a-10`; made where it is used, as it takes 7 ms. */
const naturally = () => new Intl.Collator('en', { numeric: true }).compare

/** Analyses of the runs of a side: a run is a process, with the recordings of the scheduler that belong to it. */
export async function sideOf(name: string, files: readonly string[], reading: SideReading): Promise<RunsOfSide> {
  const runs: Analysis[] = []
  for (const inputs of await runsOf({ inputs: files, ...reading })) {
    const analysis = await analysisOf({ ...reading, inputs })
    const { calls, operators, benchmarks } = analysis
    if (calls.count === 0 && operators.executions === 0 && benchmarks.length === 0)
      await note(`${inputs.join(' ')}: contains neither calls nor operators`)
    runs.push(analysis)
  }
  return { name, runs }
}
