import { firstIndex } from '../../bytes/search.ts'
import { isCpuBackend, isOnHost } from '../../model/backends.ts'
import type { ModelBlock } from '../../model/blocks.ts'
import { DefaultMap } from '../../model/default-map.ts'
import type { CopyEvent, GraphEvent, PartEvent, Phase, TokenEvent } from '../../model/events.ts'
import type { FunctionEvent } from '../../model/request-events.ts'
import type { Resources } from '../../model/resources.ts'
import type { CallSample } from '../common/sampled-calls.ts'
import type { CallParts, OffCpu, Statistic } from '../common/statistic.ts'
import { CallOperators } from '../graph/operators/call-operators.ts'
import { Steps } from '../graph/operators/steps.ts'
import type { PreemptedCalls } from '../threads/preempted-calls.ts'
import type { CallTime, TimePart } from './figures.ts'

/** An interval, in ns. */
interface Span {
  readonly startNs: number
  readonly endNs: number
}

/** The time of a call without intervals in which its thread had no CPU: what is computed in it is measured by this time. */
class RunningTime {
  /** Time of the first so many intervals, by their number. */
  private readonly lostNs: number[] = [0]

  /** `times`: starts and ends of the intervals, in order. */
  constructor(private readonly times: readonly number[]) {
    for (let i = 0; i < times.length; i += 2) this.lostNs.push(this.lostNs.at(-1)! + times[i + 1]! - times[i]!)
  }

  /** Time of all intervals. */
  get allLostNs(): number {
    return this.lostNs.at(-1)!
  }

  at(ns: number): number {
    const { times, lostNs } = this
    if (times.length === 0) return ns
    const first = firstIndex(0, times.length / 2, (i) => times[2 * i]! >= ns)
    // The last interval that begins before it may end after it.
    const after = first === 0 ? 0 : Math.max(times[2 * first - 1]! - ns, 0)
    return ns - lostNs[first]! + after
  }

  of<T extends Span>(span: T): T {
    if (this.times.length === 0) return span
    return { ...span, startNs: this.at(span.startNs), endNs: this.at(span.endNs) }
  }
}

type What = TimePart['what']

/** Sums of the calls of a phase; of a sample, each times the calls that it represents. */
class PhaseTime {
  /** Calls whose parts are known, in the sample or represented by those in it. */
  weight = 0
  /** The same of calls whose parts are not known. */
  weightWithout = 0
  timeNs = 0
  readonly parts = new DefaultMap<What, { ns: number }>(() => ({ ns: 0 }))
  /** Time in graph runs of devices, by backend. */
  readonly graphs = new DefaultMap<number, { ns: number }>(() => ({ ns: 0 }))
}

/** Sums of what the kernel counted in all calls of a phase. */
class PhaseResources {
  calls = 0
  minor_faults = 0
  major_faults = 0
  disk_bytes = 0
  cpu_ns = 0

  add({ minorFaults, majorFaults, bytesRead, processCpuNs }: Resources): void {
    this.calls++
    this.minor_faults += minorFaults
    this.major_faults += majorFaults
    this.disk_bytes += bytesRead
    this.cpu_ns += processCpuNs
  }
}

/** Numbers of calls whose time is not in any phase's. */
export interface CallsLeftOut {
  /** Neither graphs nor operators of them were recorded. */
  without: number
  /** In phases whose parts take more time than they do. */
  overfull: number
}

/** Graphs and parts of a call that wait for its operators. */
interface OpenCall {
  readonly graphs: GraphEvent[]
  readonly parts: PartEvent[]
  /** Waits for backends, the outermost of nested ones, in order. */
  waits: readonly Span[]
  /** Copies between buffers, in order. */
  copies: readonly Span[]
  /** Messages for the program's log, in order. */
  logs: readonly Span[]
}

/** Calls that wait for their operators at most; some may have none. */
const OPEN_MAX = 1 << 14
/** Waits, copies or messages of a thread since its latest call that are held: a call has one or two waits for each split. */
const SPANS_MAX = 1 << 12

/**
 * Splits the time of calls into parts that sum to it, on the thread that makes the call: it is worker 0 of CPU graphs. What it computes and
 * waits for there is in its operators, and what libraries compute in their graph runs. Graph runs of devices are time in which it waits for
 * them, or, of those that compute asynchronously (the thread waits for them separately), time in which it submits work. A wait after a call, for its work, counts too.
 * Time in which the thread could run but had no CPU is a part of its own, wherever it is lost: all others are without it.
 */
