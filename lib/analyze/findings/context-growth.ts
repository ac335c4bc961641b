import { plural } from '../../model/units.ts'
import type { ContextSlope } from '../analysis.ts'
import { CLEAR } from '../calls/context-slopes.ts'
import { either } from './program.ts'
import { found, type Limit, type Looked, type Rule } from './rule.ts'
import { number, percent, shares } from './words.ts'

const GROWTH: Limit = {
  value: 0.1,
  why: 'a tenth of the time of all calls is beyond what the shortest context takes: less is within what a CPU changes its clock by',
}
const ERRORS: Limit = {
  value: CLEAR.errors,
  why: 'growth of four standard errors happens by chance once in 15 000 runs',
}
const POINTS: Limit = { value: CLEAR.points, why: 'a line through fewer calls says little' }

const ATTENTION: Limit = {
  value: 0.5,
  why: 'the work of attention alone grows with the context: where all operators get slower, the machine does',
}
/** Attention, without the products with weights before and after it: what reads the KV cache, by llama.cpp's names. */
const readsCache = ({ op, role }: { readonly op: string; readonly role: string }) =>
  /^(FLASH_ATTN_EXT|SOFT_MAX)/.test(op) || /^(kq|cache_)/.test(role)

/** Options of the types of the KV cache. */
const TYPES = ['-ctk', '--cache-type-k', '-ctv', '--cache-type-v']

const FASTER: Limit = {
  value: 0.05,
  why: 'of the growth: parts that get faster by less are within the scatter of a line',
}

/** Decoding gets slower with the length of the context. */
export const contextGrowth: Rule = {
  id: 'context-growth',
  title: 'The time per token grows with the length of the context',
  limits: { growth: GROWTH, errors: ERRORS, points: POINTS, attention: ATTENTION, faster: FASTER },
  advice: (program) => {
    const ways = either(
      program.computes('FLASH_ATTN_EXT') ? undefined : 'flash attention (-fa)',
      program.unless(TYPES, 'a KV cache of a smaller type (-ctk, -ctv)'),
      'a model with fewer KV heads or a sliding window',
    )
    return `Attention reads the whole KV cache for each token. Less is read by ${ways}`
  },
  look: (analysis) => (analysis.calls.slope ? lookAt(analysis.calls.slope) : []),
}

/** What the growth comes from: shares of all that grows, which is more than TPOT grows where other parts get faster. */
function causesOf({ tpot, between_calls, operators }: ContextSlope): string {
  const { ms_per_1000_tokens: growth } = tpot
  const roles = operators?.parts.filter(({ what, ms_per_1000_tokens: value }) => what === 'role' && value > 0) ?? []
  if (!operators || roles.length === 0 || growth <= 0) return ''
  const slopes = [between_calls, ...operators.parts].map(({ ms_per_1000_tokens: value }) => value)
  const grown = slopes.reduce((sum, value) => sum + Math.max(0, value), 0)
  const parts = roles.map(
    ({ role, op, ms_per_1000_tokens: value }) => [role === '' ? op : role, value / grown] as const,
  )
  if (grown - growth < FASTER.value * growth) return `: ${shares(parts)}`
  return `: ${shares(parts)} of ${number(grown)} ms, and ${number(grown - growth)} ms less in what gets faster`
}

function lookAt(slope: ContextSlope): Looked[] {
  const { tpot, points, from_tokens, to_tokens, is_clear, operators, call } = slope
  const { ms_per_1000_tokens: growth, standard_error_ms: error, at_0_ns, mean_ns, r_squared } = tpot
  const range = `from ${Math.round(from_tokens)} to ${plural(Math.round(to_tokens), 'token')} of context`
  if (!is_clear || mean_ns === 0) return [{ figure: `TPOT does not clearly change ${range}` }]
  const spanNs = growth * 1e3 * (to_tokens - from_tokens)
  // Of a call, on average: few calls may have a long context.
  const grownNs = mean_ns - (at_0_ns + growth * 1e3 * from_tokens)
  const by = operators?.parts.filter(({ what, ms_per_1000_tokens: value }) => what === 'role' && value > 0) ?? []
  const sentence = `TPOT grows ${number(growth)} ms per 1 000 tokens${causesOf(slope)} (${percent(spanNs / mean_ns)} of its mean ${range})`
  const grown = by.reduce((sum, part) => sum + part.ms_per_1000_tokens, 0)
  const byAttention = by.reduce((sum, part) => sum + (readsCache(part) ? part.ms_per_1000_tokens : 0), 0)
  const isOfContext = operators === null || byAttention >= ATTENTION.value * grown
  if (!isOfContext || grownNs < GROWTH.value * mean_ns) {
    return [{ figure: `TPOT changes by ${percent(spanNs / mean_ns)} of its mean ${range}` }]
  }
  const isGood = (r_squared ?? 0) >= 0.5
  return found(sentence, {
    time_ns: grownNs * points,
    confidence: isGood ? 'high' : 'medium',
    confidence_reason: `a line explains ${percent(r_squared ?? 0)} of the variance of ${points} calls (R²)`,
    evidence: {
      ms_per_1000_tokens: growth,
      standard_error_ms: error,
      tpot_ns: mean_ns,
      call_ms_per_1000_tokens: call.ms_per_1000_tokens,
      from_tokens,
      to_tokens,
      points,
    },
    check: { command: 'ggml2perfetto stats <logs>', evidence: 'ms_per_1000_tokens' },
  })
}
