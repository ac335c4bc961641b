/**
 * What two inputs both tell happens within this of the same time: texts round to the microsecond, estimated clocks are some
 * 50 µs off. 1 ms.
 */
const SLACK_NS = 1e6

interface Owner {
  readonly source: number
  /** The CPU belongs to it from then on. */
  readonly fromNs: number
}

/** What of an input is not drawn, as another tells of the same. */
export interface LeftOut {
  readonly switches: number
  readonly wakings: number
  readonly cpus: readonly number[]
  /** Of the first of them. */
  readonly atNs: number
}

/**
 * Which input each CPU is drawn from, where several tell of the scheduler, one after the other, the best one first: a CPU
 * belongs to the first that tells of it, until that one's end; what comes after is the next one's.
 */
export class SwitchSources {
  /** By CPU; -1 is that of texts which do not tell it. */
  private readonly owners = new Map<number, Owner>()
  /** By source: the time of its last event. */
  private readonly ends: number[] = []
  private source = -1
  private switches = 0
  private wakings = 0
  private atNs = 0
  private readonly cpus = new Set<number>()

  /** The next input begins. */
  begin(): void {
    this.source++
    this.ends.push(-Infinity)
    this.switches = 0
    this.wakings = 0
    this.cpus.clear()
  }

  /** Is an event of the input to be drawn? */
  takes(kind: 'switch' | 'waking', cpu: number, atNs: number): boolean {
    const { source, ends } = this
    if (atNs > ends[source]!) ends[source] = atNs
    let owner = this.owners.get(cpu)
    if (owner?.source !== source) {
      const fromNs = owner ? ends[owner.source]! + SLACK_NS : cpu < 0 ? Math.max(...ends.slice(0, source)) : -Infinity
      if (atNs < fromNs) return this.leaveOut(kind, cpu, atNs)
      owner = { source, fromNs }
      this.owners.set(cpu, owner)
    }
    return atNs >= owner.fromNs || this.leaveOut(kind, cpu, atNs)
  }

  /** What of this input was not taken; undefined where all was. */
  get leftOut(): LeftOut | undefined {
    const { switches, wakings, atNs } = this
    if (switches + wakings === 0) return undefined
    return { switches, wakings, atNs, cpus: [...this.cpus].sort((a, b) => a - b) }
  }

  private leaveOut(kind: 'switch' | 'waking', cpu: number, atNs: number): false {
    if (this.switches + this.wakings === 0) this.atNs = atNs
    if (kind === 'switch') this.switches++
    else this.wakings++
    this.cpus.add(cpu)
    return false
  }
}