export class TimeParts implements Statistic<object, 'token' | 'graph' | 'part' | 'function' | 'copy'> {
  readonly kinds = ['token', 'graph', 'part', 'function', 'copy'] as const
  private readonly phases = new DefaultMap<Phase, PhaseTime>(() => new PhaseTime())
  private readonly resources = new DefaultMap<Phase, PhaseResources>(() => new PhaseResources())
  private readonly calls = new DefaultMap<Phase, { count: number }>(() => ({ count: 0 }))
  private readonly open = new Map<number, OpenCall>()
  /** Calls that ended and wait for their operators. */
  private readonly waiting = new Map<number, TokenEvent>()
  private readonly leftOut: CallsLeftOut = { without: 0, overfull: 0 }
  /** By thread, since its latest call. */
  private readonly waits = new DefaultMap<number, Span[]>(() => [])
  private readonly copies = new DefaultMap<number, Span[]>(() => [])
  private readonly logs = new DefaultMap<number, Span[]>(() => [])
  /** Names of backends that the program waits for. */
  private readonly asynchronous = new Set<number>()

  /** `blockOf`: of a node. `sample`: the calls that are looked at; undefined: all. */
  constructor(
    private readonly blockOf: (tensor: number) => ModelBlock,
    private readonly nameOf: (backend: number) => string,
    private readonly preempted: PreemptedCalls,
    private readonly sample: CallSample | undefined,
  ) {}

  /** Number of calls that a call represents; 0: it is not in the sample. */
  private weightOf(call: number): number {
    return this.sample ? this.sample.weightOf(call) : 1
  }

  /** Of a sample: by what sums of its calls, each times those that it represents, are multiplied to be those of all calls; else 1. Known after the last call. */
  readonly scaleOf = (phase: Phase | 'none'): number => {
    if (!this.sample || phase === 'none') return 1
    this.settle()
    const { weight = 0, weightWithout = 0 } = this.phases.get(phase) ?? {}
    const represented = weight + weightWithout
    return represented > 0 ? this.calls.of(phase).count / represented : 1
  }

  event(event: TokenEvent | GraphEvent | PartEvent | FunctionEvent | CopyEvent): void {
    switch (event.kind) {
      case 'token':
        return this.ended(event)
      case 'graph':
        this.of(event.call)?.graphs.push(event)
        return
      case 'part':
        this.of(event.call)?.parts.push(event)
        return
      case 'function':
        return this.function(event)
      case 'copy':
        return hold(this.copies.of(event.tid), event)
    }
  }

  /** A function around graphs: it may be a wait, or take a message for the log. */
  private function(event: FunctionEvent): void {
    const { what, name, tid, startNs } = event
    if (what === 'write-log') hold(this.logs.of(tid), event)
    if (what !== 'synchronize') return
    if (name !== 0) this.asynchronous.add(name)
    const waits = this.waits.of(tid)
    while (waits.length > 0 && waits.at(-1)!.startNs >= startNs) waits.pop()
    hold(waits, event)
  }

  /** A call ended. Where no operators of it come, its parts are those of its graphs. */
  private ended(event: TokenEvent): void {
    if (event.resources) this.resources.of(event.phase).add(event.resources)
    const [waits, copies, logs] = [this.waits, this.copies, this.logs].map((spans) => takeUntil(spans, event))
    if (event.call < 0) return
    this.calls.of(event.phase).count++
    if (this.weightOf(event.call) === 0) return
    this.waiting.set(event.call, event)
    if (waits!.length + copies!.length + logs!.length > 0) Object.assign(this.of(event.call)!, { waits, copies, logs })
    if (this.waiting.size > OPEN_MAX) this.addWithout(this.waiting.entries().next().value![1])
  }

  private addWithout(event: TokenEvent): void {
    this.waiting.delete(event.call)
    if (this.open.get(event.call)?.graphs.length) this.add(event, NO_OPERATORS, NO_STEPS, undefined)
    else {
      this.leftOut.without++
      this.phases.of(event.phase).weightWithout += this.weightOf(event.call)
    }
  }

  call({ operators, steps, off }: CallParts): void {
    if (operators.event) this.add(operators.event, operators, steps, off)
  }

