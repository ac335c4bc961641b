import { firstIndex } from '../../bytes/search.ts'
import { HEADER_BYTES } from '../../log/ggtrace-layout.ts'
import type { StateEvent, ThreadState } from '../../model/events.ts'
import { type IssueEvent, issueOf } from '../../model/issues.ts'
import { duration, plural } from '../../model/units.ts'
import type { Block } from './blocks.ts'
import { type LogClock, readU64 } from './fields.ts'

/** Times of which a log has all records, both included. */
export interface KeptRange {
  readonly fromNs: number
  readonly untilNs: number
}

interface Kept extends KeptRange {
  /** Calls that were left out since the log began, and their time. */
  readonly calls: number
  readonly callsNs: number
}

/** Fields of the ring's block after the time from which it is complete, and those of each range. */
const HEAD_BYTES = 40
const RANGE_BYTES = 32
const HEAD = HEADER_BYTES + 8

/** What a log contains that keeps slow calls only: their times, with what preceded them, and how much was left out. */
export class KeptTimes {
  private constructor(
    private readonly ranges: readonly Kept[],
    private readonly byte: number,
    /** Facts of the log. */
    readonly facts: Readonly<Record<string, string>>,
    private readonly total: { readonly calls: number; readonly callsNs: number },
  ) {}

  /** Undefined where the ring keeps its last part. */
  static in({ view, at, end, byte }: Block, clock: LogClock): KeptTimes | undefined {
    const head = at + HEAD
    if (end < head + HEAD_BYTES) return undefined
    const [limitNs, calls, callsNs, noRoom, count] = [0, 8, 16, 24, 32].map((offset) => readU64(view, head + offset))
    const ranges: Kept[] = []
    for (let i = 0, place = head + HEAD_BYTES; i < count! && place + RANGE_BYTES <= end; i++, place += RANGE_BYTES) {
      const [fromNs, untilNs] = [clock.read(view, place), clock.read(view, place + 8)]
      const isInOrder = fromNs !== undefined && fromNs > (ranges.at(-1)?.untilNs ?? -Infinity)
      if (!isInOrder || untilNs === undefined || untilNs < fromNs) break
      ranges.push({ fromNs, untilNs, calls: readU64(view, place + 16), callsNs: readU64(view, place + 24) })
    }
    const facts = {
      'recorded.slow': duration(limitNs!),
      'left_out.calls': `${calls}`,
      'left_out.ns': `${callsNs}`,
      ...(noRoom! > 0 && { 'left_out.slow_calls': `${noRoom}` }),
    }
    return new KeptTimes(ranges, byte, facts, { calls: calls!, callsNs: callsNs! })
  }

  /** The range with this time; undefined: its records are left out. */
  at(atNs: number): KeptRange | undefined {
    const { ranges } = this
    const range = ranges[firstIndex(0, ranges.length, (i) => ranges[i]!.untilNs >= atNs)]
    return range && range.fromNs <= atNs ? range : undefined
  }

  /** The start of the first range; undefined: there is none. */
  get fromNs(): number | undefined {
    return this.ranges[0]?.fromNs
  }

  get last(): KeptRange | undefined {
    return this.ranges.at(-1)
  }

  /** One issue wherever calls were left out, where they were. */
  issues(): IssueEvent[] {
    const { ranges, total, byte } = this
    const ends = [...ranges, { ...total, fromNs: Infinity }]
    return ends.flatMap((range, i) => {
      const before = ends[i - 1] ?? { calls: 0, callsNs: 0 }
      const [calls, ns] = [range.calls - before.calls, range.callsNs - before.callsNs]
      if (!(calls > 0)) return []
      const detail = `${plural(calls, 'call')}, ${duration(ns)} in all`
      return [issueOf('fast-calls', detail, { byte }, i > 0 ? ranges[i - 1]!.untilNs : (this.fromNs ?? 0))]
    })
  }
}

/** The times whose records are read: all, or those from one on, or those that the log keeps. */
export class ReadTimes {
  fromNs = -Infinity
  untilNs = Infinity
  private kept: KeptTimes | undefined
  /** By thread with a state: of a log that keeps parts, the range of the latest. */
  private readonly states = new Map<number, KeptRange | undefined>()
  /** The latest change of a state. */
  private changedNs = -Infinity

  keep(kept: KeptTimes): void {
    this.kept = kept
    this.untilNs = -Infinity
  }

  /** Are records of this time left out? */
  areLeftOut(atNs: number): boolean {
    if (atNs >= this.fromNs && atNs <= this.untilNs) return false
    const range = this.kept?.at(atNs)
    if (range) {
      this.fromNs = range.fromNs
      this.untilNs = range.untilNs
    }
    return range === undefined
  }

  /** A thread has a state at this time: what it did since an earlier range is not known, and its state ended with that one. */
  enter(tid: number, state: ThreadState, atNs: number): StateEvent[] {
    this.changedNs = Math.max(this.changedNs, atNs)
    const before = this.states.get(tid)
    const range = this.kept?.at(atNs)
    if (state === 'ended') this.states.delete(tid)
    else this.states.set(tid, range)
    return before && range && before.untilNs < range.fromNs ? [unknownState(tid, before.untilNs)] : []
  }

  /** Where changes of states were lost until then, what each thread does from there on is not known, until its next change. */
  lose({ code, atNs }: IssueEvent): StateEvent[] {
    if (code !== 'lost-states' || atNs === undefined) return []
    const lost = [...this.states.keys()].map((tid) => unknownState(tid, atNs))
    this.states.clear()
    return lost
  }

  /**
   * The same of threads that have no state in the last range. Of a log without end, the states after the last change were not written: threads that
   * compute on all CPUs ahead of others (SCHED_FIFO) keep the recorder from reading them for as long as they do.
   */
  finish(hasEnd: boolean): StateEvent[] {
    const last = this.kept?.last
    return [...this.states].flatMap(([tid, range]) => {
      if (range && last && range !== last) return [unknownState(tid, range.untilNs)]
      return hasEnd ? [] : [unknownState(tid, this.changedNs)]
    })
  }
}

const unknownState = (tid: number, atNs: number): StateEvent => ({ kind: 'state', tid, cpu: -1, state: 'off', atNs })
