import type { SqliteRows } from '../../../input/sqlite/rows.ts'
import { DefaultMap, getOrMake } from '../../../model/default-map.ts'
import type { TraceEvent } from '../../../model/events.ts'
import type { NvtxEvent, NvtxPayload } from '../../../model/nvtx-events.ts'
import { Spans, SparseNumbers } from '../../common/spans.ts'

/** End of a range that was still open at the end of the recording. */
export const OPEN_NS = 2 ** 52

/** Common properties of many ranges; {@link NvtxNames} maps the numbers. */
export interface Style {
  readonly what: 'push-pop' | 'start-end' | 'mark'
  readonly thread: number
  readonly endThread: number
  readonly domainId: number
  readonly categoryId: number
  readonly color: number
  /** Type of its payload, if it has one. */
  readonly payload?: PayloadKind | undefined
}

/** Names of the numbers of threads, domains and categories. Called after all rows are read. */
export interface NvtxNames {
  pidOf(thread: number): number
  tidOf(thread: number): number
  /** The results are name ids; 0 = none, for a domain the default one. */
  threadName(thread: number): number
  domainName(thread: number, domainId: number): number
  categoryName(thread: number, domainId: number, categoryId: number): number
  /** The text of a name id. */
  text(name: number): string
  /** The end of the recording. */
  readonly lastNs: number
}

/** The pushed ranges of a thread, by domain. */
type Stacks = DefaultMap<number, number[]>

/** NVTX ranges and marks in any order, by thread; `a` of a span is the name, `b` the number of the style. */
export class NvtxRanges {
  readonly byThread = new DefaultMap<number, Spans>(() => new Spans())
  /** Number of open ranges among those that were passed on. */
  openRanges = 0
  private readonly styles: Style[] = []
  private readonly styleIds = new Map<string, number>()
  private readonly payloads = new DefaultMap<Spans, Payloads>(() => new Payloads())
  private started = 0

  constructor(private readonly names: NvtxNames) {}

  /** Adds a range, or a mark (which ends at its start). `payload` has the style's type. */
  add(startNs: number, endNs: number, name: number, style: Style, payload?: PayloadBits): void {
    const { what, thread, endThread, domainId, categoryId, color } = style
    const spans = this.byThread.of(thread)
    if (payload) this.payloads.of(spans).set(spans.length, payload.high, payload.low)
    const key = `${what} ${thread} ${endThread} ${domainId} ${categoryId} ${color} ${style.payload}`
    const id = getOrMake(this.styleIds, key, () => this.styles.push(style) - 1)
    spans.push(startNs, endNs, name, id)
  }

  /** Ranges and marks, thread by thread in order of their starts; pops at their times between the pushes. */
  *events(): Generator<TraceEvent[], void> {
    for (const spans of this.byThread.values()) {
      const stacks: Stacks = new DefaultMap(() => [])
      yield* spans.order().inBatches((id, batch) => this.place(spans, id, stacks, batch))
      const pops: TraceEvent[] = []
      for (const stack of stacks.values()) this.pop(spans, stack, Infinity, pops)
      yield pops
    }
  }

  /** Adds a range or mark, after the pops before it. */
  private place(spans: Spans, id: number, stacks: Stacks, into: TraceEvent[]): void {
    const style = this.styles[spans.b(id)]!
    const { what, domainId } = style
    const [startNs, endNs] = [spans.start(id), this.endOf(spans, id)]
    if (spans.end(id) >= OPEN_NS) this.openRanges++
    const stack = stacks.of(domainId)
    this.pop(spans, stack, startNs, into)
    if (what === 'mark') {
      into.push(this.event('mark', spans, id, startNs))
      return
    }
    // A pushed range that ends after its parent cannot nest.
    const fits = stack.length === 0 || endNs <= this.endOf(spans, stack.at(-1)!)
    if (what === 'push-pop' && fits) {
      into.push(this.event('push', spans, id, startNs))
      stack.push(id)
      return
    }
    const range = ++this.started
    into.push(this.event('start', spans, id, startNs, range), this.end('end', style, endNs, range, style.endThread))
  }

