import { firstIndex } from '../../bytes/search.ts'
import type { InputEvent, TaskEvent, TaskStep, TokenEvent } from '../../model/events.ts'
import { isPlaced } from '../../model/times.ts'
import { plural } from '../../model/units.ts'
import type { Range } from './estimate.ts'
import type { Relation } from './relation.ts'

/** Lines that the thread writes which also calls llama_decode: never during a call. */
const BETWEEN_CALLS: ReadonlySet<TaskStep> = new Set(['launch', 'prompt', 'reuse', 'progress', 'timings', 'release'])
/** Lines that are kept, and calls. */
const KEPT_MAX = 1 << 17
/** Times of lines are cut to 1 µs, as is the start from which they count. */
const CUT_NS = 2000
/** Offsets are searched in parts of so many ns at least: only lines near the calls matter in each. 1 s. */
const STEP_NS_MIN = 1e9
/** A larger error is of no use. All offsets within it have the same lines between the same calls. 50 ms. */
const BOUND_NS_MAX = 50e6
/** The chance that the lines are those of another server, and fit nevertheless. */
const CHANCE_MAX = 1e-2

/** From a launch while no slot works to the release of the last slot that works. */
interface Busy {
  readonly fromNs: number
  toNs: number
  /** In calls, by the server's figures of its requests; NaN: some are not in the log. */
  tokens: number
}

/** Of requests that failed, or without an answer of tokens. */
const NO_FIGURES = { processedTokens: Number.NaN, generatedTokens: Number.NaN }

interface Call {
  readonly startNs: number
  readonly endNs: number
  readonly tokens: number
  readonly tid: number
}

/** Offsets at which all lines are between calls. */
interface Place extends Range {
  /** Between how many calls lines are. */
  readonly gaps: number
  /** Busy times with calls of as many tokens as the server's figures state, … */
  readonly agreeing: number
  /** … of those that lie between the first call and the last. */
  readonly compared: number
  /** The chance that the tokens of others agree, about 1 to as many as there are. */
  readonly luck: number
}

/** A server's log and calls that could be the server's, and why they do not relate the clocks. */
export interface Unrelated {
  readonly why: string
  readonly hint: string
}

/**
 * Relates a server's log, whose times count from a start that it does not record, to calls of the server that another input records: lines
 * about slots are written between two calls, and no call is made while no slot works.
 */
export class ServerLines {
  private readonly calls: Call[] = []
  private readonly lines: number[] = []
  private readonly busy: Busy[] = []
  /** Slots that work, with the server's figures. */
  private readonly working = new Map<number, { processedTokens: number; generatedTokens: number }>()
  /** When the process of the calls began, in ns since the origin. */
  private processNs: number | undefined

  see(event: InputEvent | TaskEvent | TokenEvent): void {
    if (event.kind === 'task') this.line(event)
    else if (event.kind === 'token') this.call(event)
    else this.begin(event)
  }

  /** The relation from times of `here` to times of this input; undefined: these are not the calls and the log of a server. */
  relationOf(here: ServerLines): Relation | Unrelated | undefined {
    if (here.lines.length === 0 || here.calls.length > 0 || this.lines.length > 0) return undefined
    return this.calls.length > 0 ? this.placed(here) : NO_CALLS
  }

  private begin({ attributes: { process_start: start }, clock, originNs }: InputEvent): void {
    if (clock === 'BOOTTIME' && /^\d{1,18}$/.test(`${start}`)) this.processNs = Number(BigInt(start!) - originNs)
  }

  private call({ startNs, returnNs, endNs, tokens, tid }: TokenEvent): void {
    if (this.calls.length < KEPT_MAX) this.calls.push({ startNs, endNs: returnNs ?? endNs, tokens, tid })
  }

