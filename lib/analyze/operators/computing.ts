import type { WorkerFigures } from '../threads/figures.ts'

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

/** What a worker did: the parts sum to its time. */
export interface WorkerPart {
  readonly what: 'computing' | 'without a CPU' | 'at barriers' | 'idle'
  /** Null where it is not known. */
  readonly time_ns: number | null
  /** Of the time of its calls; null where its operators are not in calls. */
  readonly share: number | null
}

/** The parts of a worker's time. It had no CPU in operators (preempted or blocked), at barriers or between them (preempted). */
export function partsOfWorker(worker: WorkerFigures): WorkerPart[] {
  const { off_cpu_ns, wait_ns, idle_ns, operator_share, wait_share, idle_share } = worker
  // Documents of earlier versions have no times of these.
  const [waitLost, idleLost] = [worker.wait_preempted_ns ?? 0, worker.idle_preempted_ns ?? 0]
  const share = (ns: number) => (worker.call_time_ns > 0 ? ns / worker.call_time_ns : 0)
  const waitLostShare = share(waitLost - (worker.by_phase.none?.wait_preempted_ns ?? 0))
  const offShare = worker.off_cpu_share ?? 0
  const less = (whole: number | null, part: number) => (whole === null ? null : whole - part)
  const offWhole = off_cpu_ns === null ? null : off_cpu_ns + waitLost + idleLost
  return [
    { what: 'computing', time_ns: computingNs(worker), share: less(operator_share, offShare) },
    {
      what: 'without a CPU',
      time_ns: offWhole,
      share: less(operator_share && offShare, -waitLostShare - share(idleLost)),
    },
    { what: 'at barriers', time_ns: wait_ns - waitLost, share: less(wait_share, waitLostShare) },
    { what: 'idle', time_ns: less(idle_ns, idleLost), share: less(idle_share, share(idleLost)) },
  ]
}
