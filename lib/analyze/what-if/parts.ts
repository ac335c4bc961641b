import type { StepGroup } from '../series/figures.ts'
import { type State, sumOf } from './calls.ts'
import type { WhatIfPart } from './figures.ts'
import type { PhaseAfter } from './plan.ts'

/** The parts of a call on average, in the run and after the changes; those with most change first. */
export function partsOf({ phase, calls, after }: PhaseAfter, groups: readonly StepGroup[]): WhatIfPart[] {
  const now = calls.map(({ measured }) => measured)
  const none = { op: '', role: '', type: '' }
  const part = (
    what: WhatIfPart['what'],
    of_: Pick<WhatIfPart, 'op' | 'role' | 'type'>,
    ns: (state: State) => number,
  ) => ({
    ...{ phase, what, ...of_ },
    now_ns: sumOf(now.map(ns)) / calls.length,
    then_ns: sumOf(after.map(ns)) / calls.length,
  })
  const parts: WhatIfPart[] = [
    ...groups.map(({ op, role, type }, i) => part('operators', { op, role, type }, ({ compute }) => compute[i]!)),
    part('barriers', none, ({ overhead }) => sumOf(overhead)),
    part('outside', none, ({ outsideNs }) => outsideNs),
    part('between', none, ({ betweenNs }) => betweenNs),
  ]
  return parts
    .filter(({ now_ns, then_ns }) => now_ns > 0 || then_ns > 0)
    .sort((a, b) => Math.abs(b.then_ns - b.now_ns) - Math.abs(a.then_ns - a.now_ns))
}
