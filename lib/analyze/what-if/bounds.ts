import { bytesOfType } from '../../model/ggml-types.ts'
import { type ModelCall, sumOf } from './calls.ts'
import { growsWithContext } from './context.ts'
import { between, type Factor, type PlanContext, SAME, times, wallOf } from './plan.ts'
import { type Setting, tokensAt } from './setting.ts'
import { hasExperts, hasWeights, isOfExperts, isQuantisable, tokensOf } from './weights.ts'

/** Each sequence reads its own part of a cache; it passes over those of the others, which takes up to this share of reading them, and half of it as a rule. */
const PASSED_OVER = 0.1
/** Reading the caches of several sequences may be slower or faster than that of one, by this share. */
const ATTENTION_ERROR = 0.2
/** Products of other numbers of experts may be slower or faster by this share: how their rows are divided among threads differs. */
const EXPERTS_ERROR = 0.15

/** The time of a group's steps with another setting, between bounds: nothing was measured with it. */
export function boundedFactor(i: number, now: Setting, then: Setting, context: PlanContext): Factor {
  const all: readonly Factor[] = [
    then.type === undefined ? SAME : typeFactor(i, then.type, context),
    then.sequences === now.sequences ? SAME : batchFactor(i, now, then, context),
    then.threads === now.threads ? SAME : threadsFactor(i, now, then, context),
    then.experts === undefined ? SAME : expertsFactor(i, then.experts, context),
  ]
  return all.reduce(times)
}

/** Between perfect scaling, of products down to what reading the weights takes at the bandwidth, and none. */
function threadsFactor(i: number, now: Setting, then: Setting, context: PlanContext): Factor {
  const group = context.model.groups[i]!
  const perfect = now.threads / then.threads
  if (hasWeights(group)) return between([Math.max(perfect, Math.min(leastShare(i, now, then, context), 1)), 1])
  if (growsWithContext(group)) return between([perfect, 1], perfect)
  // A row is computed by one thread; small steps are mostly fixed costs.
  const isDivided = tokensAt(group, then, context) >= Math.max(now.threads, then.threads)
  return isDivided ? between([perfect, 1], context.phase === 'prefill' ? perfect : undefined) : between([perfect, 1], 1)
}

/** Of decode between proportional to bytes, to elements, and the slowest type of the run; of prefill, where arithmetic counts, between the first two. */
function typeFactor(i: number, type: string, context: PlanContext): Factor {
  const group = context.model.groups[i]!
  if (!isQuantisable(group)) return SAME
  const elements = group.weight_columns
  const byBytes = bytesOfType(type, elements) / bytesOfType(group.type, elements)
  return context.phase === 'decode' ? between([byBytes, 1, byBytes * worstOf(i, context)]) : between([byBytes, 1], 1)
}

/** Of products between weights that are read once for all tokens, and proportional to tokens; of other steps by the line to the prompt. */
function batchFactor(i: number, now: Setting, then: Setting, context: PlanContext): Factor {
  const group = context.model.groups[i]!
  const perToken = then.sequences / now.sequences
  if (growsWithContext(group)) {
    const passed = PASSED_OVER * Math.max(then.sequences - now.sequences, 0)
    const bounds = [perToken * (1 - ATTENTION_ERROR), perToken * (1 + ATTENTION_ERROR) * (1 + passed)]
    return between(bounds, perToken * (1 + passed / 2))
  }
  const grown = grownBy(i, now, then, context)
  if (hasWeights(group)) return between([grown ?? 1, perToken])
  return grown === undefined ? between([1, perToken]) : between([Math.sqrt(grown), grown, grown ** 1.5], grown)
}

/**
 * Of products proportional to the experts that a token uses; of many tokens, which share them, down to half of the change. Of other work with their results
 * between that and none.
 */
function expertsFactor(i: number, experts: number, { model, phase }: PlanContext): Factor {
  const group = model.groups[i]!
  const used = model.groups.find(hasExperts)?.experts_used
  if (!used || !isOfExperts(group)) return SAME
  const times = experts / (group.experts_used ?? used)
  if (!hasExperts(group)) return between([1, times])
  const shared = phase === 'prefill' ? Math.sqrt(times) : times
  return between([shared * (1 - EXPERTS_ERROR), shared * (1 + EXPERTS_ERROR), times], times)
}

/** Time of a step in ns for each byte of its weights; undefined without weights. */
function nsPerByte(i: number, context: PlanContext): number | undefined {
  const { model, calls } = context
  const group = model.groups[i]!
  const ns = nsOfStep(i, calls, context)
  const bytes = bytesOfType(group.type, group.weight_columns * group.weight_rows)
  return hasWeights(group) && bytes > 0 && ns > 0 ? ns / bytes : undefined
}

function nsOfStep(i: number, calls: readonly ModelCall[], context: PlanContext): number {
  const steps = sumOf(calls.map(({ steps }) => steps[i]!))
  return steps > 0 ? sumOf(calls.map(wallOf(context, i))) / steps : 0
}

/** What the slowest type of the run takes for a byte, by what the group takes; at least 1. */
function worstOf(i: number, context: PlanContext): number {
  const { groups } = context.model
  const own = nsPerByte(i, context)
  // Small matrices are mostly fixed costs.
  const isLarge = (j: number) => 2 * groups[j]!.weight_elements >= groups[i]!.weight_elements
  const all = groups.flatMap((_, j) => (isLarge(j) ? (nsPerByte(j, context) ?? []) : []))
  return own === undefined ? 1 : Math.max(...all.map((ns) => ns / own), 1)
}

/** The share of its time that reading the weights of a group takes at least with the threads of `then`; 0: not known. */
function leastShare(i: number, now: Setting, then: Setting, context: PlanContext): number {
  const [before, after] = [now, then].map(({ threads }) => context.bandwidth?.(threads))
  const perByte = nsPerByte(i, context)
  if (!before || !after || perByte === undefined) return 0
  const bytesPerS = 1e9 / perByte
  // Faster than the memory: the weights are in caches.
  return bytesPerS > before ? 0 : bytesPerS / after
}

/** The factor by the line from the decode calls to those of the prompt; undefined without a prompt of more tokens. */
function grownBy(i: number, now: Setting, then: Setting, context: PlanContext): number | undefined {
  const { model, calls } = context
  const [prompt] = model.prefill
  const group = model.groups[i]!
  if (!prompt || group.block === 'LM head') return undefined
  const tokens = tokensOf(group, prompt)
  if (tokens <= Math.max(now.sequences, then.sequences)) return undefined
  const [one, many] = [nsOfStep(i, calls, context), nsOfStep(i, model.prefill, context)]
  if (one === 0 || many === 0) return undefined
  const slope = (many / one - 1) / (tokens - now.sequences)
  return Math.max(1 + slope * (then.sequences - now.sequences), Math.min(then.sequences / now.sequences, 1))
}
