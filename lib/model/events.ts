import { ACCESS_BOUNDS, type AccessEvent, type MappingEvent } from './access-events.ts'
import { BENCHMARK_BOUNDS, type BenchmarkEvent } from './benchmark-events.ts'
import { BLAS_BOUNDS, type BlasEvent } from './blas-events.ts'
import { type Bounds, impossible, orUnknown, outOfRange, type Wrong, wrongAmount, wrongTime } from './bounds.ts'
import { CALL_BOUNDS, type TokenEvent } from './call-events.ts'
import { GPU_BOUNDS, type GpuActivityEvent } from './gpu-events.ts'
import {
  type CountedEvent,
  type ExpertsEvent,
  GRAPH_BOUNDS,
  type GraphEvent,
  type GraphNodesEvent,
  type OperatorEvent,
  type PartEvent,
  type RefusalEvent,
} from './graph-events.ts'
import type { IssueEvent } from './issues.ts'
import {
  type AffinityEvent,
  KERNEL_BOUNDS,
  type StateEvent,
  type SwitchEvent,
  type ThreadEvent,
  type WakingEvent,
} from './kernel-events.ts'
import type { LeftOutEvent } from './left-out.ts'
import { FLOW_MAX, STAMP_END } from './limits.ts'
import { NVTX_BOUNDS, type NvtxEvent, type NvtxNameEvent } from './nvtx-events.ts'
import { OWN_BOUNDS, type OwnEvent } from './own-events.ts'
import { PAGE_BOUNDS, type PagesEvent } from './page-events.ts'
import { POWER_BOUNDS, type PowerEvent } from './power-events.ts'
import {
  type FunctionEvent,
  REQUEST_BOUNDS,
  type RequestEvent,
  type SequenceEvent,
  type TaskEvent,
} from './request-events.ts'
import { RPC_BOUNDS, type RpcEvent } from './rpc-events.ts'
import { SUMS_BOUNDS, type SumsEvent } from './sums.ts'
import {
  type AllocationEvent,
  type BufferEvent,
  type CopyEvent,
  TENSOR_BOUNDS,
  type TensorEvent,
} from './tensor-events.ts'
import type { Times } from './times.ts'
import { WEIGHT_BOUNDS, type WeightMemoryEvent } from './weight-events.ts'

export type * from './access-events.ts'
export type * from './benchmark-events.ts'
export type * from './blas-events.ts'
export type * from './call-events.ts'
export type * from './graph-events.ts'
export { Inferred } from './inferred.ts'
export type { IssueEvent } from './issues.ts'
export type * from './kernel-events.ts'
export { stateAfter, TaskState } from './kernel-events.ts'
export type * from './kernel-profiles.ts'
export type * from './page-events.ts'
export type * from './power-events.ts'
export type * from './request-events.ts'
export { QUEUE_PARTS } from './request-events.ts'
export type * from './rpc-events.ts'
export type { SumsEvent } from './sums.ts'
export type * from './tensor-events.ts'
export type { Times } from './times.ts'
export type * from './weight-events.ts'

/**
 * The events that readers yield and passes consume. Times are nanoseconds since the input's origin
 * ({@link InputEvent.originNs}), as numbers: exact for 104 days before and after it. Texts are ids of the shared `Names`.
 * `-1` (numbers) and `0` (names) mean "not known"; inferred values have an {@link Inferred} bit.
 */
export type TraceEvent =
  | InputEvent
  | FactsEvent
  | ClocksEvent
  | BufferEvent
  | TensorEvent
  | OperatorEvent
  | GraphEvent
  | GraphNodesEvent
  | RefusalEvent
  | PagesEvent
  | WeightMemoryEvent
  | TokenEvent
  | ExpertsEvent
  | CopyEvent
  | PartEvent
  | AllocationEvent
  | FunctionEvent
  | SequenceEvent
  | TaskEvent
  | RequestEvent
  | RpcEvent
  | BenchmarkEvent
  | CounterEvent
  | CountedEvent
  | RangeEvent
  | NvtxEvent
  | NvtxNameEvent
  | StateEvent
  | AffinityEvent
  | SwitchEvent
  | WakingEvent
  | ThreadEvent
  | AccessEvent
  | MappingEvent
  | IssueEvent
  | LeftOutEvent
  | SumsEvent
  | GpuActivityEvent
  | BlasEvent
  | PowerEvent
  | OwnEvent

