import { sumOf } from './calls.ts'
import { type KernelTimes, productNs } from './kernels.ts'
import { type Factor, type PlanContext, wallOf } from './plan.ts'
import { describe, type Setting, settingOf, tokensAt, typicalOf } from './setting.ts'
import { bytesOfCall, isQuantisable, typeOf, UBATCH } from './weights.ts'

/** The relation of measured products may differ from that in the run by this share. */
const ERROR = 0.05
/** A run whose products take so many times what was measured, or a part as small, computes them otherwise. */
const UNLIKE = 2.5

/** The measured products that apply to a run; the sentences say why none do, or where they are from. */
export interface Applied {
  readonly kernels: KernelTimes | undefined
  readonly source: string
  readonly basis: readonly string[]
}

/** Are experts chosen? How many tokens each has is not known of other batches. */
const areExperts = (op: string) => op.startsWith('MUL_MAT_ID')

/** The time that was measured of a product of a group; undefined where it was not. */
function measuredNs(
  i: number,
  setting: Setting,
  context: PlanContext,
  kernels: KernelTimes,
  tokens = tokensAt(context.model.groups[i]!, setting, context),
): number | undefined {
  const group = context.model.groups[i]!
  const { weight_columns: columns, weight_rows: rows } = group
  const { type, threads } = setting
  const bytes = bytesOfCall(context.model, typicalOf(context), type)
  return productNs(kernels, { type: typeOf(group, type), columns, rows, tokens, threads, bytes })
}

/** The time of a group's products with another setting by what was measured; undefined where it was not. */
export function measuredFactor(
  i: number,
  now: Setting,
  then: Setting,
  context: PlanContext,
  kernels: KernelTimes,
): Factor | undefined {
  const group = context.model.groups[i]!
  if (!isQuantisable(group) || (areExperts(group.op) && now.sequences !== then.sequences)) return undefined
  const [before, after] = [now, then].map((setting) => measuredNs(i, setting, context, kernels))
  if (before === undefined || after === undefined) return undefined
  const factor = after / before
  return { low: factor * (1 - ERROR), expected: factor, high: factor * (1 + ERROR) }
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
    const ns = measuredNs(i, now, context, kernels, graph)
    return ns === undefined ? undefined : ns / graph
  }
  const [before, after] = [perToken(prompt), perToken(tokens)]
  return before === undefined || after === undefined ? undefined : (after / before) * (tokens / prompt)
}

/** Which measured products apply to the run: those of its processor and its ggml that take about what its own take. */
export function appliedKernels(now: Setting, then: Setting, context: PlanContext): Applied {
  const { model, calls, kernels, run } = context
  const none = (...basis: string[]) => ({ kernels: undefined, source: '', basis })
  if (!kernels) return none()
  const { cpu, build } = run
  if (kernels.cpu !== cpu || kernels.build !== build)
    return none(
      `the calibration does not apply: it is of ${kernels.cpu}, ggml ${kernels.build}; the run of ${cpu ?? 'unknown'}, ggml ${build ?? 'unknown'}`,
    )
  let [inRun, measured] = [0, 0]
  for (const [i, group] of model.groups.entries()) {
    if (!isQuantisable(group) || areExperts(group.op)) continue
    const ns = measuredNs(i, now, context, kernels)
    if (ns === undefined) continue
    inRun += sumOf(calls.map(wallOf(context, i)))
    measured += ns * sumOf(calls.map(({ steps }) => steps[i]!))
  }
  const ratio = measured > 0 ? inRun / measured : 1
  if (ratio > UNLIKE || ratio < 1 / UNLIKE)
    return none(
      `the calibration does not apply: products of the run take ${ratio.toFixed(2)} times what it measured with ${describe(now)}`,
    )
  const source = `what ggml's own take with ${describe(then)}, by what they take with ${describe(now)} (peaks --types); those of the run take ${ratio.toFixed(2)} times the latter`
  return { kernels, source, basis: [] }
}
