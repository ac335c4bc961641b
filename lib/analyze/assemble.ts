import { Inferred, type TraceEvent } from '../model/events.ts'
import type { Names } from '../model/names.ts'
import type { EventPass } from '../model/pass.ts'
import { plural } from '../model/units.ts'
import { type AccessParts, NO_ACCESSES } from './accesses/accesses.ts'
import { ANALYSIS_SCHEMA, type Analysis } from './analysis.ts'
import { BenchmarkPass, type BenchmarksOfInput } from './benchmarks/benchmarks.ts'
import { BlasPass, blasOf } from './blas/blas-pass.ts'
import type { BlasFigures } from './blas/figures.ts'
import type { CallFigures } from './calls/figures.ts'
import { mainContext } from './calls/main-context.ts'
import type { Undetermined } from './common/figures.ts'
import { findings } from './findings/findings.ts'
import { withFindings } from './findings/first-token.ts'
import { gpuOf } from './gpu/assemble-gpu.ts'
import type { HostOperators } from './host-operators/figures.ts'
import type { InputFigures } from './input-figures.ts'
import type { KernelProfiles } from './kernels/figures.ts'
import type { MemoryFigures } from './memory/figures.ts'
import { unknownMemory } from './memory/memory.ts'
import { pageFaultsOf, weightsRead } from './memory/reads.ts'
import { type ModelLog, type ModelOptions, type ModelParts, modelParts } from './model/assemble-model.ts'
import type { ModelFigures, Roofline } from './model/figures.ts'
import { numaOf } from './numa/assemble-numa.ts'
import { firstCallsOf } from './operators/first-calls.ts'
import { placementOf } from './placement/assemble-placement.ts'
import type { PowerFigures } from './power/figures.ts'
import type { RpcFigures } from './rpc/figures.ts'
import { type Contents, ContentsPass } from './run/contents.ts'
import { runOf } from './run/facts.ts'
import type { RunFacts } from './run/figures.ts'
import { lossesIn } from './run/losses.ts'
import { isOfServer, mainLog } from './run/main-log.ts'
import type { Summary } from './summary/figures.ts'
import { SummaryPass } from './summary/summary.ts'
import type { SchedulingFigures } from './threads/figures.ts'
import { machineOf, threadsOf } from './threads/machine.ts'
import { NO_VERDICT, verdictOf } from './verdict/verdict.ts'
import { weightMemoryOf } from './weights/assemble-weights.ts'

const OF_OPERATORS: readonly (readonly [Inferred, string, string])[] = [
  [
    Inferred.End,
    'operators.operator_time_ns',
    'ends of operators were not recorded: each lasts until the next record of its thread, and contains the gap',
  ],
  [
    Inferred.NoEnd,
    'operators.operator_time_ns',
    'ends of some operators were not recorded and cannot be inferred: they count with a duration of 0',
  ],
  [
    Inferred.Wait,
    'operators.wait_ns',
    'waits are the gaps to the next operator of the thread: they may contain operators that were not recorded',
  ],
  [
    Inferred.Worker,
    'operators.workers',
    'the workers are inferred from the thread that runs the graph, and the threads active at the same time',
  ],
  [Inferred.OpName, 'operators.op', 'names of ops are inferred: the log contains numbers'],
  [Inferred.Counts, 'operators.counters', 'the processor counted for a part of the time only: counts are extrapolated'],
]

const OF_CALLS: readonly (readonly [Inferred, string, string])[] = [
  [Inferred.Call, 'calls', 'borders of calls are inferred from repeating graphs and phases'],
  [Inferred.Phase, 'calls.by_phase', 'phases are inferred from the number of tokens'],
  [
    Inferred.TokenCount,
    'calls.by_phase.tokens',
    'numbers of tokens are inferred from the size of the embedding lookup',
  ],
]

/** Figures that were not recorded but inferred, with how; of the {@link Inferred} bits of operators and of calls. */
function inferredFigures(ofOperators: number, ofCalls: number): Undetermined[] {
  const reasonsOf = (bits: number, table: typeof OF_CALLS) =>
    table.filter(([bit]) => (bits & bit) !== 0).map(([, what, why]) => ({ what, why: `inferred: ${why}` }))
  return [...reasonsOf(ofOperators, OF_OPERATORS), ...reasonsOf(ofCalls, OF_CALLS)]
}

