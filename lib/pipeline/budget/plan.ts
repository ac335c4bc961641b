import type { KeptAs } from '../../model/sums.ts'
import type { DrawOptions } from '../../timeline/options.ts'
import { type CallColumns, CallKind } from './call-columns.ts'
import type { Windows } from './kept-states.ts'
import type { Survey } from './survey.ts'
import type { Choice } from './thinner.ts'

/** A pause between calls from which on they are not summed up together: as long as one that is drawn as idle. */
const PAUSE_NS = 100e6
/** Units whose median time is what a call takes there: it grows with the context. */
const NEIGHBOURS = 256

/**
 * The slowest units first, by turns: the longest, and those that took the longest compared with the median of their neighbours of the
 * same kind.
 */
function slowest(units: readonly number[], columns: CallColumns): number[] {
  const { slowestNs } = columns
  const ratios = ratiosOf(units, columns)
  const timed = units.filter((unit) => slowestNs[unit]! > 0)
  const longest = [...timed].sort((a, b) => slowestNs[b]! - slowestNs[a]!)
  const outliers = [...timed].sort((a, b) => ratios.get(b)! - ratios.get(a)!)
  return outliers.flatMap((unit, i) => [unit, longest[i]!])
}

function ratiosOf(units: readonly number[], { slowestNs, kinds }: CallColumns): Map<number, number> {
  const ratios = new Map<number, number>()
  for (const kind of [CallKind.Decode, CallKind.Other]) {
    const ofKind = units.filter((unit) => (kinds[unit]! & CallKind.Decode) === (kind & CallKind.Decode))
    for (let from = 0; from < ofKind.length; from += NEIGHBOURS) {
      const neighbours = ofKind.slice(from, from + NEIGHBOURS)
      const times = Float64Array.from(neighbours, (unit) => slowestNs[unit]!).sort()
      const median = times[times.length >> 1]!
      for (const unit of neighbours) ratios.set(unit, slowestNs[unit]! / Math.max(median, 1))
    }
  }
  return ratios
}

/** Units whose costs are at most `bytes` in all, evenly spread over all of them. */
function spread(units: readonly number[], costOf: (unit: number) => number, bytes: number): number[] {
  const allBytes = units.reduce((sum, unit) => sum + costOf(unit), 0)
  const rate = Math.min(bytes / Math.max(allBytes, 1), 1)
  let credit = 0
  return units.filter((unit) => {
    const cost = costOf(unit)
    credit += rate * cost
    if (credit < cost && rate < 1) return false
    credit -= cost
    return true
  })
}

/** Units that must not be summed up with the one before: of another kind, or after a pause. */
function kindBreaks({ kinds, startNs, endNs, count }: CallColumns): Uint8Array {
  const breaks = new Uint8Array(count)
  for (let unit = 1; unit < count; unit++) {
    const isPause = startNs[unit]! - endNs[unit - 1]! >= PAUSE_NS
    if (isPause || kinds[unit] !== kinds[unit - 1]) breaks[unit] = 1
  }
  return breaks
}

/** The first calls, all of which are in full if the budget permits: findings are of these calls, and of every 64th. */
const FIRST = 16
/** Of the slowest calls, those that stay in full even where the trace gets larger than planned: they are why the trace is opened. */
const CERTAIN = 16
/** Shares of the bytes for details: what one does not use is for evenly spread calls. */
const SHARES = { first: 0.35, slow: 0.25, prefill: 0.2 } as const
/** Share of the bytes that calls leave, which sums may take: otherwise more calls are summed up together. */
const SUMS_SHARE = 0.3
/** Further sums of a stretch, other than of operators: of graphs and parts of calls. */
const GRAPH_SUMS = 2
/** Bytes by which the trace may exceed what was planned so far, before calls are no longer in full: buffers of writers. */
const SLACK_BYTES = 1 << 15

const REASONS: readonly (KeptAs | undefined)[] = [undefined, 'first', 'prefill', 'slow', 'spread']
const [FIRST_ONES, PREFILLS, SLOW, SPREAD] = [1, 2, 3, 4]

