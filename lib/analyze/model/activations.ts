import type { BufferEvent, TensorEvent } from '../../model/events.ts'
import type { Names } from '../../model/names.ts'
import { type Plan, Plans } from '../graph/plan.ts'
import { GraphRun } from '../graph/runs.ts'
import { Views } from '../graph/views.ts'
import type { Steps } from '../operators/steps.ts'
import type { ActivationFigures } from './figures.ts'

/** What the results of steps are computed from. */
interface ActivationContext {
  readonly tensors: readonly TensorEvent[]
  readonly buffers: ReadonlyMap<number, BufferEvent>
  readonly names: Names
}

/** Results of the steps of one call: their sum, and the most that are in use at once. */
export function activationsOf(steps: Steps, { tensors, buffers, names }: ActivationContext): ActivationFigures {
  const views = new Views(tensors, (tensor) => names.text(tensor.op))
  const run = new GraphRun()
  const seen = new Set<number>()
  let bytes = 0
  for (let step = 0; step < steps.count; step++) {
    const [tensor, last] = [steps.tensor[step]!, steps.last[step]!]
    if (seen.has(tensor)) break // a second graph run
    seen.add(tensor)
    run.append(tensor, last, steps.startNs[step]!, steps.endNs[step]!)
    // Results that are views write into another tensor, such as the KV cache.
    if (views.root(last) === last) bytes += Math.max(tensors[last]!.sizeBytes, 0)
  }
  const plans = new Plans({ tensors, buffers, views, nameOf: (tensor) => names.text(tensor.name) })
  return { bytes, peak_bytes: peakOf(plans.of(run)) }
}

/** The most bytes of a plan that are in use in one step. */
function peakOf({ lives, nodes }: Plan): number | null {
  if (lives.length === 0) return null
  const change = new Float64Array(nodes.length + 2)
  for (const { birth, after, last, cut, bytes } of lives) {
    const from = Math.max(birth < 0 ? after + 1 : birth, 0)
    // A result that overwrites a source takes its place.
    const to = Math.max(cut >= 0 ? Math.min(last, cut - 1) : last, from)
    change[from]! += bytes
    change[to + 1]! -= bytes
  }
  let [now, peak] = [0, 0]
  for (const by of change) {
    now += by
    peak = Math.max(peak, now)
  }
  return peak
}