  private line({ what, atNs, slot, inferred = 0, values }: TaskEvent): void {
    const { lines, busy, working } = this
    if (!BETWEEN_CALLS.has(what) || !isPlaced(inferred) || lines.length >= KEPT_MAX) return
    lines.push(atNs)
    if (what === 'launch') {
      if (working.size === 0) busy.push({ fromNs: atNs, toNs: Infinity, tokens: 0 })
      working.set(slot, { ...NO_FIGURES })
      return
    }
    const figures = working.get(slot)
    if (what === 'release') working.delete(slot)
    const last = busy.at(-1)
    // It began before the log, which may be a part of a longer one: whether slots worked until now is not known.
    if (!figures || !last) {
      busy.length = 0
      return
    }
    if (what === 'timings') {
      figures.processedTokens = values?.processedTokens ?? figures.processedTokens
      figures.generatedTokens = values?.generatedTokens ?? figures.generatedTokens
    }
    if (what !== 'release') return
    last.tokens += figures.processedTokens + figures.generatedTokens - 1 // the last one is in no call
    if (working.size === 0) last.toNs = atNs
  }

  /** The relation from times of `log` to times of these calls. */
  private placed(log: ServerLines): Relation | Unrelated {
    const calls = ofOneThread(this.calls)
    const { places, chances } = this.placesOf(log, calls)
    const most = places.reduce((most, { agreeing }) => Math.max(most, agreeing), 0)
    const best = places.filter(({ agreeing }) => agreeing === most)
    const [first, last] = [best[0], best.at(-1)]
    if (!first || !last) return OTHERS
    const boundNs = Math.ceil((last.to - first.from) / 2)
    if (boundNs > BOUND_NS_MAX) return rough(boundNs)
    const { gaps, agreeing, compared, luck } = first
    const othersThatFit = Math.min(places.length, chances * shareBetween(calls) ** gaps)
    if (othersThatFit * (agreeing * 2 > compared ? luck : 1) > CHANCE_MAX) return UNCLEAR
    const agree = agreeing > 0 ? `; ${agreeing} of ${compared} busy times have calls of its tokens` : ''
    const how = `inferred from lines of the server at ${plural(gaps, 'place')} between its calls${agree}`
    return { how, shiftNs: Math.round((first.from + last.to) / 2), drift: 0, driftFromNs: 0, boundNs }
  }

  /** Offsets at which `log` agrees with the calls; `chances`: how many calls the offset could be moved by. */
  private placesOf({ lines, busy }: ServerLines, calls: readonly Call[]) {
    const [startNs, endNs] = [calls[0]!.startNs, calls.at(-1)!.endNs]
    // The log begins after the process, and contains the first call; where that start is not known, all calls.
    const from = this.processNs ?? endNs - lines.at(-1)!
    const domain = { from: Math.max(from, startNs - lines.at(-1)!), to: startNs - lines[0]! }
    const silent = [idleTimes(lines, busy), lines.map((atNs) => ({ from: atNs, to: atNs }))]
    const stepNs = Math.max(endNs - startNs, STEP_NS_MIN)
    const places: Place[] = []
    for (let { from } = domain; from < domain.to; from += stepNs) {
      const part = { from, to: Math.min(from + stepNs, domain.to) }
      const ranges = silent.reduce((left, times) => withoutAll(left, part, times, calls), [part])
      places.push(...ranges.flatMap((range) => placeOf(range, busy, lines, calls) ?? []))
    }
    return { places, chances: (calls.length * (domain.to - domain.from)) / Math.max(1, endNs - startNs) }
  }
}

const OTHERS: Unrelated = {
  why: 'its lines about slots are not between these calls: it is the log of another server, or of another start of this one',
  hint: 'give the log of that server, with the lines of the time of the recording; of a long one the end: tail -n 100000',
}

const LONGER = 'record longer, while requests begin and end'

const NO_CALLS: Unrelated = { why: 'there are no calls, between which its lines about slots could be', hint: LONGER }

const UNCLEAR: Unrelated = {
  why: 'its lines about slots are between these calls, but so few could be those of another server, too',
  hint: LONGER,
}

const rough = (boundNs: number): Unrelated => ({
  why: `its lines about slots determine it only to ±${(boundNs / 1e6).toPrecision(3)} ms`,
  hint: LONGER,
})

/** When no slot works, or what is not in the log: it must contain the calls. Requests may continue after its end. */
function idleTimes(lines: readonly number[], busy: readonly Busy[]): Range[] {
  const idle = busy.map(({ toNs }, i) => ({ from: toNs, to: busy[i + 1]?.fromNs ?? Infinity }))
  return [{ from: -Infinity, to: lines[0]! }, ...idle.filter(({ from, to }) => from < to)]
}