/** Chooses the calls of a log that are in the trace in full, from its first reading. */
export class CallPlan implements Choice {
  readonly windows: Windows
  private readonly columns: CallColumns
  /** By unit: index of {@link REASONS}. */
  private readonly kept: Uint8Array
  private readonly stretches: Uint32Array
  private readonly perUnitBytes: number
  private plannedBytes: number
  private decided = -1
  /** Units of the slowest calls, see {@link CERTAIN}. */
  private readonly certain = new Set<number>()

  /** `written`: bytes of the log's trace so far. */
  constructor(
    private readonly survey: Survey,
    budgetBytes: number,
    private readonly options: Pick<DrawOptions, 'tokens' | 'flows'>,
    private readonly written: () => number,
  ) {
    const { columns, costs, calls, otherBytes } = survey
    this.columns = columns
    this.kept = new Uint8Array(columns.count)
    const baseBytes = costs.fixed + otherBytes + calls * costs.call
    const freeBytes = Math.max(budgetBytes - baseBytes, 0)
    const { breaks, count } = this.breaksWithin(SUMS_SHARE * freeBytes)
    this.select(Math.max(freeBytes - count * this.stretchBytes, 0))
    this.stretches = stretchesOf(breaks, this.kept)
    this.windows = windowsOf(columns, this.kept)
    this.perUnitBytes = (calls * costs.call + otherBytes + count * this.stretchBytes) / Math.max(columns.count, 1)
    this.plannedBytes = costs.fixed
  }

  keptAs(call: number): KeptAs | undefined {
    const { tokens } = this.options
    if (tokens && (call < tokens[0] || call > tokens[1])) return 'first' // not drawn anyway
    const unit = this.columns.at(call)
    while (this.decided < unit) this.decide(++this.decided)
    return REASONS[this.kept[unit] ?? 0]
  }

  stretchOf(call: number): number {
    return this.stretches[this.columns.at(call)] ?? this.stretches.length
  }

  /** Bytes of the sums of one stretch of calls. */
  private get stretchBytes(): number {
    const { workers, names, workNames, costs } = this.survey
    return (workers * (names + 1) + workNames + GRAPH_SUMS) * costs.sum
  }

  private bytesOf(unit: number): number {
    return this.columns.operators[unit]! * this.survey.costs.operator
  }

  /** The plan is made of estimates: a call that was to be in full is not if the trace is larger than planned by then. */
  private decide(unit: number): void {
    const { kept } = this
    this.plannedBytes += this.perUnitBytes
    if (!kept[unit]) return
    this.plannedBytes += this.bytesOf(unit) + this.stretchBytes
    const exceeds = this.written() / (this.plannedBytes + SLACK_BYTES)
    if (exceeds > (kept[unit] === SPREAD ? 1 : 1.1) && !this.certain.has(unit)) kept[unit] = 0
  }

  /** The shortest stretches whose sums fit; they end at pauses and where the kind of calls changes, as far as that fits. */
  private breaksWithin(bytes: number): { readonly breaks: Uint8Array; readonly count: number } {
    const { columns, stretchBytes } = this
    for (const natural of [kindBreaks(columns), new Uint8Array(columns.count)]) {
      for (let length = 1; ; length *= 2) {
        const { breaks, count } = broken(natural, length)
        const isLast = length >= columns.count
        if (count * stretchBytes <= bytes || (isLast && count <= 1)) return { breaks, count }
        if (isLast) break
      }
    }
    return { breaks: new Uint8Array(columns.count), count: 1 }
  }

