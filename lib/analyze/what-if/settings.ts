import { typeNamed } from '../../model/ggml-types.ts'
import { plural } from '../../model/units.ts'
import type { StepGroup } from '../series/figures.ts'
import { IN_RUN } from './alone.ts'
import { boundedFactor } from './bounds.ts'
import { ratioThatCounts } from './company.ts'
import type { Changes } from './figures.ts'
import { nodeNs } from './kernels.ts'
import { appliedKernels, type Measures, measuredFactor } from './measured.ts'
import {
  between,
  type Factor,
  factorAt,
  type PlanContext,
  type Planned,
  type Refusal,
  refuse,
  SAME,
  type Source,
  type Uncertain,
} from './plan.ts'
import { type Setting, settingOf } from './setting.ts'
import { expertsOf, hasAttention, hasExperts, hasWeights, isOfExperts, isQuantisable, typeOf } from './weights.ts'

/** Threads and sequences are predicted up to so many times those of the run. */
const TIMES_MAX = { threads: 8, batch: 64 }
/** Barriers of a number of threads take between this part and so many times what was measured: some threads come late. */
const BARRIER = { low: 0.5, high: 3 }
/** With one thread nobody waits: what remains of barriers and gaps is the start of a node. */
const ALONE: Factor = { low: 0, expected: 0.5, high: 1 }
const NOTHING: Factor = { low: 0, expected: 0, high: 0 }

/** Other threads, type of weights, number of sequences, or experts that a token uses. */
export function withSettings({ threads, type, batch, experts }: Changes, context: PlanContext): Planned {
  const { model, phase } = context
  const now = settingOf(context)
  const isOtherBatch = batch !== undefined && batch !== model.decode[0]?.sequences
  const isOtherType = type !== undefined && model.groups.some((group) => typeOf(group, type) !== group.type)
  const areOtherExperts = experts !== undefined && expertGroups(context).some((group) => group.experts_used !== experts)
  const then: Setting = {
    threads: threads ?? now.threads,
    type: isOtherType ? typeNamed(type)!.name : undefined,
    sequences: isOtherBatch ? batch : now.sequences,
    experts: areOtherExperts ? experts : undefined,
  }
  if (experts !== undefined && expertGroups(context).length === 0)
    return refuse('no product of experts was recorded on the CPU, or not how many of them a token uses')
  if (then.threads === now.threads && !isOtherType && !isOtherBatch && !areOtherExperts) return 'unchanged'
  const refused = refusalOf(now, then, context)
  if (refused) return refused
  const applied = appliedKernels(now, then, context)
  const { source, basis } = applied
  const ratio = ratioThatCounts(applied, context)
  const measures = applied.kernels && { kernels: applied.kernels, ratio }
  const factors = model.groups.map((_, i) => factorsOf(i, now, then, context, measures))
  const products = factors.filter(({ by }, i) => by !== 'nothing' && isQuantisable(model.groups[i]!))
  const kinds = products.length
  const measured = products.filter(({ by }) => by === 'measurement').length
  const isAttentionMeasured = factors.some(({ by }, i) => by === 'measurement' && hasAttention(model.groups[i]!))
  const { host, outside } =
    phase === 'decode' ? besideSteps(then.sequences / now.sequences) : { host: SAME, outside: SAME }
  return {
    basis: [
      ...basis,
      ...(measured > 0
        ? [`${phase}: ${measured} of ${plural(kinds, 'kind')} of products by ${source}${unusualText(ratio)}`]
        : []),
      ...(isAttentionMeasured ? [`${phase}: attention as measured (peaks --types)`] : []),
      ...(measured < kinds ? unmeasured(now, then, context) : []),
    ],
    sources: [...new Set<Source>([...factors.flatMap(sourcesOf), 'barriers', 'outside', 'between'])],
    apply: ({ steps }, state, scenarioOf) => {
      for (const [group, { compute, overhead, addedNs }] of factors.entries()) {
        const added = addedNs[scenarioOf('barriers')] * steps[group]!
        state.compute[group]! *= factorAt(compute, scenarioOf)
        state.overhead[group] = Math.max(state.overhead[group]! * factorAt(overhead, scenarioOf) + added, 0)
      }
      state.betweenNs *= host[scenarioOf('between')]
      state.outsideNs *= outside[scenarioOf('outside')]
    },
  }
}

/** Work of the program for each sequence, such as sampling; in the call, a graph is made for all of them, and the outputs of each are copied. */
const besideSteps = (times: number) => ({
  host: between([1, times], times),
  outside: between([1, Math.sqrt(times)]),
})

const unusualText = (ratio = 1) =>
  ratio <= IN_RUN && ratio >= 1
    ? ''
    : ', and what is unusual of that (1 to 1.1 is not) remains between all of it and nothing'

/** The groups of the phase whose products are of experts. */
const expertGroups = ({ model, calls }: PlanContext) =>
  model.groups.filter((group, i) => hasExperts(group) && calls.some(({ steps }) => steps[i]! > 0))