  private add(event: TokenEvent, operators: CallOperators, steps: Steps, off: OffCpu | undefined): void {
    this.waiting.delete(event.call)
    const running = new RunningTime(this.preempted.takeTimes(event, threadOf(event, operators)))
    const { graphs, parts, waits, copies, logs } = inTime(this.open.get(event.call) ?? newOpen(), running)
    this.open.delete(event.call)
    const sums = this.phases.of(event.phase)
    const weight = this.weightOf(event.call)
    const { startNs, endNs } = running.of(event)
    const called = { startNs, endNs: event.returnNs === undefined ? endNs : running.at(event.returnNs) }
    const left = { ns: operators.isFurther ? 0 : event.endNs - event.startNs }
    if (!operators.isFurther) {
      sums.weight += weight
      sums.timeNs += left.ns * weight
    }
    const take = (what: What, ns: number) => {
      sums.parts.of(what).ns += ns * weight
      left.ns -= ns
    }
    take('preempted', operators.isFurther ? 0 : running.allLostNs)
    let [inGraphsNs, inLibrariesNs] = [0, 0]
    for (const graph of graphs) {
      const ns = within(graph, called)
      const name = this.nameOf(graph.backend)
      if (isOnHost(name)) {
        inGraphsNs += ns
        if (!isCpuBackend(name)) inLibrariesNs += ns
      } else {
        sums.graphs.of(graph.backend).ns += ns * weight
        left.ns -= ns
      }
    }
    // Of a CPU alone, copies are those of inputs and results, and nothing is waited for: too short for parts of their own.
    const isDevice = ({ backend }: GraphEvent) => !isOnHost(this.nameOf(backend))
    if (graphs.length === 0 || graphs.some(isDevice)) {
      for (const wait of waits)
        if (!graphs.some((graph) => meet(graph, wait))) take('waiting for a backend', within(wait, called))
    }
    if (graphs.some(isDevice)) {
      for (const copy of copies) take('copying for backends', copiedNs(copy, called, graphs, waits))
    }
    take('waiting for a backend', operators.isFurther ? 0 : endNs - called.endNs)
    // Of what is in graphs, the part that is not computed.
    const takeAside = (what: What, span: Span, ns: number) => {
      if (graphs.some((graph) => meet(graph, span))) inGraphsNs -= ns
      take(what, ns)
    }
    for (const log of logs) takeAside('log output', log, within(log, called))
    for (const part of parts)
      takeAside(
        part.what === 'reserve' ? 'reserve memory' : part.what,
        part,
        within(part, called) - overlapNs(logs, part),
      )
    const computedNs = this.takeOperators(operators, steps, off, running, take)
    if (operators.isFurther) take('rest', -Math.min(computedNs, sums.parts.of('rest').ns / weight))
    else if (inGraphsNs > 0) {
      const notComputedNs = inGraphsNs - Math.min(computedNs, inGraphsNs)
      const libraryNs = Math.min(inLibrariesNs, notComputedNs)
      take('CPU library', libraryNs)
      take('rest', notComputedNs - libraryNs)
    }
    take(graphs.length > 0 || operators.isFurther ? 'outside graphs' : 'rest', left.ns)
  }

  /** Takes the operators of worker 0 and returns their time. */
  private takeOperators(
    operators: CallOperators,
    steps: Steps,
    off: OffCpu | undefined,
    running: RunningTime,
    take: (what: What, ns: number) => void,
  ): number {
    const { count, worker, tensor, startNs, endNs, waitEndNs } = operators
    let [sum, waitNs, openNs, blockedNs] = [0, 0, 0, 0]
    for (let i = 0; i < count; i++) {
      if (worker[i] !== 0) continue
      const computedNs = running.at(endNs[i]!)
      const [compute, wait] = [computedNs - running.at(startNs[i]!), running.at(waitEndNs[i]!) - computedNs]
      const blocked = off ? off.blockedNs[i]! : 0
      sum += compute + wait
      blockedNs += blocked
      take(this.blockOf(tensor[i]!), compute - blocked)
      if (wait <= 0) continue
      const stopped = off ? Math.min(off.stoppedNs(endNs[i]!, waitEndNs[i]!), wait) : 0
      const openPart = steps.openPartNs(operators, i, off)
      const open = Math.min(running.at(waitEndNs[i]!) - running.at(waitEndNs[i]! - openPart), wait - stopped)
      openNs += open
      blockedNs += stopped
      waitNs += wait - stopped - open
    }
    take('barrier wait', waitNs)
    take('barrier open', openNs)
    take('blocked', blockedNs)
    return sum
  }

