import { ANALYSIS_SCHEMA, type Analysis, type CallFigures, type RunFacts, type Undetermined } from './analysis.ts'
import type { InputFigures } from './analysis-pass.ts'
import type { Summary } from './summary.ts'

/** One input: its summary, and what its calls and operators add. */
export interface AnalysedLog {
  readonly name: string
  readonly summary: Summary
  readonly figures: InputFigures
}

/** Makes the Analysis of a run from its logs; the first one with operators or calls is the run's. */
export function assemble(logs: readonly AnalysedLog[]): Analysis {
  const main =
    logs.find(({ summary }) => summary.operators > 0) ?? logs.find(({ summary }) => summary.drawn > 0) ?? logs[0]!
  const { summary, figures } = main
  const undetermined: Undetermined[] = []
  return {
    schema: ANALYSIS_SCHEMA,
    inputs: logs.map(({ name, summary }) => ({
      name,
      format: summary.format,
      clock: summary.clock,
      duration_ns: summary.durationNs,
      operators: summary.operators,
      issues: countsOf(summary),
    })),
    run: runOf(summary, figures),
    calls: callsOf(summary, undetermined),
    call_time: figures.call_time,
    operators: figures.operators,
    workers: figures.workers,
    scheduling: null,
    model: null,
    rooflines: [],
    findings: [],
    undetermined,
  }
}

function countsOf({ issues }: Summary): Record<string, number> {
  return Object.fromEntries(issues.map(({ code, title, count }) => [code ?? title, count]))
}

function runOf(summary: Summary, { operators }: InputFigures): RunFacts {
  const { attributes } = summary
  const text = (...keys: readonly string[]) => {
    const key = keys.find((key) => attributes[key] !== undefined)
    return key === undefined ? null : String(attributes[key])
  }
  const types: Record<string, number> = {}
  for (const { type, weight_bytes } of operators.rows) {
    if (weight_bytes > 0) types[type] = (types[type] ?? 0) + weight_bytes
  }
  const cpus = Number(attributes['cpus'])
  return {
    command: text('command'),
    model: text('model.name', 'model'),
    host: text('host', 'hostname'),
    cpu: text('cpu'),
    cpus: Number.isFinite(cpus) ? cpus : null,
    kernel: text('kernel', 'kernel_release'),
    build: text('ggml.version', 'build'),
    backends: summary.backends,
    workers: summary.workers,
    layers: summary.layers,
    weight_types: types,
    duration_ns: summary.durationNs,
    recorded: [
      ...(Object.values(summary.calls).some(({ calls }) => calls > 0) ? ['calls'] : []),
      ...(summary.graphs > 0 ? ['graphs'] : []),
      ...(summary.operators > 0 ? ['operators'] : []),
      ...(summary.counters.length > 0 ? ['counters'] : []),
      ...(summary.scheduler ? ['scheduler'] : []),
      ...(summary.nvtx > 0 ? ['nvtx'] : []),
    ],
    losses: countsOf(summary),
  }
}

function callsOf(summary: Summary, undetermined: Undetermined[]): CallFigures {
  const { calls, ttftNs, decoding } = summary
  const { warmUp, failed, ...phases } = calls
  if (ttftNs === undefined)
    undetermined.push({ what: 'calls.ttft_ns', why: 'no call before the first decode was recorded' })
  if (!decoding)
    undetermined.push({ what: 'calls.tpot_ns', why: 'no decode call that follows another call was recorded' })
  return {
    count: Object.values(phases).reduce((sum, { calls }) => sum + calls, 0),
    by_phase: Object.fromEntries(
      Object.entries({ ...phases, 'warm-up': warmUp })
        .filter(([, { calls }]) => calls > 0)
        .map(([phase, { calls, tokens }]) => [phase, { calls, tokens }]),
    ),
    failed: failed.calls,
    ttft_ns: ttftNs ?? null,
    tpot_ns: decoding?.tpotNs ?? null,
    decode_tokens_per_s: decoding?.tokensPerSecond ?? null,
    sequences: decoding?.sequences ?? null,
  }
}
