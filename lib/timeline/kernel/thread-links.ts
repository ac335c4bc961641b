import type { ThreadEvent } from '../../model/events.ts'
import type { Names } from '../../model/names.ts'
import type { TrackTree } from '../tracks.ts'

/**
 * The process of threads whose process no input records. No thread has this number: Linux's are smaller (PID_MAX_LIMIT). Viewers
 * draw each thread without a process as a row of its own at the top: hundreds on a busy machine.
 */
const UNKNOWN_PID = 1 << 22
const UNKNOWN_NAME = 'threads of unknown processes'
const UNKNOWN_DESCRIPTION =
  'Threads that shared CPUs with the traced process. The recording does not contain their processes.'

/** Knows the process of each thread, and which threads are traced. Writes the process of each shown thread once. */
export class ThreadLinks {
  private readonly traced = new Set<number>()
  private readonly processes = new Set<number>()
  private readonly tgids = new Map<number, number>()
  private readonly processNames = new Map<number, string>()
  /** The shown threads, and the names that they had first. */
  private readonly shown = new Map<number, number>()
  private readonly linked = new Set<number>()
  /** Thread ids, and negated process ids; Perfetto knows the idle thread. */
  private readonly written = new Set<number>([0])

  constructor(
    private readonly tree: TrackTree,
    private readonly names: Names,
  ) {}

  /** Is no thread known to be traced? */
  get isEmpty(): boolean {
    return this.traced.size === 0
  }

  isTraced(tid: number): boolean {
    return this.traced.has(tid)
  }

  /** A process is traced; its name is taken from its command. */
  traceProcess(pid: number, command: string): void {
    this.processes.add(pid)
    this.processNames.set(pid, command.replace(/\s.*/, '').replace(/^.*\//, ''))
    this.tgids.set(pid, pid)
    this.trace(pid)
  }

  /** A thread is traced. If exactly one process is traced, the thread belongs to it. */
  trace(tid: number): void {
    if (this.traced.has(tid)) return
    this.traced.add(tid)
    const [pid] = this.processes
    if (this.processes.size === 1 && !this.tgids.has(tid)) this.tgids.set(tid, pid!)
    this.write(tid)
  }

  /** Uses an event about a thread. The process of a traced thread is traced, and so are the threads that it creates. */
  learn({ tid, tgid, comm, parentTid, what }: ThreadEvent): void {
    const isOfTraced = this.processes.has(tgid) || (what === 'fork' && tgid < 0 && this.traced.has(parentTid))
    if (tgid > 0) {
      this.tgids.set(tid, tgid)
      if (this.traced.has(tid)) this.processes.add(tgid)
    }
    if (tid === tgid && comm !== 0 && !this.processNames.get(tgid)) this.processNames.set(tgid, this.names.text(comm))
    if (isOfTraced) this.trace(tid)
    this.write(tid)
  }

  /** A thread appears in the trace, under a name (0 = not known). */
  show(tid: number, comm: number): void {
    if (tid < 0 || this.shown.has(tid)) return
    this.shown.set(tid, comm)
    this.write(tid)
  }

  /** Comes last: puts the other threads into one process, and names processes by their main threads. */
  finish(): void {
    this.processNames.set(UNKNOWN_PID, UNKNOWN_NAME)
    for (const tid of this.shown.keys()) if (!this.written.has(tid)) this.link(tid, UNKNOWN_PID)
    for (const pid of this.linked) this.name(pid, this.names.text(this.shown.get(pid) ?? 0))
  }

  private write(tid: number): void {
    const pid = this.tgids.get(tid)
    if (pid !== undefined && this.shown.has(tid) && !this.written.has(tid)) this.link(tid, pid)
  }

  private link(tid: number, pid: number): void {
    const { scheduler } = this.tree.writer
    if (!scheduler) return
    this.written.add(tid)
    this.linked.add(pid)
    this.name(pid, this.processNames.get(pid))
    scheduler.linkThread(this.tree.newId(), tid, pid)
  }

  private name(pid: number, name = ''): void {
    if (name === '' || this.written.has(-pid)) return
    this.written.add(-pid)
    const description = pid === UNKNOWN_PID ? UNKNOWN_DESCRIPTION : ''
    this.tree.writer.scheduler?.nameProcess(this.tree.newId(), pid, name, description)
  }
}
