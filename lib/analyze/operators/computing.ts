/** Times of operators, and of those the time in which their threads had no CPU; null where that was not recorded. */
export interface TimedOperators {
  readonly operator_time_ns: number
  readonly preempted_ns?: number | null
  readonly blocked_ns?: number | null
  readonly off_cpu_ns?: number | null
}

/** Time of computing: that in operators, without the time in which their threads had no CPU, as far as it was recorded. */
export function computingNs({ operator_time_ns, preempted_ns, blocked_ns, off_cpu_ns }: TimedOperators): number {
  return Math.max(0, operator_time_ns - (off_cpu_ns ?? (preempted_ns ?? 0) + (blocked_ns ?? 0)))
}
