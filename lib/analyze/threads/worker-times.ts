import { putAt } from '../../model/by-id.ts'
import { DefaultMap } from '../../model/default-map.ts'
import type { Phase } from '../../model/events.ts'
import type { CallParts, Statistic } from '../common/statistic.ts'
import type { CallOperators } from '../graph/operators/call-operators.ts'
import { CallWorkers } from './call-workers.ts'
import type { WorkerFigures, WorkerTime } from './figures.ts'
import type { Scheduling } from './scheduling.ts'

/** Sums of a worker. */
class WorkerSums {
  calls = 0
  callTimeNs = 0
  timeNs = 0
  offNs = 0
  waitNs = 0
  waitOpenNs = 0
  waitPreemptedNs = 0
  /** The parts of them that are in recorded calls. */
  timeInCallsNs = 0
  offInCallsNs = 0
  waitInCallsNs = 0
  /** In recorded calls, in no operator and at no barrier. */
  idlePreemptedNs = 0

  add(other: WorkerSums): void {
    for (const key of SUMS) this[key] += other[key]
  }

  /** `hasStates`: states of threads were recorded. */
  figures(hasStates: boolean): WorkerTime {
    const { calls, callTimeNs, timeInCallsNs, waitInCallsNs } = this
    const idleNs = callTimeNs - timeInCallsNs - waitInCallsNs
    const areInCalls = idleNs >= 0
    const share = (ns: number) => (callTimeNs > 0 && areInCalls ? ns / callTimeNs : null)
    return {
      calls,
      call_time_ns: callTimeNs,
      operator_time_ns: this.timeNs,
      off_cpu_ns: hasStates ? this.offNs : null,
      wait_ns: this.waitNs,
      wait_open_ns: this.waitOpenNs,
      wait_preempted_ns: hasStates ? this.waitPreemptedNs : null,
      idle_ns: calls > 0 && areInCalls ? idleNs : null,
      idle_preempted_ns: hasStates && calls > 0 && areInCalls ? Math.min(this.idlePreemptedNs, idleNs) : null,
      operator_share: share(timeInCallsNs),
      off_cpu_share: hasStates ? share(this.offInCallsNs) : null,
      wait_share: share(waitInCallsNs),
      idle_share: share(idleNs),
    }
  }
}

const SUMS = Object.keys(new WorkerSums()) as Exclude<keyof WorkerSums, 'add' | 'figures'>[]

class Worker {
  executions = 0
  /** Steps with several workers, and those in which it ended last. */
  steps = 0
  last = 0
  moves = 0
  movedNs = 0
  /** The thread of its latest operator, and the CPU where that began. */
  tid = -1
  cpu = -1
  readonly phases = new DefaultMap<Phase | 'none', WorkerSums>(() => new WorkerSums())
  /** In the operators that are added. */
  count = 0
  timeNs = 0
  offNs = 0
  preemptedNs = 0
  waitNs = 0
  waitOpenNs = 0
  waitPreemptedNs = 0
}

/** Sums the time of each worker: in operators, waiting at barriers, and the rest of the calls in which it takes part. */
export class WorkerTimes implements Statistic {
  private readonly workers: (Worker | undefined)[] = []
  private readonly counted = new CallWorkers()

  constructor(private readonly scheduling: Scheduling) {}

  call({ operators, steps, off }: CallParts): void {
    const { count, worker, tid, cpu, startNs, endNs, waitEndNs, event } = operators
    for (let i = 0; i < count; i++) {
      const times = this.workers[worker[i]!] ?? this.make(worker[i]!)
      const timeNs = endNs[i]! - startNs[i]!
      times.count++
      times.timeNs += timeNs
      if (off) {
        times.offNs += off.preemptedNs[i]! + off.blockedNs[i]!
        times.preemptedNs += off.preemptedNs[i]!
        times.waitPreemptedNs += off.waitPreemptedNs[i]!
      }
      times.waitNs += waitEndNs[i]! - endNs[i]!
      times.waitOpenNs += steps.openPartNs(operators, i, off)
      if (cpu[i] !== times.cpu || tid[i] !== times.tid) {
        if (tid[i] === times.tid && times.cpu >= 0 && cpu[i]! >= 0) {
          times.moves++
          times.movedNs += timeNs
        }
        times.cpu = cpu[i]!
        times.tid = tid[i]!
      }
      const step = steps.of[i]!
      if (step < 0 || steps.workers[step]! < 2) continue
      times.steps++
      if (steps.slowest[step] === worker[i]) times.last++
    }
    for (let number = 0; number < this.workers.length; number++) {
      const worker = this.workers[number]
      if (worker && worker.count > 0) this.close(worker, number, event)
    }
  }

  /** Adds the sums of the operators to those of their phase. */
  private close(worker: Worker, number: number, event: CallOperators['event']): void {
    const sums = worker.phases.of(event?.phase ?? 'none')
    worker.executions += worker.count
    sums.timeNs += worker.timeNs
    sums.offNs += worker.offNs
    sums.waitNs += worker.waitNs
    sums.waitOpenNs += worker.waitOpenNs
    sums.waitPreemptedNs += worker.waitPreemptedNs
    if (event) {
      sums.idlePreemptedNs -= worker.preemptedNs + worker.waitPreemptedNs
      sums.timeInCallsNs += worker.timeNs
      sums.offInCallsNs += worker.offNs
      sums.waitInCallsNs += worker.waitNs
      if (this.counted.isNew(event.call, number)) {
        sums.calls++
        sums.callTimeNs += event.endNs - event.startNs
      }
    }
    worker.count = worker.timeNs = worker.offNs = worker.preemptedNs = worker.waitNs = worker.waitPreemptedNs = 0
    worker.waitOpenNs = 0
  }

  private make(number: number): Worker {
    const made = new Worker()
    putAt(this.workers, number, made, undefined)
    return made
  }

  finish() {
    const { hasStates } = this.scheduling
    const workers = this.workers.flatMap((times, worker): WorkerFigures[] => {
      if (!times) return []
      const total = new WorkerSums()
      for (const [phase, sums] of times.phases) {
        // What is not lost in operators and at barriers.
        if (phase !== 'none') sums.idlePreemptedNs += this.scheduling.preemptedNs(phase, worker)
        sums.idlePreemptedNs = Math.max(0, sums.idlePreemptedNs)
        total.add(sums)
      }
      return [
        {
          worker,
          executions: times.executions,
          ...total.figures(hasStates),
          steps: times.steps,
          last: times.last,
          moved_operators: times.moves,
          moved_operator_time_ns: times.movedNs,
          by_phase: Object.fromEntries([...times.phases].map(([phase, sums]) => [phase, sums.figures(hasStates)])),
        },
      ]
    })
    return { workers }
  }
}
