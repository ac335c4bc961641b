import type { ThreadEvent } from '../../model/events.ts'
import type { Names } from '../../model/names.ts'
import type { TrackTree } from '../tracks.ts'

/** Knows the process of each thread, and which threads are traced. Writes the process of each shown thread once. */
export class ThreadLinks {
  private readonly traced = new Set<number>()
  private readonly processes = new Set<number>()
  private readonly tgids = new Map<number, number>()
  private readonly processNames = new Map<number, string>()
  private readonly shown = new Set<number>([0])
  /** Thread ids, and negated process ids. */
  private readonly written = new Set<number>()

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
    this.processNames.set(pid, command.replace(/\s.*$/, '').replace(/^.*\//, ''))
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

  /** A thread appears in the trace. */
  show(tid: number): void {
    if (tid < 0 || this.shown.has(tid)) return
    this.shown.add(tid)
    this.write(tid)
  }

  private write(tid: number): void {
    const { scheduler } = this.tree.writer
    const pid = this.tgids.get(tid)
    if (!scheduler || pid === undefined || this.written.has(tid) || !this.shown.has(tid)) return
    this.written.add(tid)
    const name = this.processNames.get(pid)
    if (name && !this.written.has(-pid)) {
      this.written.add(-pid)
      scheduler.nameProcess(this.tree.newId(), pid, name)
    }
    scheduler.linkThread(this.tree.newId(), tid, pid)
  }
}
