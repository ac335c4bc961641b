import type { IssueEvent, SwitchEvent, TraceEvent, WakingEvent } from '../model/events.ts'
import { issueOf } from '../model/issues.ts'

/*
 * The order of the scheduler's events, from file to track:
 *
 *   reader      file order; records that a format itself stores out of order are put in order by the format's own rule, as
 *               they must be before they are decoded (perf.data: rounds, read/kernel/perf-data/rounds.ts)
 *   SwitchOrder each CPU of an input: time never goes back, who leaves is who came (below)
 *   CpuOwners   each CPU of the trace: one input at a time (below)
 *   timeline    each thread: its states from all CPUs, in order of time (timeline/kernel/thread-changes.ts)
 *   writer      each CPU: one bundle after the other; trace_processor merges the CPUs by time
 *
 * Nothing sorts across CPUs before the timeline: a trace.dat contains one CPU after the other, hours apart.
 */

interface LastSwitch {
  lastNs: number
  tid: number
}

/**
 * Checks the switches of each CPU of one input: one that comes after a later one is left out; one that takes the CPU from a thread
 * that did not have it shows that others are missing. Both are issues.
 */
export class SwitchOrder {
  private readonly cpus = new Map<number, LastSwitch>()

  /** What is wrong with a switch, if anything. */
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

/** Events of a batch have no position. */
const NOWHERE = { byte: 0 }

/** Adds a switch that {@link SwitchOrder.follow} has seen, and its issue: a late one is left out. */
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
 * Which input each CPU is drawn from, where several record the scheduler. They come one after the other, the best one first: a
 * CPU belongs to the first input that has switches of it, until the end of that input; later events are the next input's.
 */
export class CpuOwners {
  /** By CPU; -1 is the one of texts that do not name it. */
  private readonly owners = new Map<number, Owner>()
  /** By input: the time of its last event. */
  private readonly ends: number[] = []
  private input = -1
  private switches = 0
  private wakings = 0
  /** Of the first event that was left out. */
  private atNs = 0
  private readonly cpus = new Set<number>()

  /** The next input begins. */
  begin(): void {
    this.input++
    this.ends.push(-Infinity)
    this.switches = 0
    this.wakings = 0
    this.cpus.clear()
  }

  /** The events of a batch that are drawn: the batch itself where all are. Times are the trace's. */
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

  /** An issue about what {@link take} left out of the input, if anything. */
  leftOut(): TraceEvent[] {
    const { switches, wakings, atNs } = this
    if (switches + wakings === 0) return []
    const cpus = [...this.cpus].sort((a, b) => a - b).map((cpu) => (cpu < 0 ? 'unknown' : cpu))
    const detail = `${switches} switches and ${wakings} wakings (CPU ${cpus.join(', ')}): another input records the same`
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
