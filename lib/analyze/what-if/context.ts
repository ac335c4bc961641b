import type { StepGroup } from '../series/figures.ts'
import { type ModelCall, type State, sumOf, totalNs } from './calls.ts'
import { type Line, lineOf } from './lines.ts'
import { appliedKernels, promptFactor } from './measured.ts'
import { type PlanContext, type Planned, type Refusal, refuse, type Scenario } from './plan.ts'
import { settingOf } from './setting.ts'

/** Of a normal error, 5 % are beyond so many standard errors on each side. */
const Z = 1.645
/** A context is predicted up to so many times the longest one of the run. */
const TIMES_MAX = 8
/** Growth beyond the longest context of the run is uncertain by this share for each doubling: the cache of the CPU may end there. */
const PER_DOUBLING = 0.1
/** An error of the growth that is a larger share of the time than this says nothing. */
const ERROR_MAX = 0.5
/** A shorter prompt is mostly fixed costs. */
const PROMPT_MIN = 32
/** Without prompts of several lengths: an uncertainty of what is added, of attention and of other work. */
const PROMPT_ERROR = { attention: 0.25, other: 0.1 }

/** Does the work of such steps grow with the context? Attention over the KV cache, which is no weight. */
export const growsWithContext = ({ op, weight_elements }: StepGroup): boolean =>
  op.startsWith('FLASH_ATTN') || op === 'SOFT_MAX' || (op === 'MUL_MAT' && weight_elements === 0)

/** A prompt of so many tokens, and decoding after it. */
export function withContext(tokens: number, context: PlanContext): Planned {
  return context.phase === 'decode' ? decodeAt(tokens, context) : promptOf(tokens, context)
}

/** The growth of a group, in ns per unit of x; and x of a call after the change. */
interface Growth {
  readonly group: number
  readonly line: Line
  readonly by: 'tokens' | 'cache'
}

function decodeAt(tokens: number, { model, calls, stateOf }: PlanContext): Planned {
  const [first] = calls
  const moved = tokens - first!.contextTokens
  if (moved === 0) return 'unchanged'
  const contexts = calls.map(({ contextTokens }) => contextTokens)
  const longest = Math.max(...contexts)
  const target = longest + moved
  if (target > TIMES_MAX * longest)
    return refuse(
      `a context of ${target} tokens is more than ${TIMES_MAX} times the longest one of the run, ${longest} tokens`,
    )
  const growing = model.groups.flatMap((group, i) => (growsWithContext(group) ? [i] : []))
  if (growing.length === 0) return refuse('no operators of attention were recorded')
  const found = growing.map((group) => growthOf(group, model.groups[group]!, calls, stateOf))
  const refused = found.find((growth) => 'refused' in growth)
  if (refused) return refused
  const growths = found.filter((growth) => 'line' in growth)
  const cacheAfter = cacheOf(calls)
  const deltaOf = (call: ModelCall, by: Growth['by']) =>
    by === 'tokens' ? moved : cacheAfter(call, call.contextTokens + moved) - call.cacheTokens
  const addedNs = sumOf(growths.map(({ line, by }) => line.slope * deltaOf(first!, by)))
  const doublings = Math.max(Math.log2(target / longest), 0)
  const errorNs =
    Z * sumOf(growths.map(({ line, by }) => line.slopeError * Math.abs(deltaOf(first!, by)))) +
    PER_DOUBLING * doublings * Math.abs(addedNs)
  const meanNs = sumOf(calls.map((call) => totalNs(stateOf(call)))) / calls.length
  if (meanNs + addedNs <= 0 || errorNs > ERROR_MAX * (meanNs + addedNs))
    return refuse(
      `the growth with the context is not clear in the run, whose decode calls have ${Math.min(...contexts)} to ${longest} tokens: record a longer one`,
    )
  const shareOf: Record<Scenario, number> = { low: -errorNs, expected: 0, high: errorNs }
  const beyond = doublings > 0 ? `, beyond its longest context by ${(target / longest).toFixed(1)} times` : ''
  return {
    basis: [
      `decode calls at ${tokens} to ${target} tokens of context: growth of attention in the run, at ${Math.min(...contexts)} to ${longest}${beyond}`,
    ],
    apply: (call, state, scenario) => {
      const byGrowth = growths.map(({ line, by }) => line.slope * deltaOf(call, by))
      const sum = sumOf(byGrowth.map(Math.abs))
      for (const [i, { group }] of growths.entries()) {
        const share = sum > 0 ? Math.abs(byGrowth[i]!) / sum : 1 / growths.length
        const ns = state.compute[group]! + byGrowth[i]! + shareOf[scenario] * share
        state.compute[group] = Math.max(ns, 0)
      }
    },
  }
}

