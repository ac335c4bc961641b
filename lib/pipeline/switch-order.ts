import type { IssueEvent, SwitchEvent, TraceEvent } from '../model/events.ts'

interface Cpu {
  lastNs: number
  tid: number
}

/**
 * Sees to it that the switches of each CPU can be followed: one that comes after a later one is left out, one that takes the CPU
 * from a thread that did not have it tells that others are missing. Both are issues.
 */
export class SwitchOrder {
  private readonly cpus = new Map<number, Cpu>()

  /** What is wrong with a switch, if anything. */
  follow({ cpu: number, atNs, prevTid, nextTid }: SwitchEvent): IssueEvent | undefined {
    if (number < 0) return undefined // of a CPU that is not told
    const cpu = this.cpus.get(number)
    if (!cpu) {
      this.cpus.set(number, { lastNs: atNs, tid: nextTid })
      return undefined
    }
    if (atNs < cpu.lastNs) {
      return issue(LATE, `CPU ${number}: expected a time from ${cpu.lastNs} ns on, found ${atNs}; left out`, atNs)
    }
    const before = cpu.tid
    cpu.lastNs = atNs
    cpu.tid = nextTid
    if (before === prevTid || prevTid < 0) return undefined
    const detail = `CPU ${number}: expected a switch from thread ${before}, found one from ${prevTid}: others are missing`
    return issue('lost switches', detail, atNs)
  }
}

const LATE = 'late switch'

/** Adds a switch that {@link SwitchOrder.follow} has seen, and its issue: a late one is left out. */
export function placeSwitch(event: SwitchEvent, issue: IssueEvent | undefined, into: TraceEvent[]): void {
  if (issue) into.push(issue)
  if (issue?.title !== LATE) into.push(event)
}

function issue(title: string, detail: string, atNs: number): IssueEvent {
  return { kind: 'issue', title, detail, at: { byte: 0 }, atNs }
}