  private pop(spans: Spans, stack: number[], untilNs: number, into: TraceEvent[]): void {
    for (let id = stack.at(-1); id !== undefined && this.endOf(spans, id) <= untilNs; id = stack.at(-1)) {
      into.push(this.end('pop', this.styles[spans.b(id)]!, this.endOf(spans, id)))
      stack.pop()
    }
  }

  /** Is it a range, and not a mark? */
  isRange(spans: Spans, id: number): boolean {
    return this.styles[spans.b(id)]!.what !== 'mark'
  }

  /** Name of a range's domain; 0 is the default one. */
  domainOf(spans: Spans, id: number): number {
    const { thread, domainId } = this.styles[spans.b(id)]!
    return this.names.domainName(thread, domainId)
  }

  /** End of a range; the end of the recording if it was open. */
  endOf(spans: Spans, id: number): number {
    return Math.min(spans.end(id), Math.max(spans.start(id), this.names.lastNs))
  }

  private event(what: NvtxEvent['what'], spans: Spans, id: number, atNs: number, range = 0): NvtxEvent {
    const { names } = this
    const { thread, domainId, categoryId, color, payload: type } = this.styles[spans.b(id)]!
    const payload = type && this.payloads.of(spans).at(id, type)
    // All in one literal, also below: spreads of events cost more than all else here.
    return {
      kind: 'nvtx',
      what,
      pid: names.pidOf(thread),
      tid: names.tidOf(thread),
      atNs,
      thread: names.threadName(thread),
      domain: names.domainName(thread, domainId),
      range,
      message: spans.a(id),
      category: names.categoryName(thread, domainId, categoryId),
      color,
      payload: type && type !== 'json' ? { type, value: payload } : undefined,
      json: type === 'json' ? names.text(payload as number) : undefined,
    }
  }

  /** A pop; or the end of a range, which may be on another thread. */
  private end(
    what: 'pop' | 'end',
    { thread, domainId }: Pick<Style, 'thread' | 'domainId'>,
    atNs: number,
    range = 0,
    endThread = thread,
  ): NvtxEvent {
    const { names } = this
    return {
      kind: 'nvtx',
      what,
      pid: names.pidOf(thread),
      tid: names.tidOf(endThread),
      atNs,
      thread: names.threadName(thread),
      domain: names.domainName(thread, domainId),
      range,
      message: 0,
      category: 0,
      color: -1,
      payload: undefined,
      json: undefined,
    }
  }
}

/** Type of the 64 bits of a payload. `json`: a name id. */
export type PayloadKind = NvtxPayload['type'] | 'json'

const scratch = new DataView(new ArrayBuffer(8))

/** Payloads of ranges of a thread, by their ids: 8 bytes each. */
class Payloads {
  private readonly high = new SparseNumbers()
  private readonly low = new SparseNumbers()

  set(id: number, high: number, low: number): void {
    this.high.set(id, high)
    this.low.set(id, low)
  }

  /** For `json`, a name id. */
  at(id: number, type: PayloadKind): number | bigint | undefined {
    const [high, low] = [this.high.at(id), this.low.at(id)]
    if (type === 'unknown') return undefined
    if (type === 'json') return low
    scratch.setUint32(0, high)
    scratch.setUint32(4, low)
    if (type === 'f64' || type === 'f32') return scratch.getFloat64(0)
    const value = (type === 'u64' ? high : high | 0) * 2 ** 32 + low
    if (Number.isSafeInteger(value)) return value
    return type === 'u64' ? scratch.getBigUint64(0) : scratch.getBigInt64(0)
  }
}

/** The payload of a range, as 64 bits. */
export interface PayloadBits {
  readonly type: PayloadKind
  readonly high: number
  readonly low: number
}

/** The payload of a row, which has at most one value in the columns of `types`, from `first` on. */
export function payloadOf(
  row: SqliteRows,
  first: number,
  types: readonly NvtxPayload['type'][],
): PayloadBits | undefined {
  for (let i = 0; i < types.length; i++) {
    if (row.isNull(first + i)) continue
    const type = types[i]!
    if (type !== 'f64' && type !== 'f32') return { type, high: row.high(first + i), low: row.low(first + i) }
    scratch.setFloat64(0, row.number(first + i)) // SQLite may store it as an integer
    return { type, high: scratch.getUint32(0), low: scratch.getUint32(4) }
  }
  return undefined
}
