import { resized } from '../../bytes/resized.ts'
import { DefaultMap } from '../../model/default-map.ts'
import type { RequestEvent } from '../../model/events.ts'
import { Inferred } from '../../model/inferred.ts'
import { activeFromNs } from '../../model/requests/durations.ts'
import { isPlaced } from '../../model/times.ts'
import type { TrackContext } from '../context.ts'
import { CounterLine } from '../counter-line.ts'

/** In the order of their rows. */
const KEYS = ['queueLength', 'slotsBusy', 'slotsInPrefill', 'slotsInDecode', 'promptRate', 'answerRate'] as const

/**
 * Counters of requests that wait for a slot, and of slots that work on one; and what a server's own figures say about slots where no calls
 * are recorded: their parts, rates and tokens. Requests come when they end, so levels are drawn last.
 */
export class Levels {
  private readonly levels = new DefaultMap<(typeof KEYS)[number], Level>(() => new Level())
  /** Tokens of slots. */
  private readonly slots = new DefaultMap<number, CounterLine>((slot) => {
    const { tracks, writer } = this.context
    return new CounterLine(writer, tracks.add('slotTokens', { slot }), 'full')
  })

  constructor(private readonly context: TrackContext) {}

  /** `hasRow`: its slot has a row. */
  add(event: RequestEvent, hasRow: boolean): void {
    const { startNs, launchNs, endNs, slot, parts, inferred } = event
    const workNs = parts.length > 0 ? activeFromNs(event) : launchNs >= 0 ? launchNs : startNs
    if (workNs > startNs) this.levels.of('queueLength').add(startNs, workNs)
    if ((slot >= 0 || launchNs >= 0) && endNs > workNs) this.levels.of('slotsBusy').add(workNs, endNs)
    if (hasRow && (inferred & Inferred.Parts) !== 0 && isPlaced(inferred)) this.addParts(event)
  }

  finish(): void {
    const { tracks, writer } = this.context
    for (const key of KEYS) {
      const level = this.levels.get(key)
      if (!level) continue
      const track = tracks.add(key, {})
      level.each((atNs, height) => writer.counter(track, atNs, height))
    }
  }

  /** Of a request whose calls are not recorded. */
  private addParts({ slot, parts, endNs, promptTokens, generatedTokens, reusedTokens }: RequestEvent): void {
    for (const { what, startNs, endNs, tokens } of parts) {
      if ((what !== 'prefill' && what !== 'decode') || endNs <= startNs) continue
      const isPrompt = what === 'prefill'
      this.levels.of(isPrompt ? 'slotsInPrefill' : 'slotsInDecode').add(startNs, endNs)
      const rate = (tokens * 1e9) / (endNs - startNs)
      if (tokens > 0) this.levels.of(isPrompt ? 'promptRate' : 'answerRate').add(startNs, endNs, rate)
      if (isPrompt && reusedTokens >= 0) this.slots.of(slot).sample(startNs, reusedTokens)
      if (isPrompt && promptTokens >= 0) this.slots.of(slot).sample(endNs, promptTokens)
    }
    if (promptTokens >= 0 && generatedTokens > 0) this.slots.of(slot).sample(endNs, promptTokens + generatedTokens)
  }
}

/** How many intervals contain each time, or the sum of their weights. */
class Level {
  private count = 0
  private starts = new Float64Array(64)
  private ends = new Float64Array(64)
  private weights = new Float64Array(64)

  add(startNs: number, endNs: number, weight = 1): void {
    const at = this.count++
    if (at === this.starts.length) {
      this.starts = resized(this.starts, 2 * at)
      this.ends = resized(this.ends, 2 * at)
      this.weights = resized(this.weights, 2 * at)
    }
    this.starts[at] = startNs
    this.ends[at] = endNs
    this.weights[at] = weight
  }

  /** Calls back for each time at which an interval begins or ends, in order. */
  each(onStep: (atNs: number, height: number) => void): void {
    const { count, starts, ends, weights } = this
    const orderOf = (times: Float64Array) =>
      Uint32Array.from({ length: count }, (_, i) => i).sort((a, b) => times[a]! - times[b]!)
    const [byStart, byEnd] = [orderOf(starts), orderOf(ends)]
    let [begun, ended, height] = [0, 0, 0]
    while (ended < count) {
      const endNs = ends[byEnd[ended]!]!
      const atNs = begun < count ? Math.min(starts[byStart[begun]!]!, endNs) : endNs
      while (begun < count && starts[byStart[begun]!] === atNs) height += weights[byStart[begun++]!]!
      while (ended < count && ends[byEnd[ended]!] === atNs) height -= weights[byEnd[ended++]!]!
      if (begun === ended) height = 0 // differences of rates are not exact
      onStep(atNs, height)
    }
  }
}
