import { firstIndex } from '../bytes/search.ts'
import { DefaultMap } from '../model/default-map.ts'
import type { InputEvent, IssueEvent, StateEvent, SwitchEvent, TraceEvent } from '../model/events.ts'
import { issueOf } from '../model/issues.ts'
import type { Names } from '../model/names.ts'
import { plural } from '../model/units.ts'
import { eventsAgain } from './budget/sizes.ts'
import { inputNamed } from './clocks/given.ts'
import { type Numbering, Placing } from './clocks/placing.ts'
import type { BegunInput, Log, Reading } from './inputs.ts'
import type { RunOptions } from './run-inputs.ts'

/** The kernel's tracepoint of a switch comes so much before the state that a log records of it, at most. 20 µs. */
const LAG_NS_MAX = 20_000
/** A thread is identified by so many times as many switches as another thread has by chance, plus one. */
const AGREEING = 2
/** Times of one thread that are kept, evenly over its life; threads. */
const [KEPT_MAX, THREADS_MAX] = [64, 4096]
/** Added to the number of another thread of the machine that a thread of the log has, too. Linux has no such numbers. */
const SHIFT = 10_000_000

const NUMBERS = ['tid', 'tgid', 'parentTid', 'prevTid', 'nextTid', 'wakerTid'] as const

/** A thread of a log begins to run, on a CPU. */
interface Begin {
  readonly tid: number
  readonly cpu: number
  readonly atNs: number
}

/** What is kept of a thread: every so many-th of its begins. */
interface Sample {
  seen: number
  every: number
  kept: Begin[]
}

/** Is it a recording with the machine's numbers of threads? */
const isOfMachine = ({ isOfScheduler, hasSwitches }: BegunInput) => isOfScheduler || hasSwitches

/** The PID namespace of a log; empty: that of the machine, or not known. */
const namespaceOf = ({ attributes }: InputEvent) => `${attributes['pid_namespace'] ?? ''}`

/**
 * In a PID namespace, as containers have, threads have other numbers than on the machine. A log of a program there contains those of the
 * namespace, a recording of the scheduler those of the machine. Both record when a thread gets a CPU: threads are matched by these times, before
 * the inputs are read, and events of the recording get the log's numbers.
 */
export class ThreadNumbers implements Numbering {
  /** Numbers of threads in the log, and of its process. */
  private readonly ofLog = new Set<number>()
  private readonly samples = new Map<number, Sample>()
  /** By number on the machine: numbers of the log that have the same switches, and how many. */
  private readonly agreeing = new DefaultMap<number, Map<number, number>>(() => new Map())
  /** By number on the machine: that of the log. */
  private readonly matched = new Map<number, number>()
  private readonly shifted = new Set<number>()
  /** Does the recording have the namespace's numbers, too? perf in the same container writes them. */
  private isSame = false

  private constructor(private readonly namespace: string) {}

  /**
   * Reads logs and recordings once, if a log is of a namespace; else undefined. Threads of inputs whose times cannot be placed before all are read, and of those
   * that cannot be read twice, are not matched.
   */
  static async read(
    logs: readonly Log[],
    names: Names,
    options: RunOptions & Reading,
  ): Promise<ThreadNumbers | undefined> {
    const timesOf = timesIn(logs, options)
    const own = logs.filter(({ first }) => namespaceOf(first) !== '')
    const recordings = logs.filter(isOfMachine)
    if (own.length === 0 || recordings.length === 0) return undefined
    const numbers = new ThreadNumbers(namespaceOf(own[0]!.first))
    for (const log of own) {
      const timeOf = await timesOf(log)
      numbers.ofLog.add(Number(log.first.attributes['pid']))
      if (!timeOf) continue
      for await (const batch of (await eventsAgain(log.input.given, names, options)) ?? []) numbers.note(batch, timeOf)
    }
    const begins = numbers.begins()
    for (const log of recordings) {
      const timeOf = await timesOf(log)
      if (!timeOf) continue
      const last = new Map<number, Begin>()
      for await (const batch of (await eventsAgain(log.input.given, names, options)) ?? [])
        for (const event of batch) if (event.kind === 'switch') numbers.switched(event, timeOf, last, begins)
    }
    numbers.decide()
    return numbers
  }

  /** Events of an input with the numbers of the trace. */
  translated(input: BegunInput, batch: TraceEvent[]): TraceEvent[] {
    return this.isSame || !isOfMachine(input) ? batch : batch.map((event) => this.numbered(event))
  }

