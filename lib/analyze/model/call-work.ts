import { firstIndex } from '../../bytes/search.ts'
import { DefaultMap } from '../../model/default-map.ts'
import type { Phase, TokenEvent } from '../../model/events.ts'
import type { Names } from '../../model/names.ts'
import type { NvtxEvent } from '../../model/nvtx-events.ts'
import type { CallParts, Statistic } from '../common/statistic.ts'
import { plus } from '../graph/work.ts'

/** Calls and NVTX ranges that are remembered; of more, ranges are not evaluated. */
const CALLS_MAX = 1 << 17
const RANGES_MAX = 1 << 17

/** Work of some calls: floating-point operations, bytes read and written (-1: not known), time. */
export interface WorkSum {
  /** Phase, or name of the NVTX range. */
  readonly what: string
  readonly phase: Phase | null
  /** Calls; of ranges, the ranges. */
  count: number
  /** Of calls; -1 where those of one are not known. */
  tokens: number
  timeNs: number
  flop: number
  bytes: number
  bytesAreMax: boolean
}

/** Calls of a phase; tokens: -1 where those of one are not known. */
export interface CallTotals {
  readonly phase: Phase
  calls: number
  tokens: number
  timeNs: number
}

/** Sums by phase of all calls and of those with operators, and of those within NVTX ranges. */
export interface CallWorkResult {
  readonly all: readonly CallTotals[]
  readonly phases: readonly WorkSum[]
  readonly ranges: readonly WorkSum[]
}

/** The work of one call, or of a part of it. */
export interface OneCall {
  readonly flop: number
  readonly bytes: number
  readonly bytesAreMax: boolean
}

interface Range {
  readonly name: number
  readonly startNs: number
  endNs: number
}

/** Sums the work of calls by phase, and by the NVTX ranges that contain them. */
export class CallWork implements Statistic<object, 'token' | 'nvtx'> {
  readonly kinds = ['token', 'nvtx'] as const
  private readonly phases = new DefaultMap<Phase, WorkSum>((phase) => newSum(phase, phase))
  /** All calls, also those without operators. */
  private readonly all = new DefaultMap<Phase, CallTotals>((phase) => ({ phase, calls: 0, tokens: 0, timeNs: 0 }))
  private readonly calls: { startNs: number; endNs: number; work: OneCall }[] = []
  private readonly ranges: Range[] = []
  private readonly stacks = new DefaultMap<string, Range[]>(() => [])
  private readonly started = new Map<number, Range>()
  /** By call, its place in `calls`; -1: in none. Calls are released when their events are forgotten. */
  private readonly places = new WeakMap<TokenEvent, number>()

  /** `latest`: work of the operators of the latest call. */
  constructor(
    private readonly names: Names,
    private readonly latest: () => OneCall,
  ) {}

  event(event: TokenEvent | NvtxEvent): void {
    if (event.kind === 'nvtx') return this.nvtx(event)
    const { phase, tokens, startNs, endNs } = event
    const sum = this.all.of(phase)
    sum.calls++
    sum.tokens = plus(sum.tokens, tokens)
    sum.timeNs += endNs - startNs
  }

  call({ operators: { event } }: CallParts): void {
    if (event) this.add(event, { ...this.latest() })
  }

  /** Adds the work of a call, or of a further part of it: that of other devices comes later. */
  add(event: TokenEvent, work: OneCall): void {
    const sum = this.phases.of(event.phase)
    addWork(sum, work)
    const place = this.places.get(event)
    if (place !== undefined) {
      const known = this.calls[place]
      if (known) known.work = merged(known.work, work)
      return
    }
    this.places.set(event, this.calls.length < CALLS_MAX ? this.calls.length : -1)
    addTime(sum, event.endNs - event.startNs)
    sum.tokens = plus(sum.tokens, event.tokens)
    if (this.calls.length < CALLS_MAX) this.calls.push({ startNs: event.startNs, endNs: event.endNs, work })
  }

  private nvtx({ what, tid, domain, atNs, range, message }: NvtxEvent): void {
    if (this.ranges.length >= RANGES_MAX) return
    if (what === 'push') this.stacks.of(`${tid} ${domain}`).push({ name: message, startNs: atNs, endNs: NaN })
    else if (what === 'pop') this.end(this.stacks.of(`${tid} ${domain}`).pop(), atNs)
    else if (what === 'start') this.started.set(range, { name: message, startNs: atNs, endNs: NaN })
    else if (what === 'end') {
      this.end(this.started.get(range), atNs)
      this.started.delete(range)
    }
  }

  finish(): { readonly work: CallWorkResult } {
    const calls = this.calls.sort((a, b) => a.startNs - b.startNs)
    const names = new DefaultMap<number, WorkSum>((name) => newSum(this.names.text(name), null))
    for (const { name, startNs, endNs } of this.ranges) {
      const first = firstIndex(0, calls.length, (i) => calls[i]!.startNs >= startNs)
      const end = firstIndex(first, calls.length, (i) => calls[i]!.startNs > endNs)
      const inside = calls.slice(first, end).filter((call) => call.endNs <= endNs)
      if (inside.length === 0) continue
      const sum = names.of(name)
      addTime(sum, endNs - startNs)
      for (const { work } of inside) addWork(sum, work)
    }
    return {
      work: { all: [...this.all.values()], phases: [...this.phases.values()], ranges: [...names.values()] },
    }
  }

  private end(range: Range | undefined, atNs: number): void {
    if (!range) return
    range.endNs = atNs
    this.ranges.push(range)
  }
}

function newSum(what: string, phase: Phase | null): WorkSum {
  return { what, phase, count: 0, tokens: 0, timeNs: 0, flop: 0, bytes: 0, bytesAreMax: false }
}

function addTime(sum: WorkSum, ns: number): void {
  sum.count++
  sum.timeNs += ns
}

function addWork(sum: WorkSum, { flop, bytes, bytesAreMax }: OneCall): void {
  sum.flop = plus(sum.flop, flop)
  sum.bytes = plus(sum.bytes, bytes)
  sum.bytesAreMax ||= bytesAreMax
}

function merged(a: OneCall, b: OneCall): OneCall {
  const bytesAreMax = a.bytesAreMax || b.bytesAreMax
  return { flop: plus(a.flop, b.flop), bytes: plus(a.bytes, b.bytes), bytesAreMax }
}
