/** Runs that are held until the waits are drawn that they are of. 24 MB. */
const HELD_MAX = 500_000

/** A thread has a CPU, until the next run begins. */
interface Run {
  readonly atNs: number
  /** -1: not known. */
  readonly tid: number
  /** What the thread is called then. */
  readonly label: number
  next: Run | undefined
}

/** For how long a thread had a CPU. */
interface Share {
  readonly label: number
  readonly ns: number
}

/** For how long each thread had a CPU, longest first, and for how long it is not known who had it. */
export interface Shares {
  readonly known: readonly Share[]
  readonly unknownNs: number
}

/** Who had a CPU, one after the other, from when a thread was preempted there. */
export class Takers {
  constructor(
    private readonly first: Run,
    private readonly sinceNs: number,
  ) {}

  /** Who had it until then. */
  sharesUntil(endNs: number): Shares {
    const shares = new Map<number, Share>()
    for (let run: Run | undefined = this.first; run && run.atNs < endNs; run = run.next) {
      const ns = Math.min(run.next?.atNs ?? endNs, endNs) - Math.max(run.atNs, this.sinceNs)
      if (ns > 0) shares.set(run.tid, { label: run.label, ns: ns + (shares.get(run.tid)?.ns ?? 0) })
    }
    const unknownNs = shares.get(-1)?.ns ?? 0
    shares.delete(-1)
    return { known: [...shares.values()].sort((a, b) => b.ns - a.ns), unknownNs }
  }
}

/** A CPU, and the threads that may wait for it. */
interface Cpu {
  readonly waiting: Set<number>
  /** The first run that is counted as held. */
  first: Run
  last: Run
}

/** Follows who has the CPUs that threads wait for. Switches of each CPU come in order of time, those of different ones need not. */
export class WaitedCpus {
  private readonly cpus: (Cpu | undefined)[] = []
  /** By thread: the CPU that it waits for, since when. */
  private readonly waits = new Map<number, { readonly cpu: number; readonly sinceNs: number }>()
  private held = 0

  /** `heldMax` runs are held; who has a CPU while there are more is not known. */
  constructor(private readonly heldMax = HELD_MAX) {}

  /** Are as many runs held as may be? */
  get isFull(): boolean {
    return this.held >= this.heldMax
  }

  /** May any thread wait for the CPU? */
  has(cpu: number): boolean {
    return (this.cpus[cpu]?.waiting.size ?? 0) > 0
  }

  /** A thread takes the CPU. */
  take(cpu: number, atNs: number, tid: number, label: number): void {
    const known = this.cpus[cpu]
    if (known) this.append(known, atNs, tid, label)
  }

  /** A thread waits for the CPU, which another one takes from it. */
  wait(cpu: number, atNs: number, tid: number, by: number, label: number): Takers {
    let known = this.cpus[cpu]
    if (!known) {
      const run = { atNs, tid: by, label, next: undefined }
      known = { waiting: new Set(), first: run, last: run }
      this.cpus[cpu] = known
    } else if (!this.has(cpu)) this.append(known, atNs, by, label)
    known.waiting.add(tid)
    this.waits.set(tid, { cpu, sinceNs: atNs })
    return new Takers(known.last, atNs)
  }

  /** A thread runs there: it waits no more. An input that tells of one CPU after the other may say later that it ran elsewhere. */
  runs(cpu: number, atNs: number, tid: number): void {
    this.cpus[cpu]?.waiting.delete(tid)
    const wait = this.waits.get(tid)
    if (!wait || atNs < wait.sinceNs) return
    this.cpus[wait.cpu]?.waiting.delete(tid)
    this.waits.delete(tid)
  }

  /** All waits are drawn that end before then. */
  release(untilNs: number): void {
    for (const cpu of this.cpus) {
      for (; cpu?.first.next && cpu.first.next.atNs <= untilNs; cpu.first = cpu.first.next) this.held--
    }
  }

  private append(cpu: Cpu, atNs: number, tid: number, label: number): void {
    const { isFull } = this
    if (isFull && cpu.last.tid < 0) return
    const run = { atNs, tid: isFull ? -1 : tid, label, next: undefined }
    cpu.last.next = run
    cpu.last = run
    this.held++
  }
}