  /** What was done to an input: `atNs` is its time. */
  issues(input: BegunInput, atNs: number): IssueEvent[] {
    const { matched, ofLog, shifted, namespace } = this
    if (this.isSame || !isOfMachine(input)) return []
    const found = `${namespace}: ${matched.size} of ${plural(ofLog.size, 'thread')} of the log found`
    const others =
      shifted.size === 0 ? '' : `; ${plural(shifted.size, 'other thread')} with such numbers: ${SHIFT} is added`
    return [issueOf('pid-namespace', `${found}${others}`, { byte: 0 }, atNs)]
  }

  private note(batch: readonly TraceEvent[], timeOf: (ns: number) => number): void {
    for (const event of batch) {
      if (!('tid' in event) || event.tid === undefined || event.tid <= 0) continue
      if (this.ofLog.size < THREADS_MAX) this.ofLog.add(event.tid)
      if (event.kind === 'state' && event.state === 'running' && event.cpu >= 0) this.runs(event, timeOf(event.atNs))
    }
  }

  private runs({ tid, cpu }: StateEvent, atNs: number): void {
    const sample = this.samples.get(tid) ?? { seen: 0, every: 1, kept: [] }
    if (sample.seen === 0 && this.samples.size < THREADS_MAX) this.samples.set(tid, sample)
    if (sample.seen++ % sample.every === 0) sample.kept.push({ tid, cpu, atNs })
    if (sample.kept.length <= KEPT_MAX) return
    sample.kept = sample.kept.filter((_, i) => i % 2 === 0)
    sample.every *= 2
  }

  /** What is kept of all threads, by CPU, in order of time. */
  private begins(): ReadonlyMap<number, readonly Begin[]> {
    const byCpu = new DefaultMap<number, Begin[]>(() => [])
    for (const { kept } of this.samples.values()) for (const begin of kept) byCpu.of(begin.cpu).push(begin)
    for (const list of byCpu.values()) list.sort((a, b) => a.atNs - b.atNs)
    return byCpu
  }

  /** `last`: by CPU, the thread that got it last. If a thread of the log begins to run there until now, that is the same one. */
  private switched(
    { cpu, atNs: ns, nextTid: tid }: SwitchEvent,
    timeOf: (ns: number) => number,
    last: Map<number, Begin>,
    begins: ReadonlyMap<number, readonly Begin[]>,
  ): void {
    const atNs = timeOf(ns)
    const before = last.get(cpu)
    last.set(cpu, { tid, cpu, atNs })
    if (!before || before.tid <= 0) return
    const list = begins.get(cpu) ?? []
    const begin = list[firstIndex(0, list.length, (i) => list[i]!.atNs >= before.atNs)]
    if (!begin || begin.atNs >= Math.min(atNs, before.atNs + LAG_NS_MAX)) return
    const counts = this.agreeing.of(before.tid)
    counts.set(begin.tid, (counts.get(begin.tid) ?? 0) + 1)
  }

  private decide(): void {
    for (const [tid, counts] of this.agreeing) {
      const [[own, most], ...others] = [...counts].sort((a, b) => b[1] - a[1]) as [
        [number, number],
        ...[number, number][],
      ]
      const rest = others.reduce((sum, [, count]) => sum + count, 0)
      if (most >= AGREEING * (1 + rest)) this.matched.set(tid, own)
    }
    this.isSame = this.matched.size > 0 && [...this.matched].every(([tid, own]) => tid === own)
  }

  private numbered(event: TraceEvent): TraceEvent {
    const own = event as unknown as Record<string, number>
    const changed: Record<string, number> = {}
    for (const key of NUMBERS) if (own[key]! > 0) changed[key] = this.number(own[key]!)
    return { ...event, ...changed } as TraceEvent
  }

  /** The number of a thread of the machine in the trace. */
  private number(tid: number): number {
    const own = this.matched.get(tid)
    if (own !== undefined) return own
    if (!this.ofLog.has(tid)) return tid
    this.shifted.add(tid)
    return tid + SHIFT
  }
}

/** How times of logs become those of the trace, before they are read; undefined where that is not known then: an error is thrown when they are placed. */
function timesIn(logs: readonly Log[], { clocks = {} }: RunOptions) {
  const names = logs.map(({ name }) => name)
  const own = Object.entries(clocks).filter(([key]) => inputNamed(key, names) !== undefined)
  let placing: Placing | undefined
  return async (log: Log) => {
    placing ??= new Placing(Object.fromEntries(own), logs)
    const placed = await placing.placeAhead(log).catch(() => undefined)
    return placed && ((ns: number) => placed.timeOf(ns))
  }
}
