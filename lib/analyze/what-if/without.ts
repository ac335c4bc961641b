import { plural } from '../../model/units.ts'
import { copyOf, type ModelCall, totalNs } from './calls.ts'
import { withoutCompany } from './company.ts'
import type { Disturbance } from './figures.ts'
import { lineOf, at as valueAt } from './lines.ts'
import { CALLS_MIN, makeUsual, type PlanContext, type Planned, refuse, scale, usualOf } from './plan.ts'

/** Takes a disturbance out of the calls of a phase. */
export function withoutDisturbance(what: Disturbance, context: PlanContext): Planned {
  switch (what) {
    case 'preempted':
      return withoutPreempted(context)
    case 'faults':
      return withoutFaults(context)
    case 'first-call':
      return withoutFirst(context)
  }
}

function withoutPreempted(context: PlanContext): Planned {
  const { model, phase, calls } = context
  if (!model.hasStates)
    return refuse('the log does not contain when threads lost their CPUs (record without --no-states)')
  const preempted = calls.filter(({ isPreempted }) => isPreempted)
  if (preempted.length === 0) return 'unchanged'
  const others = calls.filter(({ isPreempted }) => !isPreempted)
  const isMatched = phase === 'decode' && others.length >= CALLS_MIN
  const usual = isMatched
    ? lineOf(
        others.map(({ contextTokens }) => contextTokens),
        others.map(({ undisturbed }) => totalNs(undisturbed)),
      )
    : undefined
  // A call that lost its CPU takes at most what the slowest other one takes, by what is usual at its context.
  const slowest = usual
    ? Math.max(...others.map(({ undisturbed, contextTokens }) => totalNs(undisturbed) / valueAt(usual, contextTokens)))
    : 1
  const company = withoutCompany(context)
  const lostIn = `${plural(preempted.length, `${phase} call`)} of ${calls.length} lost their CPUs`
  const steps = 'a step that lost time takes what the same step of others takes, else its own time without the loss'
  const basis = usual
    ? `${lostIn}: each takes what the other ${others.length} take at its context, at most what the slowest of them takes; ${steps}`
    : `${lostIn}: ${steps}, as too few calls without preemption were recorded`
  return {
    basis: [basis, company.basis],
    removesPreemption: true,
    sources: ['loss', 'company'],
    apply: (call, state, scenarioOf) => {
      if (call.isPreempted) {
        const replayed = copyOf(call.undisturbed)
        const replayedNs = totalNs(replayed)
        Object.assign(state, replayed)
        const times = scenarioOf('loss') === 'high' ? slowest : 1
        if (usual) scale(state, Math.min((times * Math.max(valueAt(usual, call.contextTokens), 0)) / replayedNs, 1))
      }
      scale(state, company.factor[scenarioOf('company')])
    },
  }
}

function withoutFaults({ model, phase, calls, stateOf }: PlanContext): Planned {
  if (!model.hasFaults) return refuse('the log does not contain page faults of calls')
  const faulting = calls.filter(({ hasFaults }) => hasFaults)
  if (faulting.length === 0) return 'unchanged'
  const others = calls.filter(({ hasFaults }) => !hasFaults)
  if (others.length < (phase === 'decode' ? CALLS_MIN : 2))
    return refuse(
      `${faulting.length} of ${plural(calls.length, `${phase} call`)} had page faults that read; the others are too few to show what a call takes without`,
    )
  return usualInstead(faulting, others, { model, phase, stateOf }, 'had page faults that read')
}

function withoutFirst({ model, phase, calls, stateOf }: PlanContext): Planned {
  const first = calls.filter(({ isFirst }) => isFirst)
  const others = calls.filter(({ isFirst }) => !isFirst)
  if (others.length < (phase === 'decode' ? CALLS_MIN : 2))
    return refuse(
      `only ${plural(others.length, `${phase} call`)} after the first: too few to show what a first call takes without being first`,
    )
  return usualInstead(first, others, { model, phase, stateOf }, 'is the first of its phase')
}

/** These calls take what the others take at their context. */
function usualInstead(
  these: readonly ModelCall[],
  others: readonly ModelCall[],
  { model, phase, stateOf }: Pick<PlanContext, 'model' | 'phase' | 'stateOf'>,
  why: string,
): Planned {
  const alike = phase === 'decode' ? others : others.filter(({ tokens }) => tokens === these[0]!.tokens)
  if (alike.length === 0) return refuse(`no other ${phase} call has as many tokens as the one that ${why}`)
  const usual = usualOf(alike, model.groups, stateOf)
  const set = new Set(these)
  return {
    basis: [`${plural(these.length, `${phase} call`)} that ${why}: as the other ${alike.length} at the same context`],
    sources: [],
    apply: (call, state) => {
      if (set.has(call)) makeUsual(usual, call, state)
    },
  }
}
