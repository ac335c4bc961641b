import type { ContextTimes } from './figures.ts'

type OfContext = Pick<ContextTimes, 'role' | 'calls_ns'>

/**
 * The llama_context whose calls are compared with each other: calls of several models have no common median or slope. A draft's tokens are those
 * of its target; of several other contexts, it is the one with the most time. Undefined without calls.
 */
export function mainContext<C extends OfContext>(contexts: readonly C[]): C | undefined {
  const [first, ...others] = contexts.filter(({ role }) => role !== 'draft')
  return first && others.reduce((most, one) => (one.calls_ns > most.calls_ns ? one : most), first)
}

/** ` of 2 contexts together` after a speed that is one of several; else empty. */
export function ofContexts(contexts: readonly (OfContext & Pick<ContextTimes, 'decode_tokens_per_s'>)[]): string {
  const decoding = contexts.filter((one) => one.role !== 'draft' && one.decode_tokens_per_s !== null)
  return decoding.length > 1 ? ` of ${decoding.length} contexts together` : ''
}
