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