/** One input: its summary, and what its calls and operators add. */
export interface AnalysedLog {
  readonly name: string
  readonly summary: Summary
  readonly contents: Contents
  readonly benchmarks: BenchmarksOfInput
  readonly figures: InputFigures
  /** Calls of math libraries. */
  readonly blas?: BlasFigures | null
  /** Samples of data addresses of its process. */
  readonly accesses?: AccessParts | undefined
}

/** The passes over one log whose figures need nothing of another one. */
export class LogPasses implements EventPass<Omit<AnalysedLog, 'name' | 'figures'>> {
  readonly summary: SummaryPass
  private readonly contents: ContentsPass
  private readonly benchmarks: BenchmarkPass
  private readonly blas = new BlasPass()

  constructor(names: Names) {
    this.summary = new SummaryPass(names)
    this.contents = new ContentsPass(names)
    this.benchmarks = new BenchmarkPass(names)
  }

  take(batch: readonly TraceEvent[]): void {
    for (const pass of [this.summary, this.contents, this.blas, this.benchmarks]) pass.take(batch)
  }

  finish() {
    const { summary, contents, benchmarks, blas } = this
    return {
      summary: summary.finish(),
      contents: contents.finish(),
      benchmarks: benchmarks.finish(),
      blas: blas.finish(),
    }
  }
}

/** What a profiler measured of single kernels. */
export interface AnalysedKernels {
  readonly profiles: KernelProfiles | null
  readonly rooflines: readonly Roofline[]
}

/** What the inputs lack of a log's scheduling. */
export type UnknownOf = (summary: Summary, scheduling: SchedulingFigures | undefined) => readonly Undetermined[]

/** Figures that are made of all logs together. */
export interface OfAllLogs {
  readonly power?: PowerFigures | null
  readonly kernels?: AnalysedKernels
  readonly hostOperators?: HostOperators | null
}

/** Makes the Analysis of a run from its logs; the first one with operators or calls is the run's. `unknown`: what the inputs lack. */
export function assemble(
  logs: readonly AnalysedLog[],
  unknown: UnknownOf,
  options: ModelOptions & OfAllLogs = {},
): Analysis {
  const { power = null, kernels = { profiles: null, rooflines: [] }, hostOperators = null } = options
  const withKernels = (parts: ModelParts) => {
    const { rooflines, undetermined } = parts
    if (kernels.rooflines.length === 0) return parts
    const left = undetermined.filter(({ what }) => rooflines.length > 0 || what !== 'rooflines')
    return { ...parts, rooflines: [...rooflines, ...kernels.rooflines], undetermined: left }
  }
  const document = documentOf(logs, unknown, (log) => withKernels(modelParts(log, options)))
  const ofPower = { power: power && withoutDrafts(power, document.calls) }
  const analysis = { ...document, host_operators: hostOperators, ...ofPower, kernel_profiles: kernels.profiles }
  return judged(analysis)
}

/** With what its figures say: findings, and the verdict. */
export function judged(analysis: Analysis): Analysis {
  const all = findings(analysis)
  const found = { ...analysis, first_token: withFindings(analysis.first_token, all), findings: all }
  return { ...found, verdict: verdictOf(found) }
}

