import type { Phase } from '../../model/events.ts'

/** Times of a worker. Shares are parts of `call_time_ns`; null where no calls were recorded, or its operators overlap or lie outside of them. */
export interface WorkerTime {
  /** Calls in which it computed an operator, and their time. */
  readonly calls: number
  readonly call_time_ns: number
  /** Operators and waits, also those in no recorded call, such as warm-ups. */
  readonly operator_time_ns: number
  /** Part of it in which its thread had no CPU (preempted or blocked), so that it did not compute; null where it was not recorded. */
  readonly off_cpu_ns: number | null
  readonly wait_ns: number
  /** Part of it after the last worker had arrived: the barrier was open, and the worker had no CPU or had not noticed. Documents of earlier versions have none. */
  readonly wait_open_ns?: number
  /** Part of it in which its thread could run but had no CPU; null where it was not recorded. */
  readonly wait_preempted_ns: number | null
  /** Time of its calls in which it was neither in an operator nor waited at a barrier. */
  readonly idle_ns: number | null
  /** The same part of it. */
  readonly idle_preempted_ns: number | null
  readonly operator_share: number | null
  readonly off_cpu_share: number | null
  readonly wait_share: number | null
  readonly idle_share: number | null
}

/** One worker in all calls. */
export interface WorkerFigures extends WorkerTime {
  readonly worker: number
  readonly executions: number
  /** Steps that it computed together with others, and those in which it was the last to end. */
  readonly steps: number
  readonly last: number
  /** Operators that began on another CPU than the one before, on the same thread. */
  readonly moved_operators: number
  readonly moved_operator_time_ns: number
  readonly by_phase: Readonly<Partial<Record<Phase | 'none', WorkerTime>>>
}

/** How evenly the workers share the steps of a role. */
export interface RoleImbalance {
  readonly role: string
  readonly op: string
  readonly phase: Phase | 'none'
  /** Workers of the step with most of them. */
  readonly workers: number
  /** Steps that several workers computed. */
  readonly steps: number
  /** Sums over these steps: time in the operator of the slowest worker, and of all workers on average. */
  readonly slowest_ns: number
  readonly mean_ns: number
  /** (slowest − mean) / slowest: 0 where all take equally long; (n − 1) / n where one of n workers computes alone. */
  readonly imbalance_share: number
  /** The worker that ended last most often, and its share of the steps. */
  readonly last_worker: number
  readonly last_share: number
}

/** Threads of workers that had no CPU. */
export interface SchedulingFigures {
  /**
   * `log`: states of threads, without the threads that took their CPUs; `scheduler`: a recording of the kernel's switches; `both`: what either of them
   * shows.
   */
  readonly source: 'log' | 'scheduler' | 'both'
  /** Do `takers` contain all threads that had the CPU, or the first one of each wait, or none? */
  readonly takers: 'all' | 'first' | 'none'
  readonly workers: readonly WorkerScheduling[]
  /** Roles whose operators lost most time, at most 20. */
  readonly roles: readonly RoleScheduling[]
}

/** States of a worker's thread in the calls of a phase. They sum to `call_time_ns`. */
export interface WorkerScheduling {
  readonly worker: number
  readonly phase: Phase
  readonly call_time_ns: number
  readonly running_ns: number
  /** It could run, but another thread took its CPU, or its CPU time was used up (cgroups). */
  readonly preempted_ns: number
  readonly preemptions: number
  /** It was woken and had no CPU yet; null where the time is not known at which threads are woken: then a part of `blocked_ns`. */
  readonly woken_ns: number | null
  readonly blocked_ns: number
  /** Before its first recorded state, or after the end of the recording. */
  readonly unknown_ns: number
  /** Times that it ran on another CPU than before. */
  readonly migrations: number
  /** Threads that had the CPU while it was preempted; most time first, at most 10. `share`: of `call_time_ns`. */
  readonly takers: readonly Taker[]
  /** Time of further ones. */
  readonly other_takers_ns: number
}

/** Threads of one name that had the CPU of a worker. */
export interface Taker {
  /** `idle`: no thread had it. */
  readonly comm: string
  /** The one that had it longest, and the number of threads (at most 64 are counted). */
  readonly tid: number
  readonly threads: number
  /** Is it a thread of the traced process? */
  readonly is_own: boolean
  readonly time_ns: number
  readonly share: number
}

/** Operators of a role in which threads of workers had no CPU. */
export interface RoleScheduling {
  readonly role: string
  readonly op: string
  readonly phase: Phase | 'none'
  /** Time of these operators, of all workers. */
  readonly operator_time_ns: number
  readonly preempted_ns: number
  readonly blocked_ns: number
  /** While they were preempted; at most 5. `share`: of `operator_time_ns`. */
  readonly takers: readonly Taker[]
  readonly other_takers_ns: number
}