function refusalOf(now: Setting, then: Setting, { model, phase, cpus }: PlanContext): Refusal | undefined {
  const { groups } = model
  if (!groups.some(hasWeights)) return refuse('no product with weights was recorded on the CPU')
  if (then.sequences !== now.sequences && phase === 'prefill')
    return refuse(`the prompts of ${plural(then.sequences, 'sequence')} are not predicted`)
  if (then.sequences > TIMES_MAX.batch * now.sequences)
    return refuse(
      `${then.sequences} sequences are more than ${TIMES_MAX.batch} times those of the run, ${now.sequences}`,
    )
  if (then.threads !== now.threads && now.threads === 0) return refuse('the number of threads was not recorded')
  if (then.threads > now.threads && cpus !== null && then.threads > cpus)
    return refuse(`${then.threads} threads on ${plural(cpus, 'CPU')} would take them from each other`)
  if (then.threads > TIMES_MAX.threads * now.threads)
    return refuse(
      `${then.threads} threads are more than ${TIMES_MAX.threads} times those of the run, ${now.threads}, and no run with others is given (--with)`,
    )
  const most = Math.min(...groups.flatMap((group) => expertsOf(group).experts ?? []))
  if (then.experts !== undefined && then.experts > most)
    return refuse(`a token cannot use ${then.experts} of ${plural(most, 'expert')}`)
  return then.type === undefined ? undefined : typeRefusal(then.type, groups)
}

function typeRefusal(type: string, groups: PlanContext['model']['groups']): Refusal | undefined {
  const { elements } = typeNamed(type)!
  const odd = groups.find((group) => isQuantisable(group) && group.weight_columns % elements !== 0)
  if (odd)
    return refuse(
      `${type} has blocks of ${elements} elements, which do not divide the rows of ${odd.role}, ${odd.weight_columns}`,
    )
  const unknown = groups.find((group) => isQuantisable(group) && !typeNamed(group.type))
  return unknown && refuse(`the type of the weights of ${unknown.role} is not known: ${unknown.type}`)
}

/** The time after the change, by that before it. */
interface Factors {
  readonly compute: Uncertain
  readonly overhead: Uncertain
  /** To the overhead of each step. */
  readonly addedNs: Factor
  /** Nothing: it remains. */
  readonly by: 'measurement' | 'bounds' | 'nothing'
}

const sourcesOf = ({ compute, overhead }: Factors) => [...compute, ...overhead].map(([source]) => source)

function factorsOf(
  i: number,
  now: Setting,
  then: Setting,
  context: PlanContext,
  measures: Measures | undefined,
): Factors {
  if (!dependsOn(context.model.groups[i]!, now, then))
    return { compute: [], overhead: [], addedNs: NOTHING, by: 'nothing' }
  const measured = measures && measuredFactor(i, now, then, context, measures)
  // What was measured contains the barrier.
  if (measured) return { compute: measured, overhead: measured, addedNs: NOTHING, by: 'measurement' }
  const compute = [['steps', boundedFactor(i, now, then, context)]] as const
  const unchanged = { compute, overhead: [], addedNs: NOTHING, by: 'bounds' } as const
  if (then.threads === now.threads) return unchanged
  if (then.threads === 1) return { ...unchanged, overhead: [['barriers', ALONE]] }
  const [before, after] = [now, then].map(({ threads }) => measures && nodeNs(measures.kernels, threads))
  if (before === undefined || after === undefined) return unchanged
  const ns = after - before
  return { ...unchanged, addedNs: between([BARRIER.low * ns, BARRIER.high * ns], ns) }
}

/** Do such steps take another time with the other setting? */
function dependsOn(group: StepGroup, now: Setting, then: Setting): boolean {
  if (then.threads !== now.threads || then.sequences !== now.sequences) return true
  if (then.type !== undefined && typeOf(group, then.type) !== group.type) return true
  return then.experts !== undefined && isOfExperts(group)
}

/** What is between bounds only, and what would measure it. */
function unmeasured(now: Setting, then: Setting, { run, bandwidth }: PlanContext): string[] {
  const ceiling = bandwidth ? ', down to what the bandwidth of the memory permits,' : ''
  const found = [
    then.type !== undefined && {
      says: `${then.type}: between proportional to bytes and the slowest type of the run`,
      option: '',
    },
    then.sequences !== now.sequences && {
      says: `${plural(then.sequences, 'sequence')}: between weights that are read once for all and once for each`,
      option: ` --batch ${then.sequences}`,
    },
    then.experts !== undefined && {
      says: `${plural(then.experts, 'expert')} of a token: proportional in decode, between that and its root in a prompt`,
      option: ` --experts ${then.experts}`,
    },
    then.threads !== now.threads && {
      says: `${plural(then.threads, 'thread')} from ${now.threads}: between perfect scaling${ceiling} and none`,
      option: ` --threads ${then.threads}`,
    },
  ].filter((part) => part !== false)
  const types = new Set((run.weights ?? []).map(({ type }) => type).filter((type) => type !== 'f32'))
  const named = then.type ?? ([...types].join(',') || 'q8_0')
  const options = found.map(({ option }) => option).join('')
  return [
    ...found.map(({ says }) => `without calibration, ${says}`),
    `what measures it, on the machine: ggml2perfetto peaks <log> --types ${named}${options}`,
  ]
}