/** The same without findings and verdict. `modelOf`: the parts about the model. */
export function documentOf(
  logs: readonly AnalysedLog[],
  unknown: UnknownOf,
  modelOf: (log: ModelLog) => ModelParts,
): Analysis {
  const ofServers = logs.some((log) => !isOfServer(log)) ? logs.filter(isOfServer) : []
  const own = logs.filter((log) => !ofServers.includes(log))
  const main = mainLog(own)
  const { summary, figures, accesses = NO_ACCESSES } = main
  const undetermined = [
    ...unknown(summary, figures.scheduling),
    ...inferredFigures(figures.inferred, figures.inferredOfCalls),
    ...withoutParts(figures.callsLeftOut),
  ]
  const gpu = gpuOf(own)
  undetermined.push(...(gpu?.undetermined ?? []))
  const run = runOf(main, own, undetermined)
  const log = { ...figures, run, gpus: gpusOf(summary), rows: figures.operators.rows }
  const { model, rooflines, undetermined: ofModel } = modelOf(log)
  const memory = memoryOf(figures)
  const { undetermined: ofRequests, series: _, ...requests } = requestsOf(figures, logs)
  if (memory) undetermined.push(...unknownMemory(memory))
  const { call_time, operators, workers, imbalance } = figures
  const calls = callsOf(summary, figures)
  return {
    schema: ANALYSIS_SCHEMA,
    verdict: NO_VERDICT,
    inputs: logs.map(({ name, summary, contents }) => {
      const { format, clock, times, duration_ns, operators, issues } = summary
      const losses = lossesIn(issues, contents.recorded)
      return { name, format, clock, times, duration_ns, operators, issues: countsOf(summary), losses }
    }),
    run: withModel(run, model, undetermined),
    calls,
    ...{ call_time, operators, workers, imbalance },
    scheduling: figures.scheduling ?? null,
    machine: machineOf(summary.attributes, figures),
    threads: threadsOf(summary.attributes, figures.teams, figures, figures.coreKinds),
    model,
    rooflines,
    gpu: gpu?.figures ?? null,
    host_operators: null,
    blas: blasOf(logs),
    power: null,
    kernel_profiles: null,
    experts: figures.experts.figures,
    memory,
    placement: placementOf(figures, summary.attributes),
    numa: numaOf(figures.numa, summary.attributes),
    weight_memory: weightMemoryOf(figures.weightMemory, summary.attributes),
    rpc: rpcOf([main, ...ofServers]),
    page_faults: accesses.page_faults,
    data_accesses: accesses.data_accesses,
    ...requests,
    benchmarks: logs.flatMap(({ benchmarks }) => benchmarks.figures),
    first_calls: firstCallsOf(figures.first_calls, summary.contexts),
    findings: [],
    undetermined: [
      ...undetermined,
      ...missingOf(calls),
      ...ofModel,
      ...accesses.undetermined,
      ...figures.experts.undetermined,
      ...ofRequests,
      ...logs.flatMap(({ benchmarks }) => benchmarks.undetermined),
      ...figures.unknownSeries,
    ],
    ...seriesOf(figures),
  }
}

/** Tokens of drafts, and of calls that verify them, are more than those of the text. */
function withoutDrafts(power: PowerFigures, { contexts }: CallFigures): PowerFigures {
  if (contexts.every(({ role }) => role === null)) return power
  const known = (rows: PowerFigures['energy']) =>
    rows.map((row) => ({ ...row, j_per_token: null, j_per_token_error: null }))
  const devices = power.devices.map((device) => ({ ...device, energy: known(device.energy) }))
  return { devices, energy: known(power.energy) }
}

/** Of a sample, contexts have no distributions. */
function callsOf({ calls, contexts }: Summary, { calls: ofInput, slopes }: InputFigures): CallFigures {
  const main = mainContext(contexts)
  const slope = slopes.find(({ context }) => context === main?.context) ?? null
  const none = { tpot: null, jitter: null, by_sequence: [], further_sequences: 0 }
  const ofSample = contexts.map(({ decoding: _, ...context }) => ({ ...context, ...none }))
  return { ...calls, ...ofInput, contexts: ofInput.contexts.length > 0 ? ofInput.contexts : ofSample, slope }
}

/** Messages of the run's process, and those that its servers recorded. */
function rpcOf(logs: readonly AnalysedLog[]): RpcFigures | null {
  const found = logs.flatMap(({ figures: { rpc } }) => rpc ?? [])
  if (found.length === 0) return null
  return {
    peers: found.flatMap(({ peers }) => peers),
    left_out: found.reduce((sum, { left_out }) => sum + left_out, 0),
    in_calls: found.some(({ in_calls }) => in_calls === null) ? null : found.flatMap(({ in_calls }) => in_calls ?? []),
  }
}

/**
 * Those of the run's log, else of a server's own log. Of a program that was attached to, the run's log has only sequences, the server's own one what
 * the server calls a request.
 */
function requestsOf({ requests: ofRun }: InputFigures, logs: readonly AnalysedLog[]): InputFigures['requests'] {
  const all = [ofRun, ...logs.map(({ figures }) => figures.requests)]
  const ofServer = all.find(({ requests }) => typeof requests?.slowest[0]?.task === 'number')
  const found = ofServer ?? all.find(({ requests }) => requests !== null) ?? ofRun
  return ofRun.requests && found !== ofRun ? { ...ofRun, requests: found.requests, series: found.series } : found
}

