import { afterAlone, keptOf, ofSequences } from './alone.ts'
import { decodeAttentionNs, promptAttentionNs } from './attention.ts'
import { sumOf } from './calls.ts'
import { type KernelTimes, type Measured, productTime } from './kernels.ts'
import { type Factor, type PlanContext, type Uncertain, wallOf } from './plan.ts'
import { describe, type Setting, settingOf, tokensAt, typicalOf } from './setting.ts'
import { bytesOfCall, expertsOf, hasAttention, hasExperts, isQuantisable, typeOf, UBATCH } from './weights.ts'

/**
 * What was measured of products may differ from that in the run by this share; and, of each shape, by what rounds of its measurement differ.
 */
const ERROR = 0.08
/** The same of measured attention. */
export const ATTENTION_ERROR = 0.2
/** A run whose products take so many times what was measured, or a part as small, computes them otherwise. */
const UNLIKE = 2.5
/** The same of attention, which is short of a short context, so that much of its time is what is added. */
const ATTENTION_UNLIKE = 4

/** The measured products that apply to a run; the sentences say why none do, or where they are from. */
export interface Applied {
  readonly kernels: KernelTimes | undefined
  /** Time of the products of the run by what was measured; undefined: none was. */
  readonly ratio: number | undefined
  readonly source: string
  readonly basis: readonly string[]
}

/** The time that was measured of a product of a group; undefined where it was not. */
function measuredTime(
  i: number,
  setting: Setting,
  context: PlanContext,
  kernels: KernelTimes,
  tokens = tokensAt(context.model.groups[i]!, setting, context),
): Measured | undefined {
  const group = context.model.groups[i]!
  const { weight_columns: columns, weight_rows: rows } = group
  const { type, threads, experts } = setting
  // Of experts, more are read where a token uses more; what else is read makes no difference to a product.
  const bytes = bytesOfCall(context.model, typicalOf(context), {
    type,
    experts: hasExperts(group) ? experts : undefined,
  })
  const matrix = { type: typeOf(group, type), columns, rows, ...expertsOf(group, experts) }
  return productTime(kernels, {
    ...matrix,
    tokens,
    threads,
    bytes,
    memory: context.memoryOf(matrix.type, hasExperts(group)),
  })
}

/** What was measured; and how many times as much products take in the run, where that counts. */
export interface Measures {
  readonly kernels: KernelTimes
  readonly ratio: number | undefined
}

/** The time of a group's steps with another setting by what was measured; undefined where it was not. */
export function measuredFactor(
  i: number,
  now: Setting,
  then: Setting,
  context: PlanContext,
  { kernels, ratio }: Measures,
): Uncertain | undefined {
  const { model } = context
  const group = model.groups[i]!
  if (hasAttention(group)) return attentionFactor(i, now, then, context, kernels)
  if (!isQuantisable(group)) return undefined
  const [before, after] = [now, then].map((setting) => measuredTime(i, setting, context, kernels))
  if (!before || !after) return undefined
  const run = sumOf(context.calls.map(wallOf(context, i))) / stepsOf(i, now, context)
  const times = { run, before: before.ns, after: after.ns }
  const { low, expected, high } =
    ratio === undefined || run === 0
      ? sameOf(after.ns / before.ns)
      : afterAlone(times, ofSequences(keptOf(ratio), sequencesOf(now, then, context)))
  return [
    ['products', aroundFactor(expected, ERROR)],
    [`rounds ${group.weight_columns}x${group.weight_rows}`, aroundFactor(1, Math.max(before.error, after.error))],
    ['unusual', { low: low / expected, expected: 1, high: high / expected }],
  ]
}

const sameOf = (factor: number): Factor => ({ low: factor, expected: factor, high: factor })

/** How many times as many sequences decode calls have after a change: each has inputs, results and a cache of its own. */
const sequencesOf = (now: Setting, then: Setting, { phase }: PlanContext): number =>
  phase === 'decode' ? then.sequences / now.sequences : 1

/** Steps of a group in the calls, of products as many as compute all of its tokens: the last layer of a prompt computes most for those with outputs only. */
function stepsOf(i: number, setting: Setting, context: PlanContext): number {
  const { calls, model, phase } = context
  const tokens = sumOf(calls.map(({ stepTokens }) => stepTokens[i]!))
  const isCounted = phase === 'prefill' && tokens > 0
  return isCounted ? tokens / tokensAt(model.groups[i]!, setting, context) : sumOf(calls.map(({ steps }) => steps[i]!))
}

const aroundFactor = (factor: number, error: number): Factor => ({
  low: factor / (1 + error),
  expected: factor,
  high: factor * (1 + error),
})

/**
 * The time of attention after a change, by that before it; undefined where one was not measured, or where the run takes another time. `times`: what is
 * added to what was measured is so many times as much.
 */
function attentionAfter(
  i: number,
  context: PlanContext,
  [before, after]: readonly (number | undefined)[],
  times = 1,
): number | undefined {
  if (before === undefined || after === undefined) return undefined
  const run = stepNs(i, context)
  const ratio = run / before
  return isAlike(ratio, ATTENTION_UNLIKE) ? afterAlone({ run, before, after }, keptOf(1), times).expected : undefined
}

