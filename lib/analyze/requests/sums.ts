import { DefaultMap } from '../../model/default-map.ts'
import type { RequestEvent } from '../../model/events.ts'
import { hasTimes } from '../../model/requests/durations.ts'
import type { LostRow, RequestRow, ReuseFigures, SlotFigures, StallFigures, StallPair } from './figures.ts'
import { addParts, noParts, type PartSums } from './parts.ts'
import { stalledBy } from './rows.ts'
import type { Cause } from './stalls.ts'

/** Pairs of requests that are listed. */
const PAIRS_MAX = 50
/** Requests that lost most are listed. */
const LOST_MAX = 20
/** Slots with separate figures; the others count together, as slot -1. */
const SLOTS_MAX = 256

interface OfSlot {
  requests: number
  busyNs: number | null
  prompt: number
  reused: number
  generated: number
  readonly parts: PartSums
}

/** Sums by slot. */
export class Slots {
  generatedTokens = 0
  private readonly slots = new DefaultMap<number, OfSlot>(() => {
    return { requests: 0, busyNs: null, prompt: 0, reused: 0, generated: 0, parts: noParts() }
  })

  add(event: RequestEvent, row: RequestRow): void {
    const { slot, launchNs, startNs, endNs } = event
    this.generatedTokens += row.generated_tokens ?? 0
    if (slot < 0) return
    const ofSlot = this.slots.of(this.slots.has(slot) || this.slots.size < SLOTS_MAX ? slot : -1)
    ofSlot.requests++
    if (hasTimes(event)) ofSlot.busyNs = (ofSlot.busyNs ?? 0) + endNs - (launchNs < 0 ? startNs : launchNs)
    ofSlot.prompt += row.prompt_tokens ?? 0
    ofSlot.reused += row.reused_tokens ?? 0
    ofSlot.generated += row.generated_tokens ?? 0
    if (row.parts) addParts(ofSlot.parts, row.parts)
  }

  figures(): SlotFigures[] {
    return [...this.slots]
      .sort(([a], [b]) => a - b)
      .map(([slot, { requests, busyNs, prompt, reused, generated, parts }]) => ({
        ...{ slot, requests, busy_ns: busyNs, prompt_tokens: prompt, reused_tokens: reused },
        ...{ generated_tokens: generated, parts },
      }))
  }
}

/** Time that requests waited for others, and the pairs of which one waited longest for the other. */
export class Stalls {
  private readonly pairs: StallPair[] = []
  private byPromptsNs = 0
  private inferredNs = 0

  add({ id, task, latency_ns, stalled_inferred_ns }: RequestRow, causes: readonly Cause[]): void {
    const { pairs } = this
    this.inferredNs += stalled_inferred_ns
    for (const { prefillNs } of causes) this.byPromptsNs += prefillNs
    for (const by of stalledBy(causes, latency_ns ?? 0)) pairs.push({ stalled_id: id, stalled_task: task, ...by })
    if (pairs.length > 2 * PAIRS_MAX) this.cut()
  }

  figures(): StallFigures {
    this.cut()
    return { by_prompts_ns: this.byPromptsNs, inferred_ns: this.inferredNs, pairs: this.pairs }
  }

  private cut(): void {
    this.pairs.sort((a, b) => b.time_ns - a.time_ns)
    this.pairs.length = Math.min(this.pairs.length, PAIRS_MAX)
  }
}

/** Sums of reused tokens, and of those processed again. */
export class ReuseSums {
  private readonly most: LostRow[] = []
  private readonly sums = { requests: 0, prompt: 0, reused: 0, lostRequests: 0, again: 0, lostNs: 0 }

  add({ id, task, prompt_tokens, reused_tokens, latency_ns, lost }: RequestRow): void {
    const { sums } = this
    if (prompt_tokens !== null && reused_tokens !== null) {
      sums.requests++
      sums.prompt += prompt_tokens
      sums.reused += reused_tokens
    }
    if (!lost || lost.processed_again === 0) return
    sums.lostRequests++
    sums.again += lost.processed_again
    sums.lostNs += lost.time_ns ?? 0
    const { most } = this
    most.push({ id, task, prompt_tokens: prompt_tokens ?? 0, latency_ns, ...lost })
    most.sort((a, b) => (b.time_ns ?? 0) - (a.time_ns ?? 0) || b.processed_again - a.processed_again)
    most.length = Math.min(most.length, LOST_MAX)
  }

  figures(): ReuseFigures {
    const { requests, prompt, reused, lostRequests, again, lostNs } = this.sums
    return {
      ...{ requests, prompt_tokens: prompt, reused_tokens: reused, reused_share: prompt > 0 ? reused / prompt : null },
      ...{ lost_requests: lostRequests, processed_again: again, lost_ns: lostNs, most_lost: this.most },
    }
  }
}
