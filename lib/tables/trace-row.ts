import type { Finding } from '../analyze/analysis.ts'
import type { Contents } from '../analyze/run/contents.ts'
import { runOf } from '../analyze/run/facts.ts'
import { mainLog } from '../analyze/run/main-log.ts'
import type { Summary } from '../analyze/summary/figures.ts'
import type { InputEvent } from '../model/events.ts'
import type { NewRow } from './table-file.ts'

/** A log of the run that was read. */
export interface ReadLog {
  readonly name: string
  readonly first: InputEvent
  readonly summary: Summary
  readonly contents: Contents
}

/** What is known of a run and is not in the summary of a log. */
export interface RunOfTables {
  /** Version of the program. */
  readonly exporter: string
  /** Real time of the run's origin, in ns since 1970. */
  readonly originUnixNs: bigint | undefined
  /** Sums of operators. */
  readonly operatorNs: number
  readonly waitNs: number
  readonly requests: number
  /** From the first to the last event, since the run's origin. */
  readonly firstNs: number
  readonly lastNs: number
}

/** The row of the run. `logs`: those that the run consists of; the first one's clock is the run's. */
export function traceRow(logs: readonly ReadLog[], run: RunOfTables): NewRow<'trace'> {
  const main = mainLog(logs)
  const facts = runOf(
    { ...main, figures: NO_CPUS },
    logs.map((log) => ({ ...log, figures: NO_CPUS })),
    [],
  )
  const { host, cpu, cpus, kernel, build, command, model, architecture } = facts
  const { parameters, layers, workers, threads, level } = facts
  const { summary } = main
  const { calls } = summary
  const { prefill, mixed, decode } = calls.by_phase
  const [first] = logs as readonly [ReadLog]
  const hasClock = first.first.clock !== 'unknown' && first.first.clock !== 'none'
  const errors = logs.flatMap(({ summary: { relation } }) => relation?.bound_ns ?? [])
  const issues = logs.flatMap((log) => log.summary.issues)
  return {
    log: first.name,
    logs: logs.length,
    format: summary.format,
    exporter: run.exporter,
    origin_ns: first.first.originNs,
    clock: hasClock ? first.first.clock : null,
    origin_unix_ns: run.originUnixNs ?? null,
    clock_error_ns: errors.length > 0 ? Math.max(...errors) : null,
    first_ts_ns: run.firstNs,
    dur_ns: logs.some(({ summary: { times } }) => times === 'recorded') ? run.lastNs - run.firstNs : null,
    ...{ host, cpu, cpus, kernel, build, command, model, architecture },
    quant: facts.weights?.[0]?.type ?? null,
    backends: facts.backends.join(',') || null,
    ...{ parameters, layers, workers, threads, level },
    calls: calls.count,
    failed_calls: calls.failed,
    prefill_calls: (prefill?.calls ?? 0) + (mixed?.calls ?? 0),
    decode_calls: decode?.calls ?? 0,
    prompt_tokens: prefill?.tokens ?? 0,
    decode_tokens: decode?.tokens ?? 0,
    ttft_ns: calls.ttft_ns,
    tpot_ns: calls.tpot_ns,
    prefill_tok_per_s: calls.prefill_tokens_per_s,
    decode_tok_per_s: calls.decode_tokens_per_s,
    operators: summary.operators,
    operator_ns: run.operatorNs,
    wait_ns: run.waitNs,
    requests: run.requests,
    issues: issues.reduce((sum, { count }) => sum + count, 0),
    lost: Object.values(facts.losses).reduce((sum, count) => sum + count, 0),
    issue_counts: issues.length === 0 ? null : JSON.stringify(countsOf(issues)),
  }
}

const NO_CPUS = { cpus_used: null, cpusOfWorkers: [] } as const

function countsOf(issues: Summary['issues']): Record<string, number> {
  const counts = new Map<string, number>()
  for (const { code = null, title, count } of issues) {
    const key = code ?? title
    counts.set(key, (counts.get(key) ?? 0) + count)
  }
  return Object.fromEntries(counts)
}

/** The rows of the findings of a run, most time first. */
export function findingRows(findings: readonly Finding[]): NewRow<'finding'>[] {
  return findings.map(({ rule, sentence, time_ns, confidence, evidence, advice }, rank) => {
    return {
      rank,
      rule,
      sentence,
      time_ns: Math.round(time_ns),
      confidence,
      evidence: JSON.stringify(evidence),
      advice,
    }
  })
}
