import { DefaultMap } from '../../model/default-map.ts'
import type { SwitchEvent, WakingEvent } from '../../model/events.ts'
import type { Machine } from '../../sink/writer.ts'
import { RunThreads } from '../../threads/run-threads.ts'
import type { ArgMaker } from '../labels.ts'
import { Tracks, type TrackTree } from '../tracks.ts'
import { ThreadLinks } from './thread-links.ts'

/** The first kernel release with the state bits of `TaskState`: trace_processor decodes states by the release. */
const RELEASE_MIN = [4, 14] as const

/** More CPUs are an error of the log: Linux has at most 8192. */
const CPUS_MAX = 8192

/** What is drawn of a CPU. */
interface Cpu {
  /** Are its switches drawn? */
  isShown: boolean
  /** The last switch that was not written; written when the CPU becomes visible. */
  held: SwitchEvent | undefined
}

/**
 * Draws the scheduler's events of all inputs. Logs, which name the traced process and its threads, come first; then the inputs
 * that record switches. By default, it draws the threads of the traced process and the CPUs that they use, from the thread
 * that precedes their first switch (or wakeup) there until the process ends. With `allThreads`, or if no input names a process,
 * it draws everything.
 */
export class Scheduler {
  /** The threads of all inputs. */
  readonly threads: RunThreads
  private readonly cpus = new DefaultMap<number, Cpu>(() => ({ isShown: false, held: undefined }))
  private readonly links: ThreadLinks
  private readonly rows: CpuRows | undefined
  private machine: Machine = {}
  private endNs = Infinity

  /** `hasSwitches`: an input records switches. */
  constructor(
    private readonly tree: TrackTree,
    make: ArgMaker,
    private readonly allThreads: boolean,
    hasSwitches: boolean,
  ) {
    this.threads = new RunThreads(make.names, hasSwitches, (tid) => this.links.write(tid))
    this.links = new ThreadLinks(tree, make.names, this.threads.traced, () => this.isAll)
    this.rows = tree.writer.scheduler ? undefined : new CpuRows(tree, make)
  }

  /** Uses facts of an input: machine and process. */
  describe(attributes: Readonly<Record<string, string | number>>): void {
    this.machine = { ...machineOf(attributes), ...this.machine }
    this.threads.describe(attributes)
  }

  /** The traced process lived at least until then. */
  lived(endNs: number): void {
    this.endNs = this.endNs === Infinity ? endNs : Math.max(this.endNs, endNs)
  }

  switched(event: SwitchEvent): void {
    const { threads } = this
    this.begin()
    const before = threads.on(event.cpu)
    threads.switched(event)
    if (event.cpu < 0) return // some texts do not record the CPU: no track can show the switch
    const cpu = this.cpus.of(event.cpu)
    const concerns = this.isAll || threads.traced.has(event.prevTid) || threads.traced.has(event.nextTid)
    if (!cpu.isShown && concerns) this.show(cpu)
    if (!cpu.isShown) {
      cpu.held = event
      return
    }
    if (before >= 0 && event.prevTid >= 0 && before !== event.prevTid) this.write(bridge(event, before))
    if (concerns || event.atNs <= this.endNs) return this.write(event)
    this.write({ ...event, nextTid: 0, nextComm: 0, nextPrio: -1 }) // after the process ended, other threads are not drawn
    cpu.isShown = false
    cpu.held = event
  }

  waking(event: WakingEvent): void {
    const { threads } = this
    this.begin()
    threads.waking(event)
    const { tid, comm, wakerTid, targetCpu } = event
    if (event.cpu < 0 || targetCpu < 0) return
    const isTraced = threads.traced.has(tid)
    const target = this.cpus.of(targetCpu)
    if (isTraced && !target.isShown) this.show(target)
    if (!this.isAll && !isTraced && !threads.traced.has(wakerTid) && !target.isShown) return
    this.links.show(tid, comm)
    this.links.show(wakerTid, threads.commOn(event.cpu, wakerTid))
    this.tree.writer.scheduler?.waking(event)
  }

  /** Comes last. Returns the number of state changes that came too late to be drawn. */
  finish(): number {
    const { machine, threads } = this
    const late = threads.finish()
    this.links.finish(threads.heldNs)
    const release = threads.hasBegun ? releaseFor(machine.release) : machine.release
    if (release !== undefined || machine.cpus !== undefined) this.tree.writer.machine?.({ ...machine, release })
    this.rows?.finish()
    return late
  }

  private get isAll(): boolean {
    return this.allThreads || this.threads.traced.isEmpty
  }

  private begin(): void {
    if (!this.threads.hasBegun) this.tree.writer.machine?.({ release: releaseFor(this.machine.release) })
  }

  private show(cpu: Cpu): void {
    cpu.isShown = true
    if (cpu.held) this.write(cpu.held)
    cpu.held = undefined
  }

  private write(event: SwitchEvent): void {
    this.links.show(event.prevTid, event.prevComm)
    this.links.show(event.nextTid, event.nextComm)
    const { scheduler } = this.tree.writer
    if (scheduler) scheduler.switched(event)
    else this.rows?.place(event)
  }
}

/** Replaces missing switches by one: from the thread that had the CPU to the `prev` thread of the next switch. */
function bridge(event: SwitchEvent, tid: number): SwitchEvent {
  const { prevTid, prevComm, prevPrio } = event
  return { ...event, prevTid: tid, prevState: 0, nextTid: prevTid, nextComm: prevComm, nextPrio: prevPrio }
}

/** What the attributes of an input contain about the machine. */
function machineOf(attributes: Readonly<Record<string, string | number>>): Machine {
  const { kernel = attributes['kernel_release'], cpus, cpu } = attributes
  const count = Number(cpus)
  return {
    ...(kernel !== undefined && { release: String(kernel) }),
    ...(Number.isInteger(count) && count > 0 && count <= CPUS_MAX && { cpus: count }),
    ...(cpu !== undefined && { cpu: String(cpu) }),
  }
}

/** The release to write. Events have the state bits of Linux 4.14 and later, also if an older kernel recorded them. */
function releaseFor(release: string | undefined): string {
  const [major = 0, minor = 0] = (release ?? '').split('.').map((part) => Number.parseInt(part, 10))
  const isNew = major > RELEASE_MIN[0] || (major === RELEASE_MIN[0] && minor >= RELEASE_MIN[1])
  return release !== undefined && isNew ? release : `${RELEASE_MIN.join('.')}.0`
}

/** Threads on each CPU as rows of slices, for writers without a {@link SchedulerSink}. */
class CpuRows {
  private readonly tracks: Tracks
  private readonly cpus = new DefaultMap((cpu: number) => ({ track: this.tracks.add('cpu', { cpu }), isBusy: false }))
  private lastNs = 0

  constructor(
    private readonly tree: TrackTree,
    private readonly make: ArgMaker,
  ) {
    this.tracks = new Tracks(tree)
  }

  place({ cpu, atNs, nextTid, nextComm }: SwitchEvent): void {
    const row = this.cpus.of(cpu)
    this.lastNs = Math.max(this.lastNs, atNs)
    if (row.isBusy) this.tree.writer.end(row.track, atNs)
    row.isBusy = nextTid !== 0 // 0 is the idle task
    if (!row.isBusy) return
    const extra = [this.make.int('tid', nextTid)]
    this.tree.writer.begin(row.track, atNs, { name: nextComm, category: 'state', extra })
  }

  /** Ends all open slices at the last switch of any CPU. */
  finish(): void {
    for (const row of this.cpus.values()) if (row.isBusy) this.tree.writer.end(row.track, this.lastNs)
    this.cpus.clear()
  }
}
