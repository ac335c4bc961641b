import { firstIndex } from '../../bytes/search.ts'
import { DefaultMap } from '../../model/default-map.ts'
import type { Phase } from '../../model/events.ts'
import type { Names } from '../../model/names.ts'
import type { CpuWait } from '../../model/waits.ts'
import type { SchedulingFigures } from './figures.ts'
import { TAKERS_MAX } from './scheduling.ts'
import { CpuTakers } from './takers.ts'

/** The threads that had the CPUs of workers in some calls, from waits that come later than these calls, in any order. */
export class CallTakers {
  private readonly calls: {
    readonly phase: Phase
    readonly fromNs: number
    readonly toNs: number
    readonly weight: number
  }[] = []
  /** Time of the calls of a phase, each times those that it represents. */
  private readonly callNs = new DefaultMap<Phase, { ns: number }>(() => ({ ns: 0 }))
  private readonly takers = new DefaultMap<string, CpuTakers>(() => new CpuTakers())

  /** `isOwn`: does the thread belong to the traced process? */
  constructor(
    private readonly names: Names,
    private readonly isOwn: (tid: number) => boolean,
  ) {}

  /** Calls come in order of time. `weight`: the number of calls that it represents. */
  call(phase: Phase, fromNs: number, toNs: number, weight: number): void {
    this.calls.push({ phase, fromNs, toNs, weight })
    this.callNs.of(phase).ns += (toNs - fromNs) * weight
  }

  /** A wait that is only partly in a call counts in proportion. */
  wait({ worker, fromNs, toNs, shares }: CpuWait): void {
    const { calls } = this
    const first = firstIndex(0, calls.length, (i) => calls[i]!.toNs > fromNs)
    for (let i = first; i < calls.length && calls[i]!.fromNs < toNs; i++) {
      const call = calls[i]!
      const part = (Math.min(call.toNs, toNs) - Math.max(call.fromNs, fromNs)) / (toNs - fromNs)
      const takers = this.takers.of(`${worker} ${call.phase}`)
      for (const { tid, comm, ns } of shares.known) takers.add(comm, tid, this.isOwn(tid), ns * part * call.weight)
    }
  }

  /** The figures with the takers of workers. */
  named(scheduling: SchedulingFigures): SchedulingFigures {
    if (this.takers.size === 0) return scheduling
    const workers = scheduling.workers.map((worker) => {
      const inCalls = this.callNs.of(worker.phase).ns
      const scale = inCalls > 0 ? worker.call_time_ns / inCalls : 1
      const list = this.takers.of(`${worker.worker} ${worker.phase}`).list(TAKERS_MAX, inCalls, this.names)
      const takers = list.takers.map((taker) => ({ ...taker, time_ns: taker.time_ns * scale }))
      return { ...worker, takers, other_takers_ns: list.other_takers_ns * scale }
    })
    return { ...scheduling, takers: 'all', workers }
  }
}
