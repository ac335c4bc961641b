import type { Analysis, SeriesName } from '../analyze/analysis.ts'
import { AnalysisPass } from '../analyze/analysis-pass.ts'
import { type AnalysedLog, assemble } from '../analyze/assemble.ts'
import { ContentsPass } from '../analyze/run/contents.ts'
import { SummaryPass } from '../analyze/summary.ts'
import { UsageError } from '../errors.ts'
import { Names } from '../model/names.ts'
import { Placing } from './clocks/placing.ts'
import { Companions } from './companions.ts'
import { beginLogs, closeAll, type Input, openInputs, type ReadingOptions } from './inputs.ts'

/** What is analysed, and how inputs are read. */
export interface AnalyzeOptions extends ReadingOptions {
  /** Clocks of inputs, as {@link ConvertOptions} has them. */
  readonly clocks?: Readonly<Record<string, string>> | undefined
  /** Figures over time that are added as {@link Analysis.series}; by default none. `calls`: a table of calls. */
  readonly series?: readonly SeriesName[] | undefined
}

/**
 * Analyses one log, or several of one run: bytes → reader → events → passes → Analysis. Memory grows with the number of distinct
 * tensors, not with the length of the logs. Throws as {@link convert} does.
 */
export async function analyze(inputs: Input | readonly Input[], options: AnalyzeOptions = {}): Promise<Analysis> {
  const all = [inputs].flat() as readonly Input[]
  if (all.length === 0) throw new UsageError('no input: there is nothing to analyse')
  const names = new Names()
  const opened = await openInputs(all, names, options)
  try {
    const companions = await Companions.read(opened, names)
    const logs = await beginLogs(companions.logs, companions.definitions)
    const placing = new Placing(options.clocks ?? {}, logs)
    const analysed: AnalysedLog[] = []
    for (const log of logs) {
      const placed = await placing.place(log)
      const summary = new SummaryPass(names)
      const figures = new AnalysisPass(names, { distributions: true, series: options.series })
      const contents = new ContentsPass(names)
      for await (const batch of placed.batches) {
        summary.take(batch)
        contents.take(batch)
        figures.take(placed.take(batch))
        if (batch[0]!.kind === 'input') figures.take(placed.take(companions.take(batch[0]!)))
      }
      summary.take(placed.issues(summary))
      const firstNs = placed.timeOf(summary.firstNs)
      analysed.push({
        name: log.name,
        summary: summary.finish(),
        contents: contents.finish(),
        figures: figures.finish(firstNs),
      })
    }
    return assemble(analysed)
  } finally {
    await closeAll(opened)
  }
}
