import type { Summary } from '../analyze/summary/figures.ts'
import { nounFor } from '../model/units.ts'
import type { OpenInput } from './inputs.ts'
import type { RunInputs } from './run-inputs.ts'

/** Kinds of events that the trace's attributes list as not drawn. */
const LEFT_OUT_LISTED_MAX = 20

type Attributes = Record<string, string | number>

/**
 * Attributes of the whole trace, which Perfetto shows on its overview page. `late`: number of state changes that came too late;
 * `bundle`: the bundled file.
 */
export function attributesOf(
  { logs, companions }: RunInputs,
  summaries: ReadonlyMap<OpenInput, Summary>,
  { late, bundle }: { readonly late: number; readonly bundle: string | undefined },
): Attributes {
  const attributes: Attributes = Object.create(null) // any text may be a key
  attributes['generator'] = 'ggml2perfetto'
  logs.forEach((log, i) => {
    const prefix = logs.length > 1 ? `input_${i}.` : ''
    for (const [key, value] of Object.entries(factsOf(summaries.get(log.input)!))) attributes[prefix + key] = value
  })
  for (const { format, attributes: facts, issues } of companions.summaries.values()) {
    for (const [key, value] of Object.entries({ ...facts, issues: countOf(issues) })) {
      attributes[`${format}.${key}`] = value
    }
  }
  if (late > 0) attributes['state_changes_left_out'] = late
  if (bundle !== undefined) attributes['bundle'] = bundle
  return attributes
}

function factsOf(summary: Summary): Attributes {
  const { by_phase, failed } = summary.calls
  return {
    format: summary.format,
    ...(summary.verdict && { verdict: summary.verdict.sentence }),
    ...Object.fromEntries((summary.findings ?? []).map(({ sentence }, i) => [`finding_${i + 1}`, sentence])),
    ...summary.attributes,
    warmup_calls: by_phase['warm-up']?.calls ?? 0,
    prefill_calls: by_phase.prefill?.calls ?? 0,
    prefill_tokens: by_phase.prefill?.tokens ?? 0,
    decode_calls: by_phase.decode?.calls ?? 0,
    ...(failed > 0 && { failed_calls: failed }),
    operators: summary.operators,
    workers: summary.workers,
    issues: countOf(summary.issues),
    ...thinnedFacts(summary),
    ...(summary.left_out.length > 0 && { not_drawn: listOf(summary.left_out) }),
    ...clockFacts(summary),
  }
}

const countOf = (issues: Summary['issues']) => issues.reduce((sum, { count }) => sum + count, 0)

/** `1203 tracing_mark_write, 96 cpu_frequency`; of very many kinds, the most frequent. */
function listOf(leftOut: Summary['left_out']): string {
  const most = leftOut.slice(0, LEFT_OUT_LISTED_MAX).map(({ what, count }) => `${count} ${what}`)
  const rest = leftOut.length - most.length
  return [...most, ...(rest > 0 ? [`${rest} more ${nounFor(rest, 'kind')}`] : [])].join(', ')
}

function thinnedFacts({ thinned }: Summary): Attributes {
  if (!thinned) return {}
  const { budget_bytes, calls, calls_in_full, operators, operators_in_full } = thinned
  return {
    budget_bytes,
    calls_in_full: `${calls_in_full} of ${calls}`,
    operators_in_full: `${operators_in_full} of ${operators}; the others are summed up`,
  }
}

function clockFacts({ relation, clock }: Summary): Attributes {
  if (!relation) return {}
  const { how, offset_ns, bound_ns } = relation
  return {
    clock,
    clock_relation: how,
    clock_offset_ns: offset_ns,
    ...(bound_ns !== null && { clock_error_ns: bound_ns }),
  }
}
