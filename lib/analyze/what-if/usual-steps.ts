import { type ModelCall, type RunModel, type State, sumOf } from './calls.ts'
import { at, type Line, lineOf } from './lines.ts'

/** Steps without loss that show what is usual. */
const QUIET_MIN = 4
/** The same as a share of all: of long steps, those that lose nothing are the shorter ones. */
const QUIET_SHARE_MIN = 0.25

/**
 * The run, with other figures of its calls without preemption: steps that lost their CPU take what those of their group take that did not, at the same
 * context; those of a prompt in the same call. Their own time without the loss is longer: workers that kept their CPU computed a part for the others, and
 * caches are cold afterwards. It remains where too few steps of the group lost nothing.
 */
export function withUsualSteps(model: RunModel): RunModel {
  const { decode, prefill } = model
  return { ...model, decode: withUsual(decode), prefill: prefill.flatMap((call) => withUsual([call])) }
}

function withUsual(calls: readonly ModelCall[]): readonly ModelCall[] {
  if (!calls.some(({ isPreempted }) => isPreempted)) return calls
  const usual = calls[0]!.steps.map((_, group) => usualStep(calls, group))
  return calls.map((call) => (call.isPreempted ? { ...call, undisturbed: undisturbedOf(call, usual) } : call))
}

/** What a step of the group takes that loses nothing, by its context; undefined: too few do. */
function usualStep(calls: readonly ModelCall[], group: number): Line | undefined {
  const quiet = sumOf(calls.map(({ quietSteps }) => quietSteps[group]!))
  const all = sumOf(calls.map(({ steps }) => steps[group]!))
  if (quiet < QUIET_MIN || quiet < QUIET_SHARE_MIN * all) return undefined
  const shown = calls.filter(({ quietSteps }) => quietSteps[group]! > 0)
  return lineOf(
    shown.map(({ contextTokens }) => contextTokens),
    shown.map(({ quietSteps, quietNs }) => quietNs[group]! / quietSteps[group]!),
  )
}

function undisturbedOf(call: ModelCall, usual: readonly (Line | undefined)[]): State {
  const { measured, undisturbed, steps, quietSteps, quietNs, contextTokens } = call
  const [compute, overhead] = [[...undisturbed.compute], [...undisturbed.overhead]]
  for (const [group, line] of usual.entries()) {
    const disturbed = steps[group]! - quietSteps[group]!
    if (!line || disturbed === 0) continue
    const timeNs = measured.compute[group]! + measured.overhead[group]!
    const nowNs = compute[group]! + overhead[group]!
    const usualNs = Math.max(at(line, contextTokens), 0) * disturbed
    const thenNs = quietNs[group]! + Math.min(usualNs, Math.max(timeNs - quietNs[group]!, 0))
    if (nowNs === 0) continue
    compute[group]! *= thenNs / nowNs
    overhead[group]! *= thenNs / nowNs
  }
  return { ...undisturbed, compute, overhead }
}