/** Clocks that Perfetto has names for: Linux's, and perf's, which only traces have (for inputs see {@link ClockSource}). */
export type Clock = 'MONOTONIC' | 'MONOTONIC_RAW' | 'BOOTTIME' | 'REALTIME' | 'PERF'

/** What an input can contribute to a trace. */
export interface Capabilities {
  /** `false`: its switches do not record the state of the thread that leaves the CPU. */
  readonly waitStates?: boolean
  /** `false`: its events are in no order of time, such as those of one thread after the other. */
  readonly order?: boolean
  /** `false`: its format has no operators of ggml and no graphs: there is nothing to sum up where the trace is large. */
  readonly operators?: boolean
  /** `true`: its requests are among its events, or it has none: none are made of its other events. */
  readonly requests?: boolean
  /** `false`: it contains no switches of CPUs. */
  readonly switches?: boolean
  /** `true`: it contains samples of data addresses, which belong to the tensors of a log. */
  readonly accesses?: boolean
  /** `true`: it records the scheduler, whatever kind its first event is of. */
  readonly scheduler?: boolean
}

/** perf's clock (Perfetto knows it); `local`: REALTIME in a time zone that is not recorded; or a number of clock_gettime(2). */
export type ClockSource = 'perf' | 'local' | number

/** First event of every input: its format and its clock. */
export interface InputEvent {
  readonly kind: 'input'
  /** The format's name, as `--from` takes it. */
  readonly format: string
  /** `none`: no event has a time; `unknown`: the input does not record it, and it must not be guessed. */
  readonly clock: Clock | 'none' | 'unknown'
  /** The origin of all times of this input, in nanoseconds of `clock`. */
  readonly originNs: bigint
  /** What its times are; undefined: `recorded`. Use `timesOf` (lib/model/times.ts), which knows inputs without a clock. */
  readonly times?: Times | undefined
  /** Facts about the run and how it was read, for the trace's attributes. */
  readonly attributes: Readonly<Record<string, string | number>>
  /** A short description of the contents, for inputs that are not summarized by calls and operators. */
  readonly contents?: string | undefined
  /** What the input can contribute; known to the reader from the start of the input. */
  readonly capabilities?: Capabilities | undefined
  /** Where `clock` is `unknown`: the input's clock in the numbers of its format. */
  readonly clockSource?: ClockSource | undefined
  /** Name of the input's group of tracks; by default `LLM` and the attribute `command`. */
  readonly title?: string | undefined
}

/** Facts about the run that the reader finds later, for the trace's attributes. */
export interface FactsEvent {
  readonly kind: 'facts'
  /** See {@link InputEvent.contents}. */
  readonly contents?: string | undefined
  readonly attributes: Readonly<Record<string, string | number>>
}

/** The same instant on several clocks, which joins inputs. Absolute nanoseconds. */
export interface ClocksEvent {
  readonly kind: 'clocks'
  readonly readings: readonly { readonly clock: Clock; readonly ns: bigint }[]
}

/** A sample of a numeric series. */
export interface CounterEvent {
  readonly kind: 'counter'
  readonly name: number
  readonly unit: 'bytes' | 'count' | 'ns'
  readonly atNs: number
  readonly value: number
  /** Index of its call, if it has one. */
  readonly call?: number | undefined
}

