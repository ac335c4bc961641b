import type { ThreadEvent } from '../../model/events.ts'
import type { Names } from '../../model/names.ts'
import type { TrackTree } from '../tracks.ts'

/** Which thread is of which process, and which of them are traced. Tells the writer, once, of those that are shown. */
export class ThreadLinks {
  private readonly traced = new Set<number>()
  private readonly processes = new Set<number>()
  private readonly tgids = new Map<number, number>()
  private readonly processNames = new Map<number, string>()
  private readonly shown = new Set<number>([0])
  private readonly told = new Set<number>()

  constructor(
    private readonly tree: TrackTree,
    private readonly names: Names,
  ) {}

  /** Is no process traced, as far as is known? */
  get isEmpty(): boolean {
    return this.traced.size === 0
  }

  isTraced(tid: number): boolean {
    return this.traced.has(tid)
  }

  /** A process is traced; its command says what it is called. */
  traceProcess(pid: number, command: string): void {
    this.processes.add(pid)
    this.processNames.set(pid, command.replace(/\s.*$/, '').replace(/^.*\//, ''))
    this.tgids.set(pid, pid)
    this.trace(pid)
  }

  /** A thread is traced. Where one process is traced, it is its thread. */
  trace(tid: number): void {
    if (this.traced.has(tid)) return
    this.traced.add(tid)
    const [pid] = this.processes
    if (this.processes.size === 1 && !this.tgids.has(tid)) this.tgids.set(tid, pid!)
    this.tell(tid)
  }

  /** Takes in what an input tells of a thread. A traced thread's process is traced, and what a traced thread begins. */
  learn({ tid, tgid, comm, parentTid, what }: ThreadEvent): void {
    const isOfTraced = this.processes.has(tgid) || (what === 'fork' && tgid < 0 && this.traced.has(parentTid))
    if (tgid > 0) {
      this.tgids.set(tid, tgid)
      if (this.traced.has(tid)) this.processes.add(tgid)
    }
    if (tid === tgid && comm !== 0 && !this.processNames.get(tgid)) this.processNames.set(tgid, this.names.text(comm))
    if (isOfTraced) this.trace(tid)
    this.tell(tid)
  }

  /** A thread is drawn. */
  show(tid: number): void {
    if (tid < 0 || this.shown.has(tid)) return
    this.shown.add(tid)
    this.tell(tid)
  }

  private tell(tid: number): void {
    const { scheduler } = this.tree.writer
    const pid = this.tgids.get(tid)
    if (!scheduler || pid === undefined || this.told.has(tid) || !this.shown.has(tid)) return
    this.told.add(tid)
    const name = this.processNames.get(pid)
    if (name && !this.told.has(-pid)) {
      this.told.add(-pid)
      scheduler.nameProcess(this.tree.newId(), pid, name)
    }
    scheduler.linkThread(this.tree.newId(), tid, pid)
  }
}
