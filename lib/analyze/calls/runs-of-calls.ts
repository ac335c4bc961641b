import { decodingIn } from '../../model/calls.ts'
import { DefaultMap } from '../../model/default-map.ts'
import type { TokenEvent } from '../../model/events.ts'
import type { RunFigures } from './figures.ts'
import { type TimedCall, Times } from './times.ts'

/** Rows of runs; further kinds of runs have none. */
const ROWS_MAX = 64
/** Contexts whose calls are divided; the oldest one's run ends where there are more. */
const CONTEXTS_MAX = 64

/** A mean. */
class Mean {
  count = 0
  private sum = 0

  get mean(): number | null {
    return this.count === 0 ? null : this.sum / this.count
  }

  /** Null: not known. */
  add(value: number | null): void {
    if (value === null) return
    this.count++
    this.sum += value
  }
}

/** Consecutive calls of a context. */
class Stretch {
  readonly times = new Times(() => {})
  depth = 0
  prompt = 0
  generated = 0
  sequences = 0
  startNs = 0
  endNs = 0

  add({ event, fromNs, ...rest }: TimedCall): void {
    const { startNs, endNs, tokens, batch } = event
    const isFirst = this.times.calls === 0
    if (isFirst) {
      this.startNs = startNs
      this.depth = Math.max(batch?.spans[0]?.position ?? 0, 0)
    }
    this.endNs = Math.max(this.endNs, endNs)
    const generated = generatedIn(event, rest.made)
    this.generated += generated
    if (event.phase !== 'decode') this.prompt += Math.max(tokens, 0) - generated
    this.sequences = Math.max(this.sequences, new Set(batch?.spans.map(({ sequence }) => sequence)).size)
    // A run begins with its first call.
    this.times.add({ event, fromNs: isFirst ? startNs : fromNs, ...rest })
  }
}

/** The calls of a context since its memory was cleared. */
class Run {
  readonly all = new Stretch()
  /** Those after its state was saved, when it had processed a prompt only. */
  saved: Stretch | undefined
  /** Was an output read? */
  private isRead = false

  add(call: TimedCall): void {
    if (this.all.times.calls > 0 && !call.event.batch?.followsUnread) this.isRead = true
    this.all.add(call)
    this.saved?.add(call)
  }

  save(): void {
    if (this.all.times.calls > 0 && !this.all.times.hasDecoded) this.saved = new Stretch()
  }

  /** Is its beginning a preparation: a context that is saved, to be restored in later runs, and of which no output is read? */
  get isPrepared(): boolean {
    return this.saved !== undefined && this.saved.times.calls > 0 && !this.isRead
  }
}

/** Runs with the same numbers of tokens. */
interface Row {
  readonly of: Pick<RunFigures, 'depth' | 'prompt_tokens' | 'generated_tokens' | 'sequences'>
  readonly means: Record<'time' | 'rate' | 'prefill' | 'decode' | 'ttft' | 'tpot', Mean>
}

/**
 * Divides the calls of each context into runs: one ends where the memory of its context is cleared, as benchmarks do between tests and
 * repetitions, and programs between texts. A state that is saved and restored, the depth of a test, is no part of it.
 */
export class RunsOfCalls {
  /** TTFT of all runs, without those of drafts. */
  readonly ttft = new Mean()
  /** Are the calls more than one run, or is one prepared by calls of its own? */
  areSeveral = false
  private readonly open = new DefaultMap<number, Run>(() => new Run())
  private readonly ttfts = new DefaultMap<number, Mean>(() => new Mean())
  private readonly rows = new Map<string, Row>()
  private further = 0

  /** `isDraft`: does a context draft for another one? Its runs have no row. */
  constructor(private readonly isDraft: (context: number) => boolean) {}

  /** Adds a call, in order. */
  add(context: number, call: TimedCall): void {
    this.open.of(context).add(call)
    const [oldest] = this.open.keys()
    if (this.open.size > CONTEXTS_MAX) this.close(oldest!)
  }

  /** The memory of a context was cleared, at this time. */
  clear(context: number, atNs: number): void {
    for (const { all } of this.open.values()) if (all.startNs < atNs) this.areSeveral = true
    this.close(context)
  }

  /** The state of a context was saved. */
  save(context: number): void {
    this.open.get(context)?.save()
  }

  /** Calls are missing: what follows is counted as another run. */
  interrupt(): void {
    for (const context of [...this.open.keys()]) this.close(context)
  }

  /** Call after the last {@link add}. */
  finish(): void {
    this.interrupt()
  }

  /** Mean TTFT of the runs of a context. */
  ttftOf(context: number): number | null {
    return this.ttfts.get(context)?.mean ?? null
  }

  /** Undefined where all is one run. */
  get figures(): { readonly runs: readonly RunFigures[]; readonly further: number } {
    if (!this.areSeveral) return { runs: [], further: 0 }
    const runs = [...this.rows.values()].map(({ of: figures, means }): RunFigures => {
      const { time, rate, prefill, decode, ttft, tpot } = means
      return {
        ...figures,
        runs: time.count,
        time_ns: time.mean!,
        tokens_per_s: rate.mean,
        ttft_ns: ttft.mean,
        prefill_tokens_per_s: prefill.mean,
        tpot_ns: tpot.mean,
        decode_tokens_per_s: decode.mean,
      }
    })
    return { runs, further: this.further }
  }

  private close(context: number): void {
    const run = this.open.get(context)
    if (!run) return
    this.open.delete(context)
    const stretch = run.isPrepared ? run.saved! : run.all
    if (run.isPrepared) this.areSeveral = true
    const { ttft_ns, tpot_ns, prefill_tokens_per_s, decode_tokens_per_s } = stretch.times.figures
    if (this.ttfts.size < CONTEXTS_MAX) this.ttfts.of(context).add(ttft_ns)
    else this.ttfts.get(context)?.add(ttft_ns)
    if (this.isDraft(context)) return
    this.ttft.add(ttft_ns)
    const means = this.rowOf(stretch)?.means
    if (!means) {
      this.further++
      return
    }
    const timeNs = stretch.endNs - stretch.startNs
    means.time.add(timeNs)
    means.rate.add(timeNs > 0 ? ((stretch.prompt + stretch.generated) * 1e9) / timeNs : null)
    means.ttft.add(ttft_ns)
    means.prefill.add(prefill_tokens_per_s)
    means.decode.add(decode_tokens_per_s)
    means.tpot.add(tpot_ns)
  }

  private rowOf({ depth, prompt, generated, sequences }: Stretch): Row | undefined {
    const key = [depth, prompt, generated, sequences].join()
    const known = this.rows.get(key)
    if (known || this.rows.size === ROWS_MAX) return known
    const means = { time: new Mean(), rate: new Mean(), prefill: new Mean(), decode: new Mean() }
    const row = {
      of: { depth, prompt_tokens: prompt, generated_tokens: generated, sequences },
      means: { ...means, ttft: new Mean(), tpot: new Mean() },
    }
    this.rows.set(key, row)
    return row
  }
}

/** Tokens that a call generates. `made`: of verified drafts. */
function generatedIn({ phase, tokens, batch }: TokenEvent, made: number | undefined): number {
  if (phase === 'decode') return made ?? Math.max(tokens, 0)
  return phase === 'mixed' && batch ? decodingIn(batch.spans).length : 0
}