const isAlike = (ratio: number, most = UNLIKE) => ratio <= most && ratio >= 1 / UNLIKE

/** The time of a step of a group in the run; of a prompt, with all its calls. */
function stepNs(i: number, context: PlanContext): number {
  const { calls, phase, model } = context
  const steps = sumOf(calls.map(({ steps }) => steps[i]!))
  const layers = phase === 'decode' ? steps : (model.decode[0]?.steps[i] ?? steps)
  return layers > 0 ? sumOf(calls.map(wallOf(context, i))) / layers : 0
}

function attentionFactor(
  i: number,
  now: Setting,
  then: Setting,
  context: PlanContext,
  kernels: KernelTimes,
): Uncertain | undefined {
  const { model, phase } = context
  const both = [now, then].map(({ threads, sequences }) =>
    phase === 'decode'
      ? decodeAttentionNs(i, model, kernels, { threads, moved: 0, sequences })
      : promptAttentionNs(i, model, kernels, { threads }),
  )
  const factor = attentionAfter(i, context, both, (now.threads / then.threads) * sequencesOf(now, then, context))
  return factor === undefined ? undefined : [['attention', aroundFactor(factor, ATTENTION_ERROR)]]
}

/** The time of a group's attention with a context that is moved by so many tokens, by that in the run; undefined where it was not measured. */
export function movedAttention(i: number, moved: number, context: PlanContext): number | undefined {
  const { model, kernels } = context
  const { threads } = settingOf(context)
  const nsOf = (moved: number) => kernels && decodeAttentionNs(i, model, kernels, { threads, moved })
  return attentionAfter(i, context, [nsOf(0), nsOf(moved)])
}

/** The same of a prompt of so many tokens. */
export function promptAttention(i: number, tokens: number, context: PlanContext): number | undefined {
  const { model, kernels } = context
  const { threads } = settingOf(context)
  const nsOf = (tokens?: number) => kernels && promptAttentionNs(i, model, kernels, { threads, tokens })
  const prompt = sumOf(context.calls.map((call) => call.tokens)) / settingOf(context).sequences
  return attentionAfter(i, context, [nsOf(), nsOf(tokens)], tokens / prompt)
}

/**
 * The time of a group's products in a prompt of so many tokens by what was measured; undefined where it was not. A longer prompt is divided into
 * batches, whose tokens take less each, the more there are.
 */
export function promptFactor(i: number, tokens: number, context: PlanContext): number | undefined {
  const { model, calls, kernels } = context
  if (!kernels || !isQuantisable(model.groups[i]!)) return undefined
  const now = settingOf(context)
  const prompt = sumOf(calls.map((call) => call.tokens)) / now.sequences
  const perToken = (length: number) => {
    const graph = Math.min(length, UBATCH)
    const measured = measuredTime(i, now, context, kernels, graph)
    return measured && measured.ns / graph
  }
  const [before, after] = [perToken(prompt), perToken(tokens)]
  return before === undefined || after === undefined ? undefined : (after / before) * (tokens / prompt)
}

/** What was measured of the run's types in other memory only. */
function otherMemory({ products }: KernelTimes, { model, memoryOf }: PlanContext): string[] {
  const found = model.groups.filter(isQuantisable).flatMap((group) => {
    const { type } = group
    const { name } = memoryOf(type, hasExperts(group))
    const others = products.filter((product) => product.type === type).map(({ buffer }) => buffer)
    if (name === undefined || others.length === 0 || others.includes(name)) return []
    return [`the calibration does not apply: it is of ${type} in ${others[0]}, the run has it in ${name}`]
  })
  return [...new Set(found)]
}

/** Which measured products apply to the run: those of its processor and its ggml that take about what its own take. */
export function appliedKernels(now: Setting, then: Setting, context: PlanContext): Applied {
  const { model, calls, kernels, run } = context
  const none = (...basis: string[]) => ({ kernels: undefined, ratio: undefined, source: '', basis })
  if (!kernels) return none()
  const { cpu, build } = run
  if (kernels.cpu !== cpu || kernels.build !== build)
    return none(
      `the calibration does not apply: it is of ${kernels.cpu}, ggml ${kernels.build}; the run of ${cpu ?? 'unknown'}, ggml ${build ?? 'unknown'}`,
    )
  let [inRun, measured] = [0, 0]
  for (const [i, group] of model.groups.entries()) {
    if (!isQuantisable(group)) continue
    const time = measuredTime(i, now, context, kernels)
    if (!time) continue
    inRun += sumOf(calls.map(wallOf(context, i)))
    measured += time.ns * stepsOf(i, now, context)
  }
  if (measured === 0) return { kernels, ratio: undefined, source: '', basis: otherMemory(kernels, context) }
  const ratio = inRun / measured
  if (!isAlike(ratio))
    return none(
      `the calibration does not apply: products of the run take ${ratio.toFixed(2)} times what it measured with ${describe(now)}`,
    )
  const source = `what ggml's own take with ${describe(then)}, by what they take with ${describe(now)} (peaks --types); those of the run take ${ratio.toFixed(2)} times the latter`
  return { kernels, ratio, source, basis: [] }
}
