import type { Names } from '../../model/names.ts'
import type { TracedThreads } from '../../threads/traced.ts'
import type { TrackTree } from '../tracks.ts'

/**
 * The process of threads whose process no input records. No thread has this number: Linux's are smaller (PID_MAX_LIMIT). Viewers
 * draw each thread without a process as a row of its own at the top: hundreds on a busy machine.
 */
const UNKNOWN_PID = 1 << 22
/** The process of threads that the traced ones never waited for: a busy machine has hundreds of such processes. */
const OTHER_PID = UNKNOWN_PID + 1
/** Processes that had CPUs of the traced one longest: each is a group at the top of viewers. */
const TAKERS_MAX = 16

const TOGETHER: ReadonlyMap<number, readonly [name: string, description: string]> = new Map([
  [
    UNKNOWN_PID,
    [
      'threads of unknown processes',
      'Threads that had a CPU while the traced process waited for it. The recording does not contain their processes.',
    ],
  ],
  [
    OTHER_PID,
    [
      'other programs',
      `Threads of all other processes: the traced one never waited for them, or longer for ${TAKERS_MAX} others. With --all-threads each has its own.`,
    ],
  ],
])

/** Writes the process of each shown thread once. */
export class ThreadLinks {
  /** The shown threads, and the names that they had first. */
  private readonly shown = new Map<number, number>()
  private readonly linked = new Set<number>()
  /** Thread ids, and negated process ids; Perfetto knows the idle thread. */
  private readonly written = new Set<number>([0])

  /** `isAll`: all processes are shown, each by itself. */
  constructor(
    private readonly tree: TrackTree,
    private readonly names: Names,
    private readonly traced: TracedThreads,
    private readonly isAll: () => boolean,
  ) {}

  /** A thread appears in the trace, under a name (0 = not known). */
  show(tid: number, comm: number): void {
    if (tid < 0 || this.shown.has(tid)) return
    this.shown.set(tid, comm)
    this.write(tid)
  }

  /**
   * Comes last: puts threads together that need no process of their own, and names processes by their main threads. `heldNs`: by thread, the
   * time for which it had CPUs that traced threads waited for.
   */
  finish(heldNs: ReadonlyMap<number, number>): void {
    const { traced, shown, written } = this
    const takers = this.takersOf(heldNs)
    for (const tid of shown.keys()) {
      if (written.has(tid)) continue
      const pid = traced.tgids.get(tid)
      const isOwn = this.isAll() || (pid === undefined ? heldNs.has(tid) : takers.has(pid) || traced.includes(pid))
      this.link(tid, isOwn ? (pid ?? UNKNOWN_PID) : OTHER_PID)
    }
    for (const pid of this.linked) this.name(pid, this.names.text(this.shown.get(pid) ?? 0))
  }

  /** Writes the process of a thread as soon as it is known. */
  write(tid: number): void {
    const pid = this.traced.tgids.get(tid)
    if (pid === undefined || !this.shown.has(tid) || this.written.has(tid)) return
    if (this.isAll() || this.traced.includes(pid)) this.link(tid, pid)
  }

  /** The processes that had CPUs of the traced one longest. */
  private takersOf(heldNs: ReadonlyMap<number, number>): ReadonlySet<number> {
    const sums = new Map<number, number>()
    for (const [tid, ns] of heldNs) {
      const pid = this.traced.tgids.get(tid)
      if (pid !== undefined) sums.set(pid, ns + (sums.get(pid) ?? 0))
    }
    const most = [...sums].sort(([, a], [, b]) => b - a).slice(0, TAKERS_MAX)
    return new Set(most.map(([pid]) => pid))
  }

  private link(tid: number, pid: number): void {
    const { scheduler } = this.tree.writer
    if (!scheduler) return
    this.written.add(tid)
    this.linked.add(pid)
    this.name(pid, TOGETHER.get(pid)?.[0] ?? this.traced.processNames.get(pid))
    scheduler.linkThread(this.tree.newId(), tid, pid)
  }

  private name(pid: number, name = ''): void {
    if (name === '' || this.written.has(-pid)) return
    this.written.add(-pid)
    const description = TOGETHER.get(pid)?.[1] ?? ''
    this.tree.writer.scheduler?.nameProcess(this.tree.newId(), pid, name, description)
  }
}