/** In order of time: bpftrace prints one CPU's after the other's. A server calls on one thread. */
function ofOneThread(calls: readonly Call[]): readonly Call[] {
  const counts = new Map<number, number>()
  for (const { tid } of calls) counts.set(tid, (counts.get(tid) ?? 0) + 1)
  const [main] = [...counts].reduce((most, entry) => (entry[1] > most[1] ? entry : most))
  return calls.filter(({ tid }) => tid === main).toSorted((a, b) => a.startNs - b.startNs)
}

/** The parts of ranges, within `part`, at which no call is during one of the times of the log, which are in order. */
function withoutAll(ranges: readonly Range[], part: Range, times: readonly Range[], calls: readonly Call[]): Range[] {
  const [startNs, endNs] = [calls[0]!.startNs, calls.at(-1)!.endNs]
  let left = [...ranges]
  for (let i = firstIndex(0, times.length, (i) => times[i]!.to + part.to > startNs); i < times.length; i++) {
    const { from, to } = times[i]!
    if (from + part.from >= endNs || left.length === 0) return left
    left = without(left, calls, from, to)
  }
  return left
}

/** The parts of ranges of the offset at which no call is between `fromNs` and `toNs` of the log. */
function without(ranges: readonly Range[], calls: readonly Call[], fromNs: number, toNs: number): Range[] {
  const left: Range[] = []
  for (const { from, to } of ranges) {
    let start = from
    for (let i = callsUntil(calls, from + fromNs); i < calls.length; i++) {
      const { startNs, endNs } = calls[i]!
      const [refusedFrom, refusedTo] = [startNs - toNs + CUT_NS, endNs - fromNs - CUT_NS]
      if (refusedFrom >= to) break
      if (refusedFrom >= refusedTo) continue
      if (refusedFrom > start) left.push({ from: start, to: refusedFrom })
      start = Math.max(start, refusedTo)
    }
    if (start < to) left.push({ from: start, to })
  }
  return left
}

/** The number of calls that end before a time. */
const callsUntil = (calls: readonly Call[], atNs: number) => firstIndex(0, calls.length, (i) => calls[i]!.endNs > atNs)

/** Undefined: no line is between two calls, or no call in a busy time. */
function placeOf(
  range: Range,
  busy: readonly Busy[],
  lines: readonly number[],
  calls: readonly Call[],
): Place | undefined {
  const offsetNs = (range.from + range.to) / 2
  const [firstNs, lastNs] = [calls[0]!.startNs - offsetNs, calls.at(-1)!.endNs - offsetNs]
  const callAt = (atNs: number) => callsUntil(calls, atNs + offsetNs)
  const from = firstIndex(0, lines.length, (i) => lines[i]! > firstNs)
  const within = lines.slice(
    from,
    firstIndex(from, lines.length, (i) => lines[i]! >= lastNs),
  )
  const gaps = new Set(within.map(callAt)).size
  if (gaps === 0) return undefined
  let [agreeing, compared, luck] = [0, 0, 1]
  for (let i = firstIndex(0, busy.length, (i) => busy[i]!.fromNs > firstNs); i < busy.length; i++) {
    const { fromNs, toNs, tokens } = busy[i]!
    if (toNs >= lastNs) break
    const its = calls.slice(callAt(fromNs), callAt(toNs))
    if (its.length === 0 && tokens > 0) return undefined
    if (!(tokens > 0)) continue // some are not known
    compared++
    if (its.reduce((sum, call) => sum + call.tokens, 0) !== tokens) continue
    agreeing++
    luck /= tokens
  }
  return { ...range, gaps, agreeing, compared, luck }
}

/** The share of time that is not in calls. */
function shareBetween(calls: readonly Call[]): number {
  const inCallsNs = calls.reduce((sum, { startNs, endNs }) => sum + endNs - startNs, 0)
  return 1 - inCallsNs / Math.max(1, calls.at(-1)!.endNs - calls[0]!.startNs)
}