  private select(bytes: number): void {
    const { columns, kept } = this
    let leftBytes = bytes
    const keep = (units: Iterable<number>, reason: number, shareBytes: number) => {
      let restBytes = Math.min(shareBytes, leftBytes)
      for (const unit of units) {
        const cost = this.bytesOf(unit) + this.stretchBytes
        if (kept[unit] !== 0 || columns.operators[unit] === 0 || cost > restBytes) continue
        kept[unit] = reason
        restBytes -= cost
        leftBytes -= cost
      }
    }
    const all = Array.from({ length: columns.count }, (_, unit) => unit)
    const isPrefill = (unit: number) => (columns.kinds[unit]! & CallKind.Prefill) !== 0
    keep(this.firstUnits(), FIRST_ONES, SHARES.first * bytes)
    const others = all.filter((unit) => !isPrefill(unit))
    const slow = slowest(others, columns)
    keep(slow, SLOW, SHARES.slow * bytes)
    const prefills = all.filter((unit) => isPrefill(unit) && kept[unit] === 0)
    const prefillBytes = Math.min(SHARES.prefill * bytes, leftBytes)
    const costOf = (unit: number) => this.bytesOf(unit) + this.stretchBytes
    const longest = [...prefills].sort((a, b) => columns.slowestNs[b]! - columns.slowestNs[a]!)
    keep(longest, PREFILLS, prefillBytes / 2)
    // Units of several calls may be both.
    for (const unit of [...slow.slice(0, CERTAIN), ...longest.slice(0, CERTAIN)])
      if (kept[unit] !== 0) this.certain.add(unit)
    const rest = (units: readonly number[]) => units.filter((unit) => kept[unit] === 0 && columns.operators[unit]! > 0)
    keep(spread(rest(prefills), costOf, prefillBytes / 2), PREFILLS, prefillBytes / 2)
    keep(spread(rest(all), costOf, leftBytes), SPREAD, leftBytes)
  }

  /** The call whose data flow is drawn, the first call of each kind, the first calls. */
  private firstUnits(): number[] {
    const { columns, options } = this
    const units: number[] = []
    if (options.flows) units.push(columns.at(options.flows.token))
    for (const kind of [CallKind.Prefill, CallKind.Decode, CallKind.Other]) units.push(columns.kinds.indexOf(kind))
    const first = columns.operators.findIndex((operators) => operators > 0)
    const from = columns.firstOf(Math.max(first, 0))
    for (let i = 0; i < FIRST; i++) units.push(columns.at(from + i))
    return units.filter((unit) => unit >= 0 && unit < this.kept.length)
  }
}

/** Adds breaks so that no stretch has more units than `length`. */
function broken(natural: Uint8Array, length: number): { readonly breaks: Uint8Array; readonly count: number } {
  const breaks = new Uint8Array(natural.length)
  let [count, units] = [0, 0]
  for (let unit = 0; unit < natural.length; unit++) {
    if (unit === 0 || natural[unit] === 1 || units === length) {
      breaks[unit] = 1
      count++
      units = 0
    }
    units++
  }
  return { breaks, count }
}

/** The number of the stretch of each unit: they also end at units in full. */
function stretchesOf(breaks: Uint8Array, kept: Uint8Array): Uint32Array {
  const stretches = new Uint32Array(breaks.length)
  for (let unit = 1; unit < breaks.length; unit++) {
    const isNew = breaks[unit] === 1 || kept[unit] !== 0 || kept[unit - 1] !== 0
    stretches[unit] = stretches[unit - 1]! + (isNew ? 1 : 0)
  }
  return stretches
}

/** The times of units in full, up to the next unit; the time before the first call, and after the last. */
function windowsOf({ startNs, endNs, count }: CallColumns, kept: Uint8Array): Windows {
  const spans: [number, number][] = []
  let [firstNs, lastNs] = [Infinity, -Infinity]
  for (let unit = 0; unit < count; unit++) {
    if (Number.isNaN(startNs[unit]!)) continue
    firstNs = Math.min(firstNs, startNs[unit]!)
    lastNs = Math.max(lastNs, endNs[unit]!)
    if (kept[unit] === 0) continue
    const nextNs = startNs[unit + 1]
    spans.push([startNs[unit]!, nextNs! > endNs[unit]! ? nextNs! : endNs[unit]!])
  }
  spans.push([-Infinity, firstNs], [Math.max(lastNs, firstNs), Infinity])
  spans.sort((a, b) => a[0] - b[0])
  const [fromNs, toNs]: [number[], number[]] = [[], []]
  for (const [from, to] of spans) {
    const before = toNs.at(-1)
    if (before !== undefined && from <= before) toNs[toNs.length - 1] = Math.max(before, to)
    else {
      fromNs.push(from)
      toNs.push(to)
    }
  }
  return { fromNs, toNs }
}
