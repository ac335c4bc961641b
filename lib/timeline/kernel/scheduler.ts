import { DefaultMap } from '../../model/default-map.ts'
import { type SwitchEvent, TaskState, type ThreadEvent, type WakingEvent } from '../../model/events.ts'
import { INT32_MAX } from '../../model/limits.ts'
import { threadText } from '../../model/waits.ts'
import type { Machine } from '../../sink/writer.ts'
import type { ArgMaker } from '../labels.ts'
import type { TrackTree } from '../tracks.ts'
import { CpuRows } from './cpu-rows.ts'
import type { States } from './states.ts'
import { WaitedCpus } from './takers.ts'
import { type Change, ThreadChanges } from './thread-changes.ts'
import { ThreadLinks } from './thread-links.ts'

/** The first kernel release with the state bits of {@link TaskState}: trace_processor decodes states by the release. */
const RELEASE_MIN = [4, 14] as const

/** More CPUs are an error of the log: Linux has at most 8192. */
const CPUS_MAX = 8192

/** State of a CPU after its last switch. */
interface Cpu {
  /** The thread that has it; -1 = not known. */
  tid: number
  comm: number
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
  private readonly cpus = new DefaultMap<number, Cpu>(() => ({ tid: -1, comm: 0, isShown: false, held: undefined }))
  private readonly lanes: States[] = []
  private readonly waited = new WaitedCpus()
  private readonly changes: ThreadChanges
  private readonly links: ThreadLinks
  private readonly rows: CpuRows | undefined
  private readonly labels = new Map<number, { readonly comm: number; readonly label: number }>()
  private machine: Machine = {}
  private hasBegun = false
  private endNs = Infinity
  /** The last switch, wakeup or end of a thread. */
  private lastNs = -Infinity

  /** `isExpected`: an input records switches. They replace the states of threads that logs record. */
  constructor(
    private readonly tree: TrackTree,
    private readonly make: ArgMaker,
    private readonly allThreads: boolean,
    private isExpected: boolean,
  ) {
    this.changes = new ThreadChanges(this.lanes, (untilNs) => this.waited.release(untilNs))
    this.links = new ThreadLinks(tree, make.names)
    this.rows = tree.writer.scheduler ? undefined : new CpuRows(tree, make)
  }

  /** An input begins. `lane` draws the states of its threads. */
  join(lane: States): void {
    this.lanes.push(lane)
    if (this.isExpected) lane.supersede()
  }

  /** Uses facts of an input: machine and process. */
  describe(attributes: Readonly<Record<string, string | number>>): void {
    const { pid, command } = attributes
    this.machine = { ...machineOf(attributes), ...this.machine }
    const number = Number(pid)
    if (pid !== undefined && Number.isInteger(number) && number > 0 && number <= INT32_MAX)
      this.links.traceProcess(number, `${command ?? ''}`)
  }

  /** The thread belongs to the traced process. */
  trace(tid: number): void {
    if (tid > 0) this.links.trace(tid)
  }

  /** Does the thread belong to the traced process? */
  isTraced(tid: number): boolean {
    return this.links.isTraced(tid)
  }

  /** The traced process lived at least until then. */
  lived(endNs: number): void {
    this.endNs = this.endNs === Infinity ? endNs : Math.max(this.endNs, endNs)
  }

  thread(event: ThreadEvent): void {
    this.links.learn(event)
    if (event.what === 'exit' && this.hasBegun) this.reach(event.atNs)
    if (event.what === 'exit' && this.links.isTraced(event.tid))
      this.change({ tid: event.tid, atNs: event.atNs, state: 'ended' })
  }

