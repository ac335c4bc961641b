import type { ThreadEvent } from '../model/events.ts'
import type { Names } from '../model/names.ts'

/** Knows the process of each thread, and which threads are traced. */
export class TracedThreads {
  /** Processes of threads, and names of processes. */
  readonly tgids = new Map<number, number>()
  readonly processNames = new Map<number, string>()
  private readonly threads = new Set<number>()
  private readonly processes = new Set<number>()

  /** `onThread` is called when more is known of a thread. */
  constructor(
    private readonly names: Names,
    private readonly onThread: (tid: number) => void,
  ) {}

  /** Is no thread known to be traced? */
  get isEmpty(): boolean {
    return this.threads.size === 0
  }

  has(tid: number): boolean {
    return this.threads.has(tid)
  }

  /** Is a process traced? */
  includes(pid: number): boolean {
    return this.processes.has(pid)
  }

  /** A process is traced; its name is taken from its command. */
  addProcess(pid: number, command: string): void {
    this.processes.add(pid)
    this.processNames.set(pid, command.replace(/\s.*/, '').replace(/^.*\//, ''))
    this.tgids.set(pid, pid)
    this.add(pid)
  }

  /** A thread is traced. If exactly one process is traced, the thread belongs to it. */
  add(tid: number): void {
    if (this.threads.has(tid)) return
    this.threads.add(tid)
    const [pid] = this.processes
    if (this.processes.size === 1 && !this.tgids.has(tid)) this.tgids.set(tid, pid!)
    this.onThread(tid)
  }

  /** Uses an event about a thread. The process of a traced thread is traced, and so are the threads that it creates. */
  learn({ tid, tgid, comm, parentTid, what }: ThreadEvent): void {
    const isOfTraced = this.processes.has(tgid) || (what === 'fork' && tgid < 0 && this.threads.has(parentTid))
    if (tgid > 0) {
      this.tgids.set(tid, tgid)
      if (this.threads.has(tid)) this.processes.add(tgid)
    }
    if (tid === tgid && comm !== 0 && !this.processNames.get(tgid)) this.processNames.set(tgid, this.names.text(comm))
    if (isOfTraced) this.add(tid)
    this.onThread(tid)
  }
}