/** Those that were asked for. */
function seriesOf({
  callSeries: calls,
  requests: { series: requests },
  series,
  steps,
}: InputFigures): Pick<Analysis, 'series'> {
  const all = { ...(calls && { calls }), ...(requests && { requests }), ...series, ...(steps && { steps }) }
  return Object.keys(all).length > 0 ? { series: all } : {}
}

/** Null where the log contains neither operators nor allocations. */
function memoryOf({ memory, operators: { rows }, work }: InputFigures): MemoryFigures | null {
  if (!memory || (rows.length === 0 && memory.allocations === null)) return null
  return { ...memory, weights_read: weightsRead(rows, work.phases), page_faults: pageFaultsOf(rows) }
}

function countsOf({ issues }: Summary): Record<string, number> {
  return Object.fromEntries(issues.map(({ code, title, count }) => [code ?? title, count]))
}

function withoutParts({ without, overfull }: InputFigures['callsLeftOut']): Undetermined[] {
  const missing: Undetermined[] = []
  const were = (n: number) => `${n} call${n === 1 ? ' were' : 's were'}`
  const add = (n: number, why: string, hint?: string) => {
    if (n > 0) missing.push({ what: 'call_time', why: `${why}: their time is not in it`, hint })
  }
  add(without, `neither graphs nor operators of ${were(without)} recorded`, 'record with --level op')
  add(overfull, `the operators of ${plural(overfull, 'call')} overlap, or lie outside of them`)
  return missing
}

/** The figures of calls that are not known, and why. */
function missingOf({ ttft_ns, tpot_ns, prefill_tokens_per_s, by_phase, slope, contexts }: CallFigures): Undetermined[] {
  const missing: Undetermined[] = []
  const why = (what: string, why: string, hint?: string) => missing.push({ what: `calls.${what}`, why, hint })
  if (ttft_ns === null)
    why(
      'ttft_ns',
      'no call before the first decode was recorded, or no times of it; steps of an engine do not show when requests came',
    )
  if (prefill_tokens_per_s === null)
    why('prefill_tokens_per_s', 'no prefill call with known tokens and end was recorded')
  if (tpot_ns === null) return [...missing, noDecode('tpot_ns'), noDecode('slope')]
  if (contexts.every(({ by_sequence }) => by_sequence.length === 0))
    why(
      'contexts.by_sequence',
      'the log does not contain the sequences of batches',
      'record the run with ggml2perfetto record',
    )
  if (!slope)
    why(
      'slope',
      (by_phase.decode?.calls ?? 0) < 4
        ? 'it takes three decode calls after the first one'
        : contexts.some(({ role }) => role === 'target')
          ? 'it takes three decode calls of the target with one token: those that verify drafts have several'
          : 'the lengths of contexts are not known',
    )
  else if (!slope.operators)
    why('slope.operators', 'operators of fewer than three of these calls were recorded', 'record --level op')
  return missing
}

const noDecode = (what: string): Undetermined => {
  return { what: `calls.${what}`, why: 'no decode call that follows another call was recorded' }
}

/** `0 NVIDIA H100 80GB HBM3`, as profilers of GPUs name them. */
function gpusOf({ attributes }: Summary): string | null {
  const gpus = attributes['gpus'] ?? attributes['gpu']
  return gpus === undefined ? null : String(gpus)
}

/** Facts that the log lacks, from the model's own file. */
function withModel(run: RunFacts, model: ModelFigures | null, undetermined: Undetermined[]): RunFacts {
  if (model === null || model.source === 'graph') return run
  const filled = {
    model: run.model ?? model.name,
    architecture: run.architecture ?? model.architecture,
    parameters: run.parameters ?? model.parameters,
    layers: run.layers ?? model.layers,
  }
  const isFilled = ({ what }: Undetermined) =>
    Object.entries(filled).some(([key, value]) => value !== null && what === `run.${key}`)
  const left = undetermined.filter((undetermined) => !isFilled(undetermined))
  undetermined.splice(0, undetermined.length, ...left)
  return { ...run, ...filled }
}
