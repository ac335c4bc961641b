import type { Names } from '../../model/names.ts'
import type { TracedThreads } from '../../threads/traced.ts'
import type { TrackTree } from '../tracks.ts'

/**
 * The process of threads whose process no input records. No thread has this number: Linux's are smaller (PID_MAX_LIMIT). Viewers
 * draw each thread without a process as a row of its own at the top: hundreds on a busy machine.
 */
const UNKNOWN_PID = 1 << 22
const UNKNOWN_NAME = 'threads of unknown processes'
const UNKNOWN_DESCRIPTION =
  'Threads that shared CPUs with the traced process. The recording does not contain their processes.'

/** Writes the process of each shown thread once. */
export class ThreadLinks {
  /** The shown threads, and the names that they had first. */
  private readonly shown = new Map<number, number>()
  private readonly linked = new Set<number>()
  /** Thread ids, and negated process ids; Perfetto knows the idle thread. */
  private readonly written = new Set<number>([0])

  constructor(
    private readonly tree: TrackTree,
    private readonly names: Names,
    private readonly traced: TracedThreads,
  ) {}

  /** A thread appears in the trace, under a name (0 = not known). */
  show(tid: number, comm: number): void {
    if (tid < 0 || this.shown.has(tid)) return
    this.shown.set(tid, comm)
    this.write(tid)
  }

  /** Comes last: puts the other threads into one process, and names processes by their main threads. */
  finish(): void {
    this.traced.processNames.set(UNKNOWN_PID, UNKNOWN_NAME)
    for (const tid of this.shown.keys()) if (!this.written.has(tid)) this.link(tid, UNKNOWN_PID)
    for (const pid of this.linked) this.name(pid, this.names.text(this.shown.get(pid) ?? 0))
  }

  /** Writes the process of a thread as soon as it is known. */
  write(tid: number): void {
    const pid = this.traced.tgids.get(tid)
    if (pid !== undefined && this.shown.has(tid) && !this.written.has(tid)) this.link(tid, pid)
  }

  private link(tid: number, pid: number): void {
    const { scheduler } = this.tree.writer
    if (!scheduler) return
    this.written.add(tid)
    this.linked.add(pid)
    this.name(pid, this.traced.processNames.get(pid))
    scheduler.linkThread(this.tree.newId(), tid, pid)
  }

  private name(pid: number, name = ''): void {
    if (name === '' || this.written.has(-pid)) return
    this.written.add(-pid)
    const description = pid === UNKNOWN_PID ? UNKNOWN_DESCRIPTION : ''
    this.tree.writer.scheduler?.nameProcess(this.tree.newId(), pid, name, description)
  }
}
