import { type SwitchEvent, stateAfter, TaskState, type ThreadEvent, type WakingEvent } from '../model/events.ts'
import { INT32_MAX } from '../model/limits.ts'
import type { Names } from '../model/names.ts'
import { threadText } from '../model/waits.ts'
import { States, type StateTaker, type WaitTaker } from './states.ts'
import { WaitedCpus } from './takers.ts'
import { type Change, ThreadChanges } from './thread-changes.ts'
import { TracedThreads } from './traced.ts'

/**
 * The threads of all inputs of a run: which of them are traced, their states, and who took their CPUs. Logs, which name the traced process
 * and its threads, come first; then the inputs that record switches.
 */
export class RunThreads {
  readonly traced: TracedThreads
  /** Has any switch or wakeup come? */
  hasBegun = false
  private readonly inputs: States[] = []
  private readonly waited = new WaitedCpus()
  private readonly changes = new ThreadChanges(this.inputs, (untilNs) => this.waited.release(untilNs))
  /** By CPU: the thread that has it. */
  private readonly running = new Map<number, { tid: number; comm: number; sinceNs: number }>()
  /** By thread that was woken and does not run yet: its CPU. */
  private readonly woken = new Map<number, number>()
  /** By thread: the time for which it had CPUs that traced threads waited for, about. */
  readonly heldNs = new Map<number, number>()
  private readonly labels = new Map<number, { readonly comm: number; readonly label: number }>()
  /** The last switch, wakeup or end of a thread. */
  private lastNs = -Infinity

  /**
   * `hasSwitches`: an input records switches. They complete the states of threads that logs record. `onThread` is called when more is
   * known of a thread.
   */
  constructor(
    private readonly names: Names,
    private hasSwitches: boolean,
    onThread: (tid: number) => void = () => {},
  ) {
    this.traced = new TracedThreads(names, onThread)
  }

  /** An input begins. `stated` receives the states of its threads, `waited` waits whose takers are known. */
  begin(stated: StateTaker, waited?: WaitTaker): States {
    const states = new States(this.names, this.traced, stated, waited)
    this.inputs.push(states)
    if (this.hasSwitches) states.supersede()
    return states
  }

  /** Uses facts of an input: its process. */
  describe({ pid, command }: Readonly<Record<string, string | number>>): void {
    const number = Number(pid)
    if (pid !== undefined && Number.isInteger(number) && number > 0 && number <= INT32_MAX)
      this.traced.addProcess(number, `${command ?? ''}`)
  }

  thread(event: ThreadEvent): void {
    this.traced.learn(event)
    const { what, tid, atNs } = event
    if (what !== 'exit') return
    if (this.hasBegun) this.reach(atNs)
    if (this.traced.has(tid)) this.change({ tid, atNs, state: 'ended' })
  }

  /** The thread that has a CPU; -1: not known. */
  on(cpu: number): number {
    return this.running.get(cpu)?.tid ?? -1
  }

  /** Changes the states of the switched threads, if they are traced. Some texts do not record the CPU. */
  switched({ cpu, atNs, prevTid, prevState, nextTid, nextComm }: SwitchEvent): void {
    const { waited, traced } = this
    this.beginSwitches()
    this.reach(atNs)
    if (cpu >= 0) this.runs(cpu, atNs, nextTid, nextComm)
    if (waited.isFull) this.changes.makeRoom()
    if (waited.has(cpu)) waited.take(cpu, atNs, nextTid, nextComm)
    if (traced.has(prevTid)) {
      const change = { tid: prevTid, atNs, cpu, state: stateAfter(prevState) }
      if (change.state === 'runnable') {
        const by = this.label(nextTid, nextComm)
        const takers = cpu >= 0 ? waited.wait(cpu, atNs, prevTid, { tid: nextTid, comm: nextComm }) : undefined
        this.change({ ...change, by, takers })
      } else this.change({ ...change, wait: change.state === 'blocked' ? this.letter(prevState) : 0 })
    }
    if (!traced.has(nextTid)) return
    this.woken.delete(nextTid)
    waited.runs(cpu, atNs, nextTid)
    this.change({ tid: nextTid, atNs, cpu, state: 'running' })
  }

  waking({ tid, wakerTid, atNs, cpu, targetCpu }: WakingEvent): void {
    this.beginSwitches()
    if (!this.traced.has(tid)) return
    this.reach(atNs)
    this.woken.set(tid, targetCpu)
    this.change({ tid, atNs, state: 'woken', cpu: targetCpu, by: this.label(wakerTid, this.commOn(cpu, wakerTid)) })
  }

  /** The name of the thread that has a CPU, if it is this one; else 0. */
  commOn(cpu: number, tid: number): number {
    const on = this.running.get(cpu)
    return on?.tid === tid ? on.comm : 0
  }

  /** Comes last. Returns the number of state changes that came too late. */
  finish(): number {
    const late = this.changes.finish()
    if (this.hasSwitches) for (const states of this.inputs) states.finish(this.lastNs)
    return late
  }

  private beginSwitches(): void {
    if (this.hasBegun) return
    this.hasBegun = this.hasSwitches = true
    for (const states of this.inputs) states.supersede()
  }

  private runs(cpu: number, atNs: number, tid: number, comm: number): void {
    const on = this.running.get(cpu)
    if (!on) {
      this.running.set(cpu, { tid, comm, sinceNs: atNs })
      return
    }
    if (this.waited.has(cpu) || this.isWokenOn(cpu))
      this.heldNs.set(on.tid, atNs - on.sinceNs + (this.heldNs.get(on.tid) ?? 0))
    on.tid = tid
    on.comm = comm
    on.sinceNs = atNs
  }

  private isWokenOn(cpu: number): boolean {
    for (const on of this.woken.values()) if (on === cpu) return true
    return false
  }

  private reach(atNs: number): void {
    if (atNs > this.lastNs) this.lastNs = atNs
  }

  private change(change: Partial<Change> & Pick<Change, 'tid' | 'atNs' | 'state'>): void {
    this.changes.add({ cpu: -1, by: 0, wait: 0, takers: undefined, ...change })
  }

  private letter(bits: number): number {
    const found = Object.entries(TaskState).find(([, bit]) => (bits & bit) !== 0)
    return this.names.id(found ? found[0] : '?')
  }

  /** `hog 42`: name and id of a thread in one text. */
  private label(tid: number, comm: number): number {
    if (tid < 0) return 0
    const known = this.labels.get(tid)
    if (known?.comm === comm) return known.label
    const label = this.names.id(threadText({ tid, comm }, this.names))
    this.labels.set(tid, { comm, label })
    return label
  }
}
