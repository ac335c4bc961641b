import { type Phase, UNKNOWN } from '../../../lib/core.ts'
import type { EventInput, TraceEvent } from '../../../lib/index.ts'

/** A call: for each layer its tokens' experts, and how long its product takes on two workers, in ns. */
export interface MadeCall {
  readonly phase: Phase
  readonly layers: readonly {
    readonly ids: readonly (readonly number[])[]
    readonly ns: number
    readonly faults: number
  }[]
}

/** Of each layer. */
export const EXPERTS = 6
/** Tokens of a record: a larger batch comes in several at the same time. */
const PART = 3
export const EXPERT_BYTES = 100

/** A log of these calls: each layer has one product with experts, whose choice is in a tensor. */
export function logOf(calls: readonly MadeCall[]): EventInput {
  return {
    name: 'made',
    *events(names) {
      const events: TraceEvent[] = [
        { kind: 'input', format: 'made', clock: 'MONOTONIC', originNs: 0n, attributes: {} },
        { kind: 'counted', index: 0, name: names.id('major-faults'), unit: 'count' },
      ]
      const layers = calls[0]?.layers.length ?? 0
      for (let layer = 0; layer < layers; layer++) {
        const ids = { choice: 3 * layer, weight: 3 * layer + 1, product: 3 * layer + 2 }
        const of = (id: number, name: string) => ({ ...UNKNOWN.tensor, id, name: names.id(name), layer })
        const ne = [1, 1, EXPERTS, 1]
        events.push(of(ids.choice, `ffn_moe_topk-${layer}`))
        events.push({ ...of(ids.weight, `blk.${layer}.ffn_up_exps.weight`), ne, sizeBytes: EXPERTS * EXPERT_BYTES })
        const sources = [ids.weight, ids.choice, ids.choice]
        events.push({ ...of(ids.product, `ffn_moe_up-${layer}`), op: names.id('MUL_MAT_ID'), sources })
      }
      let at = 1000
      for (const [call, { phase, layers }] of calls.entries()) {
        const startNs = at
        for (const [layer, { ids, ns, faults }] of layers.entries()) {
          for (let i = 0; i < ids.length; i += PART) {
            const part = ids.slice(i, i + PART)
            const all = Int32Array.from(part.flat())
            const k = part[0]!.length
            events.push({ kind: 'experts', tensor: 3 * layer, call, atNs: at, tokens: part.length, k, ids: all })
          }
          for (const worker of [0, 1]) {
            // Worker 1 begins earlier, and counts half of the faults.
            const times = { startNs: at - worker, endNs: at + ns - 5, waitEndNs: at + ns }
            const who = { ...UNKNOWN.operator, tensor: 3 * layer + 2, worker, tid: 10 + worker, call }
            events.push({ ...who, ...times, counts: [worker === 0 ? faults : 0] })
          }
          at += ns + 10
        }
        const tokens = layers[0]?.ids.length ?? 0
        events.push({ ...UNKNOWN.token, call, phase, tokens, startNs, endNs: at, tid: 10 })
        at += 100
      }
      yield events
    },
  }
}
