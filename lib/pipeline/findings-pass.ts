import type { Finding } from '../analyze/analysis.ts'
import { AnalysisPass } from '../analyze/analysis-pass.ts'
import { assemble } from '../analyze/assemble.ts'
import { findings, type Weights } from '../analyze/findings/findings.ts'
import type { Summary, SummaryPass } from '../analyze/summary.ts'
import { ThreadHistory } from '../analyze/threads/thread-history.ts'
import type { TraceEvent } from '../model/events.ts'
import type { Names } from '../model/names.ts'

/** States of threads that are no longer needed are dropped every so many batches. */
const TRIM_EVERY = 64

/** Finds what made the run of one log slow while it is converted: from a sample of its calls, for a small part of the time. */
export class FindingsPass {
  private readonly threads: ThreadHistory
  private readonly figures: AnalysisPass
  private batches = 0

  constructor(names: Names) {
    this.threads = new ThreadHistory(names, { pids: [], hasSwitches: false })
    this.figures = new AnalysisPass(names, this.threads, { distributions: false, sample: true })
  }

  /** Takes a batch together with the summary: an event that is in the CPU's cache is looked at for nothing. */
  take(batch: readonly TraceEvent[], summary: SummaryPass): void {
    const { figures } = this
    for (const event of batch) {
      summary.event(event)
      figures.event(event)
    }
    if (++this.batches % TRIM_EVERY > 0) return
    const { earliestNs } = this.figures
    if (earliestNs !== undefined) this.threads.trim(earliestNs)
  }

  /** The findings, with the summary of the same log. */
  of(summary: Summary, name: string): Finding[] {
    const analysis = assemble([{ name, summary, contents: NOTHING, figures: this.figures.finish() }], () => [])
    const weights: Record<string, number> = {}
    for (const { phase, calls } of analysis.call_time)
      weights[phase] = (analysis.calls.by_phase[phase]?.calls ?? calls) / calls
    return findings(analysis, weights as Weights)
  }
}

/** What findings do not look at. */
const NOTHING = { recorded: ['graphs'], modelFiles: [], parameters: null, weights: null, layers: 0 } as const