/** Flash attention skips masked places; other ops compute all of the cache that they read. */
function growthOf(
  group: number,
  { op }: StepGroup,
  calls: readonly ModelCall[],
  stateOf: (call: ModelCall) => State,
): Growth | Refusal {
  const ys = calls.map((call) => stateOf(call).compute[group]! + stateOf(call).overhead[group]!)
  const byCache = lineOf(
    calls.map(({ cacheTokens }) => cacheTokens),
    ys,
  )
  const byTokens = lineOf(
    calls.map(({ contextTokens }) => contextTokens),
    ys,
  )
  const isFlash = op.startsWith('FLASH_ATTN')
  if (!isFlash && byCache.steps < 2)
    return refuse(
      `attention reads ${calls[0]!.cacheTokens} places of the cache in all decode calls: a run whose context passes a multiple of that is necessary`,
    )
  if (isFlash && byTokens.steps < 3) return refuse('all decode calls have the same context')
  const isByCache = !isFlash || (byCache.steps > 2 && byCache.squares < byTokens.squares)
  return isByCache ? { group, line: byCache, by: 'cache' } : { group, line: byTokens, by: 'tokens' }
}

/** The places of the cache at a context: llama.cpp rounds them up. */
function cacheOf(calls: readonly ModelCall[]): (call: ModelCall, tokens: number) => number {
  const granularity = [256, 32, 1].find((size) => calls.every(({ cacheTokens }) => cacheTokens % size === 0))!
  const rounded = (tokens: number) => Math.ceil((tokens + 1) / granularity) * granularity
  return ({ cacheTokens, contextTokens }, tokens) => (cacheTokens / rounded(contextTokens)) * rounded(tokens)
}

/** The time of a prompt: attention by positions that its tokens see, all other work by tokens, but the last matrix where only the last token has outputs. */
function promptOf(tokens: number, context: PlanContext): Planned {
  const { model, calls } = context
  const { sequences } = calls[0]!
  const prompt = sumOf(calls.map((call) => call.tokens)) / sequences
  if (tokens === prompt) return 'unchanged'
  if (calls[0]!.contextTokens > 0) return refuse('the prompt of the run does not begin its context')
  if (prompt < PROMPT_MIN)
    return refuse(`a prompt of ${prompt} tokens is mostly fixed costs; at least ${PROMPT_MIN} are necessary`)
  if (tokens > TIMES_MAX * prompt)
    return refuse(`a prompt of ${tokens} tokens is more than ${TIMES_MAX} times that of the run, ${prompt} tokens`)
  const seen = (length: number) => (length * (length + 1)) / 2
  const by = { attention: seen(tokens) / seen(prompt), other: tokens / prompt }
  const growing = new Set(model.groups.flatMap((group, i) => (growsWithContext(group) ? [i] : [])))
  const sign: Record<Scenario, number> = { low: -1, expected: 0, high: 1 }
  const { kernels } = appliedKernels(settingOf(context), settingOf(context), context)
  const measured = model.groups.map((_, i) => promptFactor(i, tokens, { ...context, kernels }))
  const arePerToken = measured.every((factor) => factor === undefined)
  return {
    basis: [
      `a prompt of ${tokens} tokens from one of ${prompt}: attention by the positions that each token sees, ${arePerToken ? '' : 'products as measured (peaks --types), '}other work by tokens`,
    ],
    apply: (_, state, scenario) => {
      const factor = (what: 'attention' | 'other', expected = by[what]) => {
        const error = PROMPT_ERROR[what] * Math.min(Math.abs(Math.log2(by[what])), 1)
        return Math.max(expected * (1 + sign[scenario] * error), 0)
      }
      for (const [i, group] of model.groups.entries()) {
        const times = isOfOutputs(group, i, context)
          ? 1
          : growing.has(i)
            ? factor('attention')
            : factor('other', measured[i])
        state.compute[i]! *= times
        state.overhead[i]! *= times
      }
      state.outsideNs *= factor('other')
    },
  }
}

/** Does the last matrix compute hardly more in the prompt than in decode? */
function isOfOutputs({ block }: StepGroup, i: number, { model, calls, stateOf }: PlanContext): boolean {
  if (block !== 'LM head' || model.decode.length === 0) return false
  const mean = (calls: readonly ModelCall[]) => sumOf(calls.map((call) => stateOf(call).compute[i]!)) / calls.length
  return mean(calls) < (calls[0]!.tokens / 2) * mean(model.decode)
}
