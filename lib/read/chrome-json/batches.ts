import type { Phase } from '../../model/events.ts'

/** What a serving engine ran at once, as its annotation tells. */
export interface EngineBatch {
  readonly phase: Phase
  /** All tokens that were computed, or -1. */
  readonly tokens: number
  /** All requests in it. */
  readonly requests: number
  /** Requests and tokens, for the annotation's arguments. */
  readonly counts: Readonly<Record<string, number>>
}

/** `execute_32_context_0(sq0sk0…)_generation_32(sq32sk55086…)`, `execute_context_1(888_788544)_generation_0(0)` */
const COUNTED = /^execute_(?:(\d+)_)?context_(\d+)\(([^)]*)\)_generation_(\d+)\(([^)]*)\)/
/** `execute_new_2_cached_30`: of requests only. */
const REQUESTS = /^execute_new_(\d+)_cached_(\d+)/

/**
 * Understands the annotations by which vLLM and SGLang announce each step: context requests are being prefilled,
 * generation requests decoded; sq is the sum of query lengths, sk that of the keys that they attend to.
 */
export function engineBatchOf(name: string): EngineBatch | undefined {
  const counted = COUNTED.exec(name)
  if (counted) {
    const [, all, contexts, context, generations, generation] = counted
    const counts = { ...countsOf('context', contexts!, context!), ...countsOf('generation', generations!, generation!) }
    const told = (counts['context_tokens'] ?? 0) + (counts['generation_tokens'] ?? 0)
    const requests = Number(contexts) + Number(generations)
    return { phase: Number(contexts) > 0 ? 'prefill' : 'decode', tokens: Number(all ?? told), requests, counts }
  }
  const [, fresh, cached] = REQUESTS.exec(name) ?? []
  if (fresh === undefined) return undefined
  const counts = { new_requests: Number(fresh), cached_requests: Number(cached) }
  return {
    phase: Number(fresh) > 0 ? 'prefill' : 'decode',
    tokens: -1,
    requests: Number(fresh) + Number(cached),
    counts,
  }
}

function countsOf(what: string, requests: string, sums: string): Record<string, number> {
  const tokens = /^(?:sq)?(\d+)/.exec(sums)?.[1]
  const keys = /^sq\d+sk(\d+)/.exec(sums)?.[1]
  return {
    [`${what}_requests`]: Number(requests),
    ...(tokens !== undefined && { [`${what}_tokens`]: Number(tokens) }),
    ...(keys !== undefined && { [`${what}_kv_tokens`]: Number(keys) }),
  }
}
