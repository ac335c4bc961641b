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
  /** `log`: states of threads, without the threads that took their CPUs; `scheduler`: a recording of the kernel's switches. */
  readonly source: 'log' | 'scheduler'
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
