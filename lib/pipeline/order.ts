import type { IssueEvent, SwitchEvent, TraceEvent, WakingEvent } from '../model/events.ts'
import { issueOf } from '../model/issues.ts'
import { plural } from '../model/units.ts'

/*
 * The order of the scheduler's events, from file to track:
 *
 *   reader      file order; a format that stores records out of order is sorted by its own rule, as its records of threads
 *               and names depend on it (input/reorder.ts: perf.data by rounds, texts within a window)
 *   SwitchOrder each CPU of an input: time never decreases, the previous thread is the next thread of the switch before (below)
 *   CpuOwners   each CPU of the trace: one input at a time (below)
 *   timeline    each thread: its states from all CPUs, in order of time (threads/thread-changes.ts)
 *   writer      each CPU: one bundle after the other; trace_processor merges the CPUs by time
 *
 * Nothing sorts across CPUs before the timeline: a trace.dat contains one CPU after the other, hours apart.
 */

interface LastSwitch {
  lastNs: number
  tid: number
}

/** Events of a batch have no position. */
const NOWHERE = { byte: 0 }

/**
 * Checks the switches of each CPU of one input. A switch after one with a later time is left out; a switch from a thread that did
 * not have the CPU shows that switches are missing. Both are issues.
 */
export class SwitchOrder {
  private readonly cpus = new Map<number, LastSwitch>()

  /** The issue of a switch, if any. */
  follow({ cpu: number, atNs, prevTid, nextTid }: SwitchEvent): IssueEvent | undefined {
    if (number < 0) return undefined // its CPU is not recorded
    const cpu = this.cpus.get(number)
    if (!cpu) {
      this.cpus.set(number, { lastNs: atNs, tid: nextTid })
      return undefined
    }
    if (atNs < cpu.lastNs) {
      const detail = `CPU ${number}: expected a time from ${cpu.lastNs} ns on, found ${atNs}; left out`
      return issueOf('late-switch', detail, NOWHERE, atNs)
    }
    const before = cpu.tid
    cpu.lastNs = atNs
    cpu.tid = nextTid
    if (before === prevTid || prevTid < 0) return undefined
    const detail = `CPU ${number}: expected a switch from thread ${before}, found one from ${prevTid}: others are missing`
    return issueOf('lost-switches', detail, NOWHERE, atNs)
  }
}

/** Adds a switch and its issue from {@link SwitchOrder.follow}; a late switch is left out. */
export function placeSwitch(event: SwitchEvent, issue: IssueEvent | undefined, into: TraceEvent[]): void {
  if (issue) into.push(issue)
  if (issue?.code !== 'late-switch') into.push(event)
}

/**
 * Two inputs record the same event at times that differ by less than this: texts round to the microsecond, estimated clocks are
 * some 50 µs off. 1 ms.
 */
const SLACK_NS = 1e6

interface Owner {
  readonly input: number
  /** The CPU belongs to it from then on. */
  readonly fromNs: number
}

/**
 * Chooses the input from which each CPU is drawn if several record the scheduler. They come one after the other, the best one
 * first. A CPU belongs to the first input that has switches of it, until that input ends; then to the next one.
 */
export class CpuOwners {
  /** By CPU; -1 for texts without CPU numbers. */
  private readonly owners = new Map<number, Owner>()
  /** By input: time of its last event. */
  private readonly ends: number[] = []

  /** The next input begins. */
  begin(): OwnedCpus {
    return new OwnedCpus(this.owners, this.ends, this.ends.push(-Infinity) - 1)
  }
}

/** The CPUs of one input. */
export class OwnedCpus {
  private switches = 0
  private wakings = 0
  /** Of the first event that was left out. */
  private atNs = 0
  private readonly cpus = new Set<number>()

  /** `owners` and `ends` are those of all inputs. */
  constructor(
    private readonly owners: Map<number, Owner>,
    private readonly ends: number[],
    private readonly input: number,
  ) {}

  /** The events of a batch that are drawn: the batch itself if all are. Their times are the trace's. */
  take(batch: TraceEvent[]): TraceEvent[] {
    let kept: TraceEvent[] | undefined
    for (let i = 0; i < batch.length; i++) {
      const event = batch[i]!
      const isKept = (event.kind !== 'switch' && event.kind !== 'waking') || this.owns(event)
      if (isKept) kept?.push(event)
      else kept ??= batch.slice(0, i)
    }
    return kept ?? batch
  }

  /** The issue about the events that {@link take} left out of the input, if any. */
  leftOut(): TraceEvent[] {
    const { switches, wakings, atNs } = this
    if (switches + wakings === 0) return []
    const cpus = [...this.cpus].sort((a, b) => a - b).map((cpu) => (cpu < 0 ? 'unknown' : cpu))
    const detail = `${plural(switches, 'switch')} and ${plural(wakings, 'waking')} (CPU ${cpus.join(', ')}): another input records the same`
    return [issueOf('recorded-twice', detail, NOWHERE, atNs)]
  }

  private owns(event: SwitchEvent | WakingEvent): boolean {
    const { cpu, atNs } = event
    const { input, ends } = this
    if (atNs > ends[input]!) ends[input] = atNs
    let owner = this.owners.get(cpu)
    if (owner?.input !== input) {
      const fromNs = owner ? ends[owner.input]! + SLACK_NS : cpu < 0 ? Math.max(...ends.slice(0, input)) : -Infinity
      if (atNs < fromNs) return this.leaveOut(event)
      owner = { input, fromNs }
      this.owners.set(cpu, owner)
    }
    return atNs >= owner.fromNs || this.leaveOut(event)
  }

  private leaveOut({ kind, cpu, atNs }: SwitchEvent | WakingEvent): false {
    if (this.switches + this.wakings === 0) this.atNs = atNs
    if (kind === 'switch') this.switches++
    else this.wakings++
    this.cpus.add(cpu)
    return false
  }
}
