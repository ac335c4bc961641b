import { firstIndex } from '../../bytes/search.ts'
import type { InputEvent, TaskEvent, TaskStep, TokenEvent } from '../../model/events.ts'
import { isPlaced } from '../../model/times.ts'
import { plural } from '../../model/units.ts'
import { CallGaps, callsUntil } from './call-gaps.ts'
import type { Range } from './estimate.ts'
import type { Relation } from './relation.ts'

/** Lines that the thread writes which also calls llama_decode: never during a call. */
const BETWEEN_CALLS: ReadonlySet<TaskStep> = new Set(['launch', 'prompt', 'reuse', 'progress', 'timings', 'release'])
/** Lines that are kept, and calls. */
const KEPT_MAX = 1 << 17
/** Offsets are searched in parts of so many ns at least: only lines near the calls matter in each. 1 s. */
const STEP_NS_MIN = 1e9
/** Steps of the search, which is some seconds long then: a log of days next to many calls has more. */
const STEPS_MAX = 1e8
/** What a place costs, in such steps. */
const PLACE_STEPS = 50
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
  /** Lines from the first call to the last, … */
  readonly lines: number
  /** … and between how many calls they are. */
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
    const { first, last, count, areAll, chances } = this.placesOf(log, calls)
    if (!first || !last) return areAll ? OTHERS : TOO_MANY
    const boundNs = Math.ceil((last.to - first.from) / 2)
    if (boundNs > BOUND_NS_MAX) return areAll ? rough(boundNs) : TOO_MANY
    const { gaps, agreeing, compared, luck } = first
    const byChance = chances * shareBetween(calls) ** gaps
    const othersThatFit = areAll ? Math.min(count, byChance) : byChance
    if (othersThatFit * (agreeing * 2 > compared ? luck : 1) > CHANCE_MAX) return UNCLEAR
    const agree = agreeing > 0 ? `; ${agreeing} of ${compared} busy times have calls of its tokens` : ''
    const how = `inferred from lines of the server at ${plural(gaps, 'place')} between its calls${agree}`
    return { how, shiftNs: Math.round((first.from + last.to) / 2), drift: 0, driftFromNs: 0, boundNs }
  }

  /**
   * The first and the last of the offsets at which `log` agrees best with the calls, and how many agree; `chances`: how many calls the offset could be
   * moved by. Those near the start of the process or the end of the log are searched first; `areAll`: the others, too.
   */
  private placesOf({ lines, busy }: ServerLines, calls: readonly Call[]) {
    const [startNs, endNs] = [calls[0]!.startNs, calls.at(-1)!.endNs]
    // The log begins after the process, and contains the first call; where that start is not known, all calls.
    const from = this.processNs ?? endNs - lines.at(-1)!
    const domain = { from: Math.max(from, startNs - lines.at(-1)!), to: startNs - lines[0]! }
    const silent = [idleTimes(lines, busy), lines.map((atNs) => ({ from: atNs, to: atNs }))]
    const stepNs = Math.max(endNs - startNs, STEP_NS_MIN)
    const gaps = new CallGaps(calls)
    const tokensBefore = sumsOf(calls.map(({ tokens }) => tokens))
    let [first, last]: (Place | undefined)[] = []
    let [count, areAll] = [0, false]
    for (let { from } = domain; gaps.steps < STEPS_MAX; from += stepNs) {
      // Without lines between the first call and the last, there is no place: two parts of each line at most, however long the log is.
      const line = lines[firstIndex(0, lines.length, (i) => lines[i]! >= endNs - from) - 1]
      if (line !== undefined) from += Math.max(0, Math.floor((startNs - line - from) / stepNs)) * stepNs
      areAll = line === undefined || from >= domain.to
      if (areAll) break
      const part = { from, to: Math.min(from + stepNs, domain.to) }
      const ranges = silent.reduce((left, times) => gaps.withoutAll(left, part, times), [part])
      for (const range of ranges) {
        const place = placeOf(range, busy, lines, calls, tokensBefore)
        gaps.steps += PLACE_STEPS + (place?.lines ?? 0)
        if (!place) continue
        count++
        if (!first || place.agreeing > first.agreeing) first = place
        if (place.agreeing === first.agreeing) last = place
      }
    }
    return {
      first,
      last,
      count,
      areAll,
      chances: (calls.length * (domain.to - domain.from)) / Math.max(1, endNs - startNs),
    }
  }
}

/** Sums of the numbers before each. */
function sumsOf(numbers: readonly number[]): Float64Array {
  const sums = new Float64Array(numbers.length + 1)
  for (const [i, number] of numbers.entries()) sums[i + 1] = sums[i]! + number
  return sums
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

const TOO_MANY: Unrelated = {
  why: 'its lines about slots could be at too many times between these calls',
  hint: 'give the end of the log, with the lines of the time of the recording: tail -n 10000',
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

/** Undefined: no line is between two calls, or no call in a busy time. */
function placeOf(
  range: Range,
  busy: readonly Busy[],
  lines: readonly number[],
  calls: readonly Call[],
  tokensBefore: Float64Array,
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
    const [first, after] = [callAt(fromNs), callAt(toNs)]
    if (first === after && tokens > 0) return undefined
    if (!(tokens > 0)) continue // some are not known
    compared++
    if (tokensBefore[after]! - tokensBefore[first]! !== tokens) continue
    agreeing++
    luck /= tokens
  }
  return { ...range, lines: within.length, gaps, agreeing, compared, luck }
}

/** The share of time that is not in calls. */
function shareBetween(calls: readonly Call[]): number {
  const inCallsNs = calls.reduce((sum, { startNs, endNs }) => sum + endNs - startNs, 0)
  return 1 - inCallsNs / Math.max(1, calls.at(-1)!.endNs - calls[0]!.startNs)
}
