import type { ThreadOfCpu } from '../model/kernel-events.ts'
import type { CpuShare, CpuShares } from '../model/waits.ts'

/** Turns that are kept until the waits that contain them are drawn. 24 MB. */
const HELD_MAX = 500_000

/** A thread gets a CPU, and has it until the next turn begins. */
interface Turn {
  readonly atNs: number
  /** -1: not known. */
  readonly tid: number
  /** Its name at that time. */
  readonly comm: number
  next: Turn | undefined
}

/** The threads that had a CPU, one after the other, since another thread was preempted on it. */
export class Takers {
  constructor(
    private readonly first: Turn,
    private readonly sinceNs: number,
  ) {}

  /** The shares until then. */
  sharesUntil(endNs: number): CpuShares {
    const shares = new Map<number, CpuShare>()
    for (let turn: Turn | undefined = this.first; turn && turn.atNs < endNs; turn = turn.next) {
      const ns = Math.min(turn.next?.atNs ?? endNs, endNs) - Math.max(turn.atNs, this.sinceNs)
      const { tid, comm } = turn
      if (ns > 0) shares.set(tid, { tid, comm, ns: ns + (shares.get(tid)?.ns ?? 0) })
    }
    const unknownNs = shares.get(-1)?.ns ?? 0
    shares.delete(-1)
    return { known: [...shares.values()].sort((a, b) => b.ns - a.ns), unknownNs }
  }
}

/** A CPU, and the threads that may wait for it. */
interface Cpu {
  readonly waiting: Set<number>
  /** The first turn that counts as kept. */
  first: Turn
  last: Turn
}

/** Keeps the turns of threads on CPUs that others wait for. Switches come in order of time for each CPU, but not across CPUs. */
export class WaitedCpus {
  private readonly cpus: (Cpu | undefined)[] = []
  /** By thread: the CPU that it waits for, and the begin of the wait. */
  private readonly waits = new Map<number, { readonly cpu: number; readonly sinceNs: number }>()
  private held = 0

  /** At most `heldMax` turns are kept; the threads of further turns are not known. */
  constructor(private readonly heldMax = HELD_MAX) {}

  /** Are `heldMax` turns kept? */
  get isFull(): boolean {
    return this.held >= this.heldMax
  }

  /** May any thread wait for the CPU? */
  has(cpu: number): boolean {
    return (this.cpus[cpu]?.waiting.size ?? 0) > 0
  }

  /** A thread takes the CPU. */
  take(cpu: number, atNs: number, tid: number, comm: number): void {
    const known = this.cpus[cpu]
    if (known) this.append(known, atNs, tid, comm)
  }

  /** A thread waits for the CPU, which another one takes from it. */
  wait(cpu: number, atNs: number, tid: number, by: ThreadOfCpu): Takers {
    let known = this.cpus[cpu]
    if (!known) {
      const turn = { atNs, tid: by.tid, comm: by.comm, next: undefined }
      known = { waiting: new Set(), first: turn, last: turn }
      this.cpus[cpu] = known
    } else if (!this.has(cpu)) this.append(known, atNs, by.tid, by.comm)
    known.waiting.add(tid)
    this.waits.set(tid, { cpu, sinceNs: atNs })
    return new Takers(known.last, atNs)
  }

  /** A thread runs on the CPU: it no longer waits. If an input contains one CPU after the other, this may be known late. */
  runs(cpu: number, atNs: number, tid: number): void {
    this.cpus[cpu]?.waiting.delete(tid)
    const wait = this.waits.get(tid)
    if (!wait || atNs < wait.sinceNs) return
    this.cpus[wait.cpu]?.waiting.delete(tid)
    this.waits.delete(tid)
  }

  /** All waits that end before then are drawn: their turns are no longer needed. */
  release(untilNs: number): void {
    for (const cpu of this.cpus) {
      for (; cpu?.first.next && cpu.first.next.atNs <= untilNs; cpu.first = cpu.first.next) this.held--
    }
  }

  private append(cpu: Cpu, atNs: number, tid: number, comm: number): void {
    const { isFull } = this
    if (isFull && cpu.last.tid < 0) return
    const turn = { atNs, tid: isFull ? -1 : tid, comm, next: undefined }
    cpu.last.next = turn
    cpu.last = turn
    this.held++
  }
}