/** The begin or end of a named range of a thread; ranges nest by call order on their thread. */
export interface RangeEvent {
  readonly kind: 'range'
  readonly edge: 'begin' | 'end'
  readonly tid: number
  /** 0 at the end. */
  readonly name: number
  readonly atNs: number
  /** Ids of arrows: each range with an id is joined with the next one (in time) that has it. */
  readonly flows?: readonly number[]
}

/** Start or time of an event, in ns since the input's origin; undefined for definitions. */
export function firstTimeOf(event: TraceEvent): number | undefined {
  if ('startNs' in event) return event.startNs
  return 'atNs' in event ? event.atNs : undefined
}

/** End or time of an event, in ns since the input's origin; undefined for definitions. */
export function lastTimeOf(event: TraceEvent): number | undefined {
  if ('endNs' in event) return event.endNs
  return 'atNs' in event ? event.atNs : undefined
}

/** The ranges of all events: what of them passes may rely on. */
export const EVENT_BOUNDS: Bounds<TraceEvent> = {
  input: (event) => wrongOrigin(event) ?? wrongFact(event),
  facts: wrongFact,
  clocks: wrongReadings,
  counter: (event) => wrongTime(event.atNs) ?? notFinite(event.value),
  range: (event) => wrongTime(event.atNs) ?? orUnknown('tid', event.tid) ?? (event.flows && wrongFlows(event.flows)),
  issue: (event) => wrongTime(event.atNs),
  'left-out': wrongAmount,
  ...TENSOR_BOUNDS,
  ...PAGE_BOUNDS,
  ...WEIGHT_BOUNDS,
  ...GRAPH_BOUNDS,
  ...CALL_BOUNDS,
  ...REQUEST_BOUNDS,
  ...RPC_BOUNDS,
  ...BENCHMARK_BOUNDS,
  ...NVTX_BOUNDS,
  ...KERNEL_BOUNDS,
  ...ACCESS_BOUNDS,
  ...SUMS_BOUNDS,
  ...GPU_BOUNDS,
  ...BLAS_BOUNDS,
  ...POWER_BOUNDS,
  ...OWN_BOUNDS,
}

/** An origin that no clock can have; the clock is then unknown. */
function wrongOrigin({ clock, originNs }: InputEvent): Wrong | undefined {
  if (originNs >= 0n && originNs < STAMP_END) return undefined
  const instead = { originNs: 0n, clock: clock === 'none' ? clock : 'unknown' }
  return { ...impossible('originNs', `from 0 to below ${STAMP_END}`, originNs), instead }
}

/** A number that is none is no fact. */
function wrongFact({ attributes }: InputEvent | FactsEvent): Wrong | undefined {
  for (const [key, found] of Object.entries(attributes)) {
    if (typeof found !== 'number' || Number.isFinite(found)) continue
    const { [key]: _, ...others } = attributes
    return {
      code: 'value-out-of-range',
      field: key,
      expected: 'a finite number',
      found,
      instead: { attributes: others },
    }
  }
  return undefined
}

/** A reading that no clock can have. */
function wrongReadings({ readings }: ClocksEvent): Wrong | undefined {
  const wrong = readings.find(({ ns }) => ns < 0n || ns >= STAMP_END)
  return wrong && impossible(`CLOCK_${wrong.clock}`, `from 0 to below ${STAMP_END}`, wrong.ns)
}

/** A value that no counter of a viewer can have; it is drawn, and not summed up. */
function notFinite(found: number): Wrong | undefined {
  if (Number.isFinite(found)) return undefined
  return { code: 'value-out-of-range', field: 'value', expected: 'a finite number', found }
}

/** Arrows that viewers cannot draw. */
function wrongFlows(flows: readonly number[]): Wrong | undefined {
  const wrong = flows.find((flow) => !(flow >= 0 && flow <= FLOW_MAX && Number.isInteger(flow)))
  return wrong === undefined ? undefined : outOfRange('flows', wrong, 0, FLOW_MAX, { flows: undefined })
}
