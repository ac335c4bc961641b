import type { ModelShape } from '../model/model-shape.ts'
import type { CallsOfInput } from './calls/call-statistics.ts'
import type { CallSeries, ContextSlope } from './calls/figures.ts'
import type { Undetermined } from './common/figures.ts'
import type { ExpertsOfInput } from './experts/experts.ts'
import type { GpuOfInput } from './gpu/gpu-statistics.ts'
import type { MemoryOfInput } from './memory/memory.ts'
import type { CallWorkResult } from './model/call-work.ts'
import type { ActivationFigures } from './model/figures.ts'
import type { Measured } from './model/rooflines.ts'
import type { NumaOfInput } from './numa/numa.ts'
import type { CallTime, FirstCall, OperatorFigures } from './operators/figures.ts'
import type { CallsLeftOut } from './operators/time-parts.ts'
import type { PlacementOfInput } from './placement/placement.ts'
import type { RequestsOfInput } from './requests/request-pass.ts'
import type { RpcFigures } from './rpc/figures.ts'
import type { Series, StepSeries } from './series/figures.ts'
import type { CoreKindTimes, RoleImbalance, SchedulingFigures, TeamFigures, WorkerFigures } from './threads/figures.ts'
import type { WorkerCpus } from './threads/worker-cpus.ts'
import type { WeightMemoryOfInput } from './weights/weight-memory.ts'

/** What the operators and calls of one input add to the Analysis: each field is made by one statistic. */
export interface InputFigures {
  readonly call_time: readonly CallTime[]
  readonly callsLeftOut: CallsLeftOut
  /** {@link Inferred} bits of operators, and of calls. */
  readonly inferred: number
  readonly inferredOfCalls: number
  readonly operators: OperatorFigures
  readonly workers: readonly WorkerFigures[]
  readonly calls: CallsOfInput
  /** Of each llama_context. */
  readonly slopes: readonly ContextSlope[]
  readonly callSeries: CallSeries | undefined
  readonly steps: StepSeries | undefined
  /** Of each llama_context. */
  readonly first_calls: readonly Omit<FirstCall, 'role'>[]
  readonly cpus_used: number | null
  readonly cpusOfWorkers: readonly number[]
  readonly series: Series
  readonly unknownSeries: readonly Undetermined[]
  readonly imbalance: readonly RoleImbalance[]
  /** Undefined where no states of the threads of workers are known. */
  readonly scheduling: SchedulingFigures | undefined
  /** Null where no operators of calls were recorded. */
  readonly teams: TeamFigures | null
  /** Undefined where the input does not contain where workers ran. */
  readonly workerCpus: WorkerCpus | undefined
  /** Null where all cores are of one kind. */
  readonly coreKinds: CoreKindTimes | null
  /** The model, as far as the graph contains it. */
  readonly shape: ModelShape | undefined
  readonly activations: ActivationFigures | null
  /** Work of the calls that have operators, by phase, and within NVTX ranges by name. */
  readonly work: CallWorkResult
  /** Work of PyTorch's operators. */
  readonly products: readonly Measured[]
  /** Undefined where the input contains none. */
  readonly gpu: GpuOfInput | undefined
  readonly experts: ExpertsOfInput
  /** Undefined for a sample. */
  readonly memory: MemoryOfInput | undefined
  /** Null where the nodes of graphs are not known, and for a sample. */
  readonly placement: PlacementOfInput | null
  /** Null where the input does not contain the nodes of pages. */
  readonly numa: NumaOfInput | null
  /** Null where the input does not contain what devices were asked about weights. */
  readonly weightMemory: WeightMemoryOfInput | null
  readonly requests: RequestsOfInput
  /** Null where the input contains no messages of ggml-rpc. */
  readonly rpc: RpcFigures | null
}

const NO_CALLS: CallsOfInput = {
  ...{ tpot: null, contexts: [], drafts: null, runs: [], further_runs: 0 },
}
const NO_REQUESTS: RequestsOfInput = {
  ...{ requests: null, sampling: null, speculation: null, load: null, functions: [], series: undefined },
  ...{ first_token: null, undetermined: [] },
}

/** The figures of an input without events, and those that the statistics of a sample do not make. */
export const NO_FIGURES: InputFigures = {
  call_time: [],
  callsLeftOut: { without: 0, overfull: 0 },
  inferred: 0,
  inferredOfCalls: 0,
  operators: { operator_time_ns: 0, wait_ns: 0, executions: 0, rows: [] },
  workers: [],
  calls: NO_CALLS,
  slopes: [],
  callSeries: undefined,
  steps: undefined,
  first_calls: [],
  cpus_used: null,
  cpusOfWorkers: [],
  series: {},
  unknownSeries: [],
  imbalance: [],
  scheduling: undefined,
  teams: null,
  workerCpus: undefined,
  coreKinds: null,
  shape: undefined,
  activations: null,
  work: { all: [], phases: [], ranges: [] },
  products: [],
  gpu: undefined,
  experts: { figures: null, undetermined: [] },
  memory: undefined,
  placement: null,
  numa: null,
  weightMemory: null,
  requests: NO_REQUESTS,
  rpc: null,
}
