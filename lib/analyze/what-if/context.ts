import type { StepGroup } from '../series/figures.ts'
import { cacheOf } from './attention.ts'
import { type ModelCall, sumOf, totalNs } from './calls.ts'
import { ofOtherLength } from './company.ts'
import { type Line, lineOf } from './lines.ts'
import { ATTENTION_ERROR, appliedKernels, movedAttention, promptAttention, promptFactor } from './measured.ts'
import {
  type PlanContext,
  type Planned,
  type Refusal,
  refuse,
  SAME,
  type Scenario,
  type Source,
  wallOf,
} from './plan.ts'
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
/** The same where both were measured: caches of a run are not those of the measurement. */
const MEASURED_ERROR = { attention: ATTENTION_ERROR, other: 0.1 }

/** Does the work of such steps grow with the context? Attention over the KV cache, which is no weight. */
export const growsWithContext = ({ op, weight_elements }: StepGroup): boolean =>
  op.startsWith('FLASH_ATTN') || op === 'SOFT_MAX' || (op === 'MUL_MAT' && weight_elements === 0)

const SIGN: Readonly<Record<Scenario, number>> = { low: -1, expected: 0, high: 1 }

/** A prompt of so many tokens, and decoding after it. */
export function withContext(tokens: number, context: PlanContext): Planned {
  return context.phase === 'decode' ? decodeAt(tokens, context) : promptOf(tokens, context)
}

/** The growth of a group by the run: in ns per unit of x, and x of a call after the change. Or by measured attention: a factor. */
type Growth =
  | { readonly group: number; readonly line: Line; readonly by: 'tokens' | 'cache' }
  | { readonly group: number; readonly factor: number; readonly by: 'measurement' }

/** What a group takes more at the other context, and its error, of a call. */
interface Added {
  readonly ns: number
  readonly errorNs: number
}

function decodeAt(tokens: number, context: PlanContext): Planned {
  const { model, calls, stateOf } = context
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
  const { kernels } = appliedKernels(settingOf(context), settingOf(context), context)
  const found = growing.map((group) => growthOf(group, moved, { ...context, kernels }))
  const refused = found.find((growth) => 'refused' in growth)
  if (refused) return refused
  const growths = found.filter((growth) => 'by' in growth)
  const doublings = Math.max(Math.log2(target / longest), 0)
  const cacheAfter = cacheOf(calls)
  const addedOf = (call: ModelCall, growth: Growth): Added => {
    if (growth.by === 'measurement') {
      const ns = wallOf(context, growth.group)(call) * (growth.factor - 1)
      return { ns, errorNs: ATTENTION_ERROR * Math.abs(ns) }
    }
    const { line, by } = growth
    const units = by === 'tokens' ? moved : cacheAfter(call, call.contextTokens + moved) - call.cacheTokens
    const ns = line.slope * units
    return { ns, errorNs: Z * line.slopeError * Math.abs(units) + PER_DOUBLING * doublings * Math.abs(ns) }
  }
  const ofFirst = growths.map((growth) => addedOf(first!, growth))
  const [addedNs, errorNs] = [sumOf(ofFirst.map(({ ns }) => ns)), sumOf(ofFirst.map((added) => added.errorNs))]
  const meanNs = sumOf(calls.map((call) => totalNs(stateOf(call)))) / calls.length
  if (meanNs + addedNs <= 0 || errorNs > ERROR_MAX * (meanNs + addedNs))
    return refuse(
      `the growth with the context is not clear in the run, whose decode calls have ${Math.min(...contexts)} to ${longest} tokens: record a longer one, or measure attention (peaks <log> --types … --context ${tokens})`,
    )
  const beyond = doublings > 0 ? `, beyond its longest context by ${(target / longest).toFixed(1)} times` : ''
  const isMeasured = growths.every(({ by }) => by === 'measurement')
  const by = isMeasured ? 'growth of attention as measured (peaks --types)' : 'growth of attention in the run'
  return {
    basis: [
      `decode calls at ${tokens} to ${target} tokens of context: ${by}, at ${Math.min(...contexts)} to ${longest}${beyond}`,
    ],
    sources: ['attention'],
    apply: (call, state, scenarioOf) => {
      for (const growth of growths) {
        const added = addedOf(call, growth)
        const ns = state.compute[growth.group]! + added.ns + SIGN[scenarioOf('attention')] * added.errorNs
        state.compute[growth.group] = Math.max(ns, 0)
      }
    },
  }
}

/** By what was measured, else by the run. Flash attention skips masked places; other ops compute all of the cache that they read. */
function growthOf(group: number, moved: number, context: PlanContext): Growth | Refusal {
  const { calls, model } = context
  const { op } = model.groups[group]!
  const factor = movedAttention(group, moved, context)
  if (factor !== undefined) return { group, factor, by: 'measurement' }
  const ys = calls.map(wallOf(context, group))
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
  const grown = { attention: seen(tokens) / seen(prompt), other: tokens / prompt }
  const growing = new Set(model.groups.flatMap((group, i) => (growsWithContext(group) ? [i] : [])))
  const { kernels, ratio } = appliedKernels(settingOf(context), settingOf(context), context)
  const applied = { ...context, kernels }
  const rest = isOnlyChange(context) ? ofOtherLength({ ratio }, context) : SAME
  const measured = model.groups.map((_, i) =>
    growing.has(i) ? promptAttention(i, tokens, applied) : promptFactor(i, tokens, applied),
  )
  const named = (what: string, isOf: (i: number) => boolean) =>
    measured.some((factor, i) => factor !== undefined && isOf(i)) ? [what] : []
  const areMeasured = [...named('products', (i) => !growing.has(i)), ...named('attention', (i) => growing.has(i))]
  return {
    basis: [
      `a prompt of ${tokens} tokens from one of ${prompt}: attention by the positions that each token sees, other work by tokens${areMeasured.length === 0 ? '' : `; ${areMeasured.join(' and ')} as measured (peaks --types)`}`,
    ],
    sources: ['attention', 'products', 'steps', 'unusual', 'outside'],
    apply: (_, state, scenarioOf) => {
      const factor = (source: Source, expected: number, error: number) =>
        Math.max(expected * (1 + SIGN[scenarioOf(source)] * error * Math.min(Math.abs(Math.log2(expected)), 1)), 0)
      for (const [i, group] of model.groups.entries()) {
        if (isOfOutputs(group, i, context)) continue
        const [what, known] = [growing.has(i) ? 'attention' : 'other', measured[i]] as const
        const source = what === 'attention' ? 'attention' : known === undefined ? 'steps' : 'products'
        const error = known === undefined ? PROMPT_ERROR[what] : MEASURED_ERROR[what]
        const times = factor(source, known ?? grown[what], error)
        const by = source === 'products' ? times * rest[scenarioOf('unusual')] : times
        state.compute[i]! *= by
        state.overhead[i]! *= by
      }
      state.outsideNs *= factor('outside', grown.other, PROMPT_ERROR.other)
    },
  }
}

/** Of products, those of settings count else. */
const isOnlyChange = ({ changes: { threads, type, experts } }: PlanContext) =>
  [threads, type, experts].every((change) => change === undefined)

/** Does the last matrix compute hardly more in the prompt than in decode? */
function isOfOutputs({ block }: StepGroup, i: number, { model, calls, stateOf }: PlanContext): boolean {
  if (block !== 'LM head' || model.decode.length === 0) return false
  const mean = (calls: readonly ModelCall[]) => sumOf(calls.map((call) => stateOf(call).compute[i]!)) / calls.length
  return mean(calls) < (calls[0]!.tokens / 2) * mean(model.decode)
}
