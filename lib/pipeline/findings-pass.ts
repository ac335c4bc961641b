import { AnalysisPass } from '../analyze/analysis-pass.ts'
import { type AnalysedLog, documentOf, judged } from '../analyze/assemble.ts'
import { BenchmarkPass } from '../analyze/benchmarks/benchmarks.ts'
import type { OnCall } from '../analyze/calls/call-times.ts'
import { CallSample } from '../analyze/common/sampled-calls.ts'
import { NO_FIGURES } from '../analyze/input-figures.ts'
import { PowerPass } from '../analyze/power/power-pass.ts'
import { recordedIn } from '../analyze/run/contents.ts'
import type { Summary } from '../analyze/summary/figures.ts'
import type { SummaryPass } from '../analyze/summary/summary.ts'
import { CallTakers } from '../analyze/threads/call-takers.ts'
import { ThreadHistory } from '../analyze/threads/thread-history.ts'
import type { TokenEvent, TraceEvent } from '../model/events.ts'
import type { Names } from '../model/names.ts'
import type { ReadingEvent } from '../model/power-events.ts'
import type { CpuWait } from '../model/waits.ts'

export { PowerPass }

/** States of threads that are no longer needed are dropped every so many batches. */
const TRIM_EVERY = 64

/** Finds what made the run of one log slow while it is converted: from a sample of its calls, for a small part of the time. */
export class FindingsPass {
  private readonly threads: ThreadHistory
  private readonly figures: AnalysisPass
  private readonly benchmarks: BenchmarkPass
  private readonly takers: CallTakers
  private readonly kinds = new Set<TraceEvent['kind']>()
  private batches = 0
  private readonly sample = new CallSample()

  /**
   * `timeOf`: a time of the log on the trace's clock; `isOwn`: does a thread belong to the traced process? `isOfScheduler`: losses only. `power` is
   * of all logs of the run, `input` the name of this one.
   */
  constructor(
    names: Names,
    private readonly timeOf: (ns: number) => number = (ns) => ns,
    isOwn: (tid: number) => boolean = () => false,
    readonly isOfScheduler = false,
    private readonly power = new PowerPass(names),
    private readonly input = '',
  ) {
    this.takers = new CallTakers(names, isOwn)
    this.threads = new ThreadHistory(names, { pids: [], hasSwitches: false })
    this.benchmarks = new BenchmarkPass(names)
    this.figures = new AnalysisPass(names, this.threads, { distributions: false, sample: this.sample })
  }

  /** Takes a batch together with the summary: an event that is in the CPU's cache is looked at for nothing. */
  take(batch: readonly TraceEvent[], summary: SummaryPass): void {
    const { figures, sample, isOfScheduler } = this
    for (const event of batch) {
      summary.event(event)
      if (isOfScheduler) {
        this.kinds.add(event.kind)
        continue
      }
      // Most events of a long log; few are in the sample.
      if (event.kind === 'operator' && !sample.operator(event.call)) continue
      this.kinds.add(event.kind)
      figures.event(event)
      if (event.kind === 'token' || event.kind === 'reading') this.ofPower(event)
      else if (event.kind === 'meter') this.power.take([event], this.input)
      else if (event.kind === 'input' || event.kind === 'benchmark') this.benchmarks.take([event])
      if (event.kind === 'token' && sample.call(event.call))
        this.takers.call(event.phase, this.timeOf(event.startNs), this.timeOf(event.endNs), sample.weightOf(event.call))
    }
    if (++this.batches % TRIM_EVERY > 0) return
    const { earliestNs } = this.figures
    if (earliestNs !== undefined) this.threads.trim(earliestNs)
  }

  /** A call, or a reading, on the trace's clock. */
  private ofPower(event: TokenEvent | ReadingEvent): void {
    const { timeOf, input } = this
    this.power.take([{ ...event, startNs: timeOf(event.startNs), endNs: timeOf(event.endNs) }], input)
  }

  /** A call with its time, for the summary's pass to call: times of calls are known there. */
  readonly timed: OnCall = (scope, event, timed) => {
    if (scope === 'all') this.figures.timed(event, timed)
  }

  /** A worker waited for its CPU, on the trace's clock. */
  readonly waited = (wait: CpuWait): void => this.takers.wait(wait)

  /** The findings of the log and of those that accompany it; of the main one also those about power. */
  of(log: ReadLog, others: readonly ReadLog[], isMain: boolean): Findings {
    const { summary } = log
    const found = documentOf(
      [log, ...others].map(analysed),
      () => [],
      () => NO_MODEL,
    )
    const { scheduling } = found
    const power = isMain ? this.power.finish() : null
    const { findings, verdict } = judged({ ...found, power, scheduling: scheduling && this.takers.named(scheduling) })
    const isKnown = verdict.subject !== 'none' || (summary.gpu_work === 0 && hasAnyCalls(summary))
    return { findings, findings_are_estimates: this.sample.isPartial, verdict: isKnown ? verdict : undefined }
  }

  /** What it knows of its log. */
  finish({ operators }: Summary): Pick<AnalysedLog, 'contents' | 'figures' | 'benchmarks'> {
    if (operators > 0) this.kinds.add('operator')
    const contents = { ...NOTHING, recorded: recordedIn(this.kinds) }
    const figures = this.isOfScheduler ? NO_FIGURES : this.figures.finish()
    return { contents, figures, benchmarks: this.benchmarks.finish() }
  }
}

/** What made a run slow, as far as it is in a summary. */
export type Findings = Pick<Summary, 'findings' | 'findings_are_estimates' | 'verdict'>

/** A log that was read, with the pass that took its events. */
export interface ReadLog {
  readonly name: string
  readonly summary: Summary
  readonly pass: FindingsPass | undefined
}

/** The findings of each log. Recordings of the scheduler, which are last, accompany the first one: what they lost makes its figures doubtful. */
export function findingsOf(logs: readonly ReadLog[]): Findings[] {
  const others = logs.filter(({ pass }, i) => i > 0 && pass?.isOfScheduler)
  return logs.map((log, i) => (others.includes(log) ? {} : (log.pass?.of(log, i === 0 ? others : [], i === 0) ?? {})))
}

const analysed = ({ name, summary, pass }: ReadLog): AnalysedLog => {
  return { name, summary, ...pass!.finish(summary) }
}

/** Also warm-ups, and calls that failed. */
const hasAnyCalls = ({ calls }: Summary) => calls.failed > 0 || Object.keys(calls.by_phase).length > 0

/** What findings do not look at, or only where peaks are given. */
const NO_MODEL = { model: null, rooflines: [], undetermined: [] } as const
const NOTHING = { modelFiles: [], parameters: null, weights: null, layers: 0 } as const
