import type { IssueEvent, SwitchEvent, TraceEvent } from './model/events.ts'

interface Cpu {
  lastNs: number
  tid: number
}

/**
 * Sees to it that the switches of each CPU can be followed: one that comes after a later one is left out, one that takes the CPU
 * from a thread that did not have it tells that others are missing. Both are issues.
 */
export class SwitchOrder {
  private readonly cpus: (Cpu | undefined)[] = []

  /** The batch itself where nothing is wrong with it. */
  check(batch: TraceEvent[]): TraceEvent[] {
    let checked: TraceEvent[] | undefined
    for (let i = 0; i < batch.length; i++) {
      const event = batch[i]!
      const issue = event.kind === 'switch' ? this.follow(event) : undefined
      if (issue) checked ??= batch.slice(0, i)
      if (!checked) continue
      if (issue) checked.push(issue)
      if (issue?.title !== LATE) checked.push(event)
    }
    return checked ?? batch
  }

  private follow({ cpu: number, atNs, prevTid, nextTid }: SwitchEvent): IssueEvent | undefined {
    if (number < 0) return undefined // of a CPU that is not told
    const cpu = this.cpus[number]
    if (!cpu) {
      this.cpus[number] = { lastNs: atNs, tid: nextTid }
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

function issue(title: string, detail: string, atNs: number): IssueEvent {
  return { kind: 'issue', title, detail, at: { byte: 0 }, atNs }
}