  private of(call: number): OpenCall | undefined {
    if (call < 0) return undefined
    let open = this.open.get(call)
    if (!open) {
      open = newOpen()
      this.open.set(call, open)
      if (this.open.size > OPEN_MAX) this.open.delete(this.open.keys().next().value!)
    }
    return open
  }

  /** No more operators come. */
  private settle(): void {
    for (const event of [...this.waiting.values()]) this.addWithout(event)
  }

  finish() {
    this.settle()
    for (const { graphs, parts } of this.phases.values()) {
      for (const [backend, { ns }] of graphs) {
        const isAsynchronous = this.asynchronous.has(backend)
        parts.of(isAsynchronous ? 'submitting to a backend' : 'waiting for a backend').ns += ns
      }
    }
    const isOverfull = ({ parts }: PhaseTime) => [...parts.values()].some(({ ns }) => ns < -1)
    const known = [...this.phases].filter(([, sums]) => sums.weight > 0 && !isOverfull(sums))
    for (const sums of this.phases.values()) if (isOverfull(sums)) this.leftOut.overfull += Math.round(sums.weight)
    const call_time = known.map(([phase, { weight, timeNs, parts }]): CallTime => {
      const scale = this.scaleOf(phase)
      const resources = this.resources.get(phase)
      return {
        phase,
        calls: Math.round(weight * scale),
        time_ns: timeNs * scale,
        parts: [...parts]
          .map(([what, { ns }]) => ({ what, time_ns: ns * scale, share: timeNs > 0 ? ns / timeNs : 0 }))
          .filter(({ time_ns }) => time_ns !== 0)
          .sort((a, b) => b.time_ns - a.time_ns),
        resources: resources ? { ...resources } : null,
      }
    })
    return { call_time, callsLeftOut: this.leftOut }
  }
}

const newOpen = (): OpenCall => ({ graphs: [], parts: [], waits: [], copies: [], logs: [] })
const NO_OPERATORS = new CallOperators()
const NO_STEPS = new Steps()

/** The thread of a call with operators: its own, else that of worker 0. */
function threadOf({ tid }: TokenEvent, operators: CallOperators): number | undefined {
  if (operators.count === 0) return undefined
  return tid >= 0 ? tid : operators.tid[operators.worker.subarray(0, operators.count).indexOf(0)]
}

/** The same in the time in which the call's thread had its CPU. */
function inTime(open: OpenCall, running: RunningTime): OpenCall {
  if (running.allLostNs === 0) return open
  const spansOf = <T extends Span>(spans: readonly T[]) => spans.map((span) => running.of(span))
  return {
    ...{ graphs: spansOf(open.graphs), parts: spansOf(open.parts) },
    ...{ waits: spansOf(open.waits), copies: spansOf(open.copies), logs: spansOf(open.logs) },
  }
}

/** Takes what the call's thread did until its end; what follows is left for the next call. */
function takeUntil(spans: DefaultMap<number, Span[]>, { tid, endNs }: TokenEvent): Span[] {
  const all = spans.get(tid) ?? []
  const later = all.filter(({ startNs }) => startNs >= endNs)
  if (later.length > 0) spans.set(tid, later)
  else spans.delete(tid)
  return later.length > 0 ? all.filter(({ startNs }) => startNs < endNs) : all
}

/** The part of an interval that is in a call, in ns. */
function within(span: Span, call: Span): number {
  return Math.max(Math.min(span.endNs, call.endNs) - Math.max(span.startNs, call.startNs), 0)
}

function hold(spans: Span[], { startNs, endNs }: Span): void {
  if (spans.length < SPANS_MAX) spans.push({ startNs, endNs })
}

const meet = (a: Span, b: Span) => a.startNs < b.endNs && b.startNs < a.endNs

/** Time of spans in another one. */
const overlapNs = (spans: readonly Span[], span: Span) => spans.reduce((sum, other) => sum + within(other, span), 0)

/** Time of a copy in a call, without the waits in it; 0 in a graph run. */
function copiedNs(copy: Span, call: Span, graphs: readonly Span[], waits: readonly Span[]): number {
  if (graphs.some((graph) => meet(graph, copy))) return 0
  return Math.max(within(copy, call) - overlapNs(waits, copy), 0)
}
