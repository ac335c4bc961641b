import type { CallParts, Statistic } from '../common/statistic.ts'
import type { Defined } from '../graph/defined.ts'
import type { Plan } from '../graph/plan.ts'
import type { ActivationFigures } from './figures.ts'

/** Results of the steps of one graph run of a decode: their sum, and the most that are in use at once. */
export class Activations implements Statistic {
  private activations: ActivationFigures | null = null

  /** `plan`: that of the first graph run of the latest call. */
  constructor(
    private readonly defined: Defined,
    private readonly plan: () => Plan | undefined,
  ) {}

  call({ operators: { event } }: CallParts): void {
    if (event?.phase === 'decode') this.activations ??= activationsOf(this.plan()!, this.defined)
  }

  finish() {
    return { activations: this.activations }
  }
}

function activationsOf(plan: Plan, { tensors, views }: Defined): ActivationFigures {
  let bytes = 0
  for (const last of plan.lasts) {
    // Results that are views write into another tensor, such as the KV cache.
    if (views.root(last) === last) bytes += Math.max(tensors[last]!.sizeBytes, 0)
  }
  return { bytes, peak_bytes: peakOf(plan) }
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