  switched(event: SwitchEvent): void {
    if (!this.hasBegun) this.begin()
    this.reach(event.atNs)
    if (event.cpu < 0) return this.changeStates(event) // some texts do not record the CPU: no track can show the switch
    const cpu = this.cpus.of(event.cpu)
    this.changeStates(event)
    const before = cpu.tid
    cpu.tid = event.nextTid
    cpu.comm = event.nextComm
    const concerns = this.isAll || this.links.isTraced(event.prevTid) || this.links.isTraced(event.nextTid)
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
    if (!this.hasBegun) this.begin()
    const { tid, comm, wakerTid, atNs, targetCpu } = event
    const waker = this.cpus.get(event.cpu)
    const isTraced = this.links.isTraced(tid)
    if (isTraced) {
      this.reach(atNs)
      const by = this.label(wakerTid, wakerTid === waker?.tid ? waker.comm : 0)
      this.change({ tid, atNs, state: 'woken', cpu: targetCpu, by })
    }
    if (event.cpu < 0 || targetCpu < 0) return
    const target = this.cpus.of(targetCpu)
    if (isTraced && !target.isShown) this.show(target)
    if (!this.isAll && !isTraced && !this.links.isTraced(wakerTid) && !target.isShown) return
    this.links.show(tid, comm)
    this.links.show(wakerTid, wakerTid === waker?.tid ? waker.comm : 0)
    this.tree.writer.scheduler?.waking(event)
  }

  /** Comes last. Returns the number of state changes that came too late to be drawn. */
  finish(): number {
    const late = this.changes.finish()
    if (this.hasBegun) for (const lane of this.lanes) lane.finish(this.lastNs)
    this.links.finish()
    const { machine } = this
    const release = this.hasBegun ? releaseFor(machine.release) : machine.release
    if (release !== undefined || machine.cpus !== undefined) this.tree.writer.machine?.({ ...machine, release })
    this.rows?.finish()
    return late
  }

  private reach(atNs: number): void {
    if (atNs > this.lastNs) this.lastNs = atNs
  }

  private get isAll(): boolean {
    return this.allThreads || this.links.isEmpty
  }

  private begin(): void {
    this.hasBegun = true
    this.isExpected = true
    for (const lane of this.lanes) lane.supersede()
    this.tree.writer.machine?.({ release: releaseFor(this.machine.release) })
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

  /** Changes the states of the switched threads, if they belong to the traced process. */
  private changeStates({ cpu, atNs, prevTid, prevState, nextTid, nextComm }: SwitchEvent): void {
    const { waited } = this
    if (waited.isFull) this.changes.makeRoom()
    if (waited.has(cpu)) waited.take(cpu, atNs, nextTid, nextComm)
    if (this.links.isTraced(prevTid)) {
      const change = { tid: prevTid, atNs, cpu }
      if (prevState & (TaskState.X | TaskState.Z)) this.change({ ...change, state: 'ended' })
      else if (prevState === 0 || prevState & TaskState['+']) {
        const by = this.label(nextTid, nextComm)
        const isFollowed = cpu >= 0 && this.lanes.length > 0
        const takers = isFollowed ? waited.wait(cpu, atNs, prevTid, { tid: nextTid, comm: nextComm }) : undefined
        this.change({ ...change, state: 'runnable', by, takers })
      } else this.change({ ...change, state: 'blocked', wait: this.letter(prevState) })
    }
    if (!this.links.isTraced(nextTid)) return
    waited.runs(cpu, atNs, nextTid)
    this.change({ tid: nextTid, atNs, cpu, state: 'running' })
  }

  private change(change: Partial<Change> & Pick<Change, 'tid' | 'atNs' | 'state'>): void {
    if (this.lanes.length > 0) this.changes.add({ cpu: -1, by: 0, wait: 0, takers: undefined, ...change })
  }

  private letter(bits: number): number {
    const found = Object.entries(TaskState).find(([, bit]) => (bits & bit) !== 0)
    return this.make.names.id(found ? found[0] : '?')
  }

  /** `hog 42`: name and id of a thread in one text. */
  private label(tid: number, comm: number): number {
    if (tid < 0) return 0
    const known = this.labels.get(tid)
    if (known?.comm === comm) return known.label
    const { names } = this.make
    const label = names.id(threadText({ tid, comm }, names))
    this.labels.set(tid, { comm, label })
    return label
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
