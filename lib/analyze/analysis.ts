import type { DataAccessFigures, PageFaultFigures } from './accesses/figures.ts'
import type { BenchmarkFigures } from './benchmarks/figures.ts'
import type { BlasFigures } from './blas/figures.ts'
import type { CallFigures } from './calls/figures.ts'
import type { Finding, Undetermined } from './common/figures.ts'
import type { ExpertFigures } from './experts/figures.ts'
import type { GpuFigures } from './gpu/figures.ts'
import type { HostOperators } from './host-operators/figures.ts'
import type { KernelProfiles } from './kernels/figures.ts'
import type { MemoryFigures } from './memory/figures.ts'
import type { ModelFigures, Roofline } from './model/figures.ts'
import type { NumaFigures } from './numa/figures.ts'
import type { CallTime, FirstCall, OperatorFigures } from './operators/figures.ts'
import type { PlacementFigures } from './placement/figures.ts'
import type { PowerFigures } from './power/figures.ts'
import type {
  FirstTokenFigures,
  FunctionFigures,
  LoadFigures,
  RequestFigures,
  SamplingFigures,
  SpeculationFigures,
} from './requests/figures.ts'
import type { RpcFigures } from './rpc/figures.ts'
import type { AnalysedInput, RunFacts } from './run/figures.ts'
import type { Series } from './series/figures.ts'
import type {
  MachineFigures,
  RoleImbalance,
  SchedulingFigures,
  ThreadFigures,
  WorkerFigures,
} from './threads/figures.ts'
import type { RunVerdict } from './verdict/figures.ts'
import type { WeightMemoryFigures } from './weights/figures.ts'

export type { RecordedKind } from '../model/issues.ts'
export type { ProgramClock } from '../model/program-clock.ts'
export type * from './accesses/figures.ts'
export type * from './benchmarks/figures.ts'
export type * from './blas/figures.ts'
export type * from './calls/figures.ts'
export type * from './common/figures.ts'
export type * from './experts/figures.ts'
export type * from './gpu/figures.ts'
export type * from './host-operators/figures.ts'
export type * from './kernels/figures.ts'
export type * from './memory/figures.ts'
export type * from './model/figures.ts'
export type * from './numa/figures.ts'
export type * from './operators/figures.ts'
export type * from './placement/figures.ts'
export type * from './power/figures.ts'
export type * from './requests/figures.ts'
export type * from './rpc/figures.ts'
export type * from './run/figures.ts'
export type * from './series/figures.ts'
export type * from './threads/figures.ts'
export type * from './verdict/figures.ts'
export type * from './weights/figures.ts'

/** Version of the document; another major number where a field changes its meaning or is removed. */
export const ANALYSIS_SCHEMA = 'ggml2perfetto.analysis/1'

/**
 * What the logs of a run contain, as figures: the one document from which statistics, findings, comparisons and reports are made. It is
 * plain JSON: keys end in their unit (`_ns`, `_bytes`, `_share` from 0 to 1), null is "not known" and has its reason in `undetermined`.
 */
export interface Analysis {
  readonly schema: typeof ANALYSIS_SCHEMA
  /** The answer in one line: the first that each command prints. */
  readonly verdict: RunVerdict
  readonly inputs: readonly AnalysedInput[]
  readonly run: RunFacts
  readonly calls: CallFigures
  /** Where the time of calls goes, by phase. */
  readonly call_time: readonly CallTime[]
  readonly operators: OperatorFigures
  readonly workers: readonly WorkerFigures[]
  /** By role, most time lost first. */
  readonly imbalance: readonly RoleImbalance[]
  /** Time in which threads of workers had no CPU; null where it was not recorded. */
  readonly scheduling: SchedulingFigures | null
  /** Null where the log does not contain it. */
  readonly machine: MachineFigures | null
  /** Which threads compute, and where; null where neither was recorded. */
  readonly threads: ThreadFigures | null
  /** The model by itself; null where neither a GGUF nor a graph is known. */
  readonly model: ModelFigures | null
  readonly rooflines: readonly Roofline[]
  /** Null where no work of a GPU and no calls of CUDA or HIP were recorded. */
  readonly gpu: GpuFigures | null
  /** Operators of PyTorch on the CPU; null where none were recorded, or work of a GPU, whose figures contain what launched it. */
  readonly host_operators: HostOperators | null
  /** Null where no calls of BLAS libraries or of oneDNN were logged. */
  readonly blas: BlasFigures | null
  /** Energy by phase and by token, clocks; null where no log of power was given. */
  readonly power: PowerFigures | null
  /** Null where Nsight Compute measured no kernels. */
  readonly kernel_profiles: KernelProfiles | null
  /** Which experts were chosen; null where the log does not contain it. */
  readonly experts: ExpertFigures | null
  /** Null where the log contains neither operators nor allocations. */
  readonly memory: MemoryFigures | null
  /** Where the model is, and where it is computed; null where the log does not contain the nodes of graphs. */
  readonly placement: PlacementFigures | null
  /** Where memory is, and who reads it; null on a machine with one NUMA node, and where the log does not contain the nodes of pages. */
  readonly numa: NumaFigures | null
  /** Which weights of the CPU are repacked, and why others are not; null where the log does not contain what devices were asked. */
  readonly weight_memory: WeightMemoryFigures | null
  /** Page faults by tensor; null where no samples with addresses were given (docs/memory-samples.md). */
  readonly page_faults: PageFaultFigures | null
  /** Loads and stores by tensor; null where no samples with addresses were given. */
  readonly data_accesses: DataAccessFigures | null
  /** Messages of ggml-rpc with other processes; null where the log contains none. */
  readonly rpc: RpcFigures | null
  /** Requests to a server, or uses of sequences; null where the log contains none. */
  readonly requests: RequestFigures | null
  /** Null where no samplers were recorded. */
  readonly sampling: SamplingFigures | null
  /** Null where no drafts were verified. */
  readonly speculation: SpeculationFigures | null
  /** Null where no loading was recorded. */
  readonly load: LoadFigures | null
  /** From loading to the first token; null where neither loading nor calls that make a token were recorded. */
  readonly first_token: FirstTokenFigures | null
  /** Functions around calls, without samplers and loading; most time first. */
  readonly functions: readonly FunctionFigures[]
  /** Speeds that a program measured itself, in their order: tests of llama-bench. */
  readonly benchmarks: readonly BenchmarkFigures[]
  /** Of each phase. */
  readonly first_calls: readonly FirstCall[]
  /** What made the run slow, most time first. */
  readonly findings: readonly Finding[]
  readonly undetermined: readonly Undetermined[]
  /** Figures over time, made on request. */
  readonly series?: Series | undefined
}
