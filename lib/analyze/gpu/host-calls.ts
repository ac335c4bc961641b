import { DefaultMap } from '../../model/default-map.ts'
import type { ApiEvent } from '../../model/gpu-events.ts'
import type { Names } from '../../model/names.ts'
import { callKindOf } from './classes.ts'
import type { GpuCall, GpuCallKind, GpuProcess } from './figures.ts'
import { boundedBy, restOf } from './tables.ts'

const KINDS: readonly GpuCallKind['kind'][] = ['launch', 'synchronize', 'copy', 'other']
/** Functions of a table. */
const CALLS_MAX = 50

interface CallSum {
  readonly name: number
  readonly kind: number
  count: number
  timeNs: number
  maxNs: number
  work: number
}

/** Calls of the threads of one process. */
interface Process {
  readonly pid: number
  readonly sums: Map<number, CallSum>
  /** Of each thread and kind, the end of the latest call. */
  readonly untilNs: Map<number, Float64Array>
  readonly counts: Float64Array
  readonly timesNs: Float64Array
}

/** Sums of calls of CUDA, HIP and Vulkan; those of one thread in order, outer before inner. */
export class HostCalls {
  private readonly processes = new DefaultMap<number, Process>(newProcess)

  constructor(private readonly names: Names) {}

  add({ name, startNs, endNs, pid, tid, launched }: ApiEvent): void {
    const owner = this.processes.of(pid)
    let sum = owner.sums.get(name)
    if (!sum) {
      const kind = KINDS.indexOf(callKindOf(this.names.text(name)))
      sum = { name, kind, count: 0, timeNs: 0, maxNs: 0, work: 0 }
      owner.sums.set(name, sum)
    }
    sum.count++
    sum.timeNs += endNs - startNs
    sum.maxNs = Math.max(sum.maxNs, endNs - startNs)
    sum.work += launched
    let untilNs = owner.untilNs.get(tid)
    if (!untilNs) {
      untilNs = new Float64Array(KINDS.length).fill(-Infinity)
      owner.untilNs.set(tid, untilNs)
    }
    owner.counts[sum.kind]!++
    owner.timesNs[sum.kind]! += Math.max(0, endNs - Math.max(startNs, untilNs[sum.kind]!))
    untilNs[sum.kind] = Math.max(untilNs[sum.kind]!, endNs)
  }

  figures(): GpuProcess[] {
    return [...this.processes.values()]
      .sort((a, b) => a.pid - b.pid)
      .map(({ pid, sums, untilNs, counts, timesNs }) => {
        const { shown, rest } = boundedBy([...sums.values()], CALLS_MAX)
        return {
          pid: pid < 0 ? null : pid,
          threads: untilNs.size,
          kinds: KINDS.flatMap((kind, i) =>
            counts[i]! > 0 ? [{ kind, count: counts[i]!, time_ns: timesNs[i]! }] : [],
          ),
          calls: shown.map((sum) => this.callOf(sum)),
          other_calls: restOf(rest),
        }
      })
  }

  private callOf({ name, kind, count, timeNs, maxNs, work }: CallSum): GpuCall {
    const text = this.names.text(name)
    return { name: text, kind: KINDS[kind]!, count, time_ns: timeNs, mean_ns: timeNs / count, max_ns: maxNs, work }
  }
}

function newProcess(pid: number): Process {
  const [counts, timesNs] = [new Float64Array(KINDS.length), new Float64Array(KINDS.length)]
  return { pid, sums: new Map(), untilNs: new Map(), counts, timesNs }
}