/** The CPUs of the machine, and those that the program may use. Of the machine that recorded the log. */
export interface MachineFigures {
  /** CPUs that are online, as a list of the kernel (`0-7`). */
  readonly online: string
  /** Those on which its threads might run or ran (inferred where OpenMP binds them: `run.limits.cpus` is undetermined), and those of its control group; null: not known. */
  readonly allowed: string | null
  readonly cpuset: string | null
  readonly packages: number
  readonly nodes: number
  readonly cores: number
  /** CPUs of a core (SMT), at most. */
  readonly cpus_per_core: number
  /** By kind of core; one where all are of one kind. */
  readonly kinds: readonly CoreKindFigures[]
  /** The caches of the last level, such as `L3 32768K`, and how many there are of each. */
  readonly caches: readonly { readonly name: string; readonly count: number }[]
  /** Is the clock permitted to exceed the nominal one? Null: not known. */
  readonly boost: boolean | null
  /** Facts that were not read in the time that the recorder has for them. */
  readonly missing: string | null
}

/** Cores of one kind. Clocks are the highest of any core; null: the kernel does not report them, as in most virtual machines. */
export interface CoreKindFigures {
  /** `P`, `E`, `LP`; null where all cores are of one kind. */
  readonly kind: string | null
  readonly cpus: string
  readonly cores: number
  /** Of the kernel: 1024 is the fastest core. */
  readonly capacity: number | null
  readonly max_hz: number | null
  /** What the kernel permits now. */
  readonly limit_hz: number | null
  readonly governors: readonly string[]
}

/** Which threads compute, and where. */
export interface ThreadFigures {
  /** Whose threads the workers are: ggml's own (`pool`), or those of an OpenMP runtime; null: not recorded. */
  readonly runtime: 'pool' | 'openmp' | null
  /** The OpenMP runtime that ggml uses, and all that are loaded into the program. */
  readonly openmp: string | null
  readonly openmp_loaded: readonly string[]
  /** Pools that the program made of ggml's threads, each with its parameters, in their order. */
  readonly pools: readonly string[]
  /** Null where no operators of calls were recorded. */
  readonly teams: TeamFigures | null
  /** Null where the log does not contain where workers ran. */
  readonly places: PlaceFigures | null
  /** Null where all cores are of one kind, or their kinds are not known. */
  readonly by_core_kind: CoreKindTimes | null
}

/** Time of operators by kind of core. */
export interface CoreKindTimes {
  /** Part of the time of which the log does not contain the CPU: that on which the worker began the graph is assumed. */
  readonly assumed_share: number
  /** By role and op, in all layers and phases; most time first. */
  readonly operators: readonly CoreKindOperator[]
}

/** Operators of a role by kind of core. */
export interface CoreKindOperator {
  readonly role: string
  readonly op: string
  /** The fastest kind first. */
  readonly kinds: readonly TimeOnKind[]
}

/** Operators on cores of one kind. */
export interface TimeOnKind {
  /** `P`, `E`, `LP`; empty: the CPU is not known. */
  readonly kind: string
  /** Executions by one worker each. */
  readonly executions: number
  readonly time_ns: number
}

/** Threads that compute a call together. */
export interface Team {
  /** The thread that makes the call. */
  readonly caller: number
  readonly workers: number
  readonly calls: number
  readonly time_ns: number
}

/** Which threads computed the calls. */
export interface TeamFigures {
  readonly calls: number
  /** Different ones, and those with the most time, at most 8. */
  readonly teams: number
  readonly longest: readonly Team[]
  /** Calls by another thread than the call of the same context before, and those whose other workers were other threads. */
  readonly moved_calls: number
  readonly changed_calls: number
  /** Threads of workers, other than callers, that first computed after the first call. */
  readonly new_threads: number
  /** Time from the begin of a graph until they had begun, of the latest in each graph. */
  readonly start_delay_ns: number
  /** CPU time during calls of threads of the program that computed nothing of them; null where no states of them were recorded. */
  readonly others_running_ns: number | null
}

/** Where the workers ran at the begin of each graph of calls. Shares are parts of the time of these calls. */
export interface PlaceFigures {
  readonly time_ns: number
  readonly workers: readonly WorkerPlace[]
  /** Two workers were on one core while a core was free that they might use; null where the cores are not known. */
  readonly shared_core_share: number | null
  /** A worker was on a slower kind of core while one of the fastest kind was free; null where cores are of one kind. */
  readonly slow_core_share: number | null
  /** Workers that may run on fewer CPUs than they are; null: there are none, or it is not known. */
  readonly crowded: { readonly cpus: string; readonly workers: readonly number[] } | null
}

/** Where a worker's threads ran, and might run. */
export interface WorkerPlace {
  readonly worker: number
  /** The CPUs on which they might run, most time first; empty where it is not known. */
  readonly allowed: readonly { readonly cpus: string; readonly share: number }[]
  /** The CPUs on which they began, most time first, at most 8. */
  readonly cpus: readonly { readonly cpu: number; readonly share: number }[]
  /** By kind of core; empty where all are of one kind. */
  readonly by_kind: Readonly<Record<string, number>>
  /** Times that a thread began a graph on another CPU than the graph before. */
  readonly moves: number
}
