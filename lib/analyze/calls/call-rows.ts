import type { ModelBlock } from '../../model/blocks.ts'
import { sequencesOf } from '../../model/calls.ts'
import { DefaultMap } from '../../model/default-map.ts'
import type { TokenEvent } from '../../model/events.ts'
import type { OffCpu } from '../common/statistic.ts'
import type { CallOperators } from '../graph/operators/call-operators.ts'
import { recordedLength } from './context-length.ts'
import type { CallRow, CallSeries } from './figures.ts'
import type { TimedDecode } from './times.ts'

/** Rows of the table of calls at most. */
export const CALL_ROWS_MAX = 10_000
/** Contexts whose calls are thinned separately; those of all others together. */
const CONTEXTS_MAX = 64

type Writable<T> = { -readonly [K in keyof T]: T[K] }

/** A row, and its number among the calls of its context and phase. */
interface Row extends Writable<Omit<CallRow, 'operator_time_ns' | 'off_cpu_ns'>> {
  readonly ordinal: number
  operator_time_ns: Partial<Record<ModelBlock, number>> | null
  off_cpu_ns: Partial<Record<ModelBlock, number>> | null
}

/** The table of calls. Of very many, every second one is kept, or every fourth …, of each context and phase. */
export class CallRows {
  private readonly rows = new Map<number, Row>()
  private readonly ordinals = new DefaultMap<string, { next: number }>(() => ({ next: 0 }))
  private readonly contexts = new Set<number>()
  private every = 1
  private count = 0

  constructor(
    private readonly blockOf: (tensor: number) => ModelBlock,
    private readonly rowsMax = CALL_ROWS_MAX,
  ) {}

  /** Is there a row of this call, so far? */
  has(call: number): boolean {
    return this.rows.has(call)
  }

  /** Takes a call, in any order; warm-ups are ignored. */
  call(event: TokenEvent): void {
    if (event.call < 0) return
    this.count++
    const context = event.batch?.context ?? 0
    if (this.contexts.size < CONTEXTS_MAX) this.contexts.add(context)
    const ordinal = this.ordinals.of(`${this.contexts.has(context) ? context : ''} ${event.phase}`).next++
    if (ordinal % this.every !== 0) return
    this.rows.set(event.call, {
      ordinal,
      call: event.call,
      phase: event.phase,
      context,
      tokens: event.tokens < 0 ? null : event.tokens,
      sequences: sequencesOf(event).sequences,
      context_tokens: recordedLength(event) ?? null,
      start_ns: event.startNs,
      time_ns: event.endNs - event.startNs,
      tpot_ns: null,
      result: event.batch?.result ?? 0,
      operator_time_ns: null,
      wait_ns: null,
      off_cpu_ns: null,
      wait_preempted_ns: null,
    })
    if (this.rows.size > this.rowsMax) this.thin()
  }

  private thin(): void {
    this.every *= 2
    for (const [call, { ordinal }] of this.rows) if (ordinal % this.every !== 0) this.rows.delete(call)
  }

  /** Adds what is known of a call that succeeded. */
  timed(event: TokenEvent, timed: TimedDecode | undefined, contextTokens: number | undefined): void {
    const row = this.rows.get(event.call)
    if (!row) return
    if (timed) row.tpot_ns = (timed.timeNs * timed.sequences) / timed.tokens
    row.context_tokens ??= contextTokens ?? null
  }

  /** Adds operators of a call. */
  operators(event: TokenEvent, operators: CallOperators, off: OffCpu | undefined): void {
    const row = this.rows.get(event.call)
    if (!row) return
    const { count, tensor, startNs, endNs, waitEndNs } = operators
    const times = row.operator_time_ns ?? {}
    let waitNs = row.wait_ns ?? 0
    for (let i = 0; i < count; i++) {
      const block = this.blockOf(tensor[i]!)
      times[block] = (times[block] ?? 0) + endNs[i]! - startNs[i]!
      waitNs += waitEndNs[i]! - endNs[i]!
    }
    row.operator_time_ns = times
    row.wait_ns = waitNs
    if (off) addOff(row, operators, off, this.blockOf)
  }

  /** `firstNs`: time of the first event. */
  finish(firstNs: number): CallSeries {
    const { count, rowsMax: rows_max, every } = this
    const rows = [...this.rows.values()]
      .sort((a, b) => a.call - b.call)
      .map(({ ordinal, ...row }): CallRow => ({ ...row, start_ns: row.start_ns - firstNs }))
    return { count, rows_max, every, rows }
  }
}

function addOff(
  row: Row,
  { count, tensor }: CallOperators,
  off: OffCpu,
  blockOf: (tensor: number) => ModelBlock,
): void {
  const lost = row.off_cpu_ns ?? {}
  for (let i = 0; i < count; i++) {
    const ns = off.preemptedNs[i]! + off.blockedNs[i]!
    if (ns === 0) continue
    const block = blockOf(tensor[i]!)
    lost[block] = (lost[block] ?? 0) + ns
  }
  row.off_cpu_ns = lost
  row.wait_preempted_ns = off.waitPreemptedNs
    .subarray(0, count)
    .reduce((sum, ns) => sum + ns, row.wait_preempted_ns ?? 0)
}
