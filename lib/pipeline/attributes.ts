import type { Summary } from '../analyze/summary.ts'

/** Kinds of events that the trace's attributes list as not drawn. */
const LEFT_OUT_LISTED_MAX = 20

type Attributes = Record<string, string | number>

/** Facts on the whole trace, which Perfetto shows on its overview page: of the logs, and of their companions. */
export function attributesOf(
  logs: readonly Summary[],
  companions: readonly Summary[],
  further: Attributes,
): Attributes {
  const attributes: Attributes = Object.create(null) // any text may be a key
  attributes['generator'] = 'ggml2perfetto'
  logs.forEach((summary, i) => {
    const prefix = logs.length > 1 ? `input_${i}.` : ''
    for (const [key, value] of Object.entries(factsOf(summary))) attributes[prefix + key] = value
  })
  for (const { format, attributes: facts, issues } of companions) {
    for (const [key, value] of Object.entries({ ...facts, issues: countOf(issues) })) {
      attributes[`${format}.${key}`] = value
    }
  }
  return Object.assign(attributes, further)
}

function factsOf(summary: Summary): Attributes {
  const { prefill, decode, warmUp, failed } = summary.calls
  return {
    format: summary.format,
    ...summary.attributes,
    warmup_calls: warmUp.calls,
    prefill_calls: prefill.calls,
    prefill_tokens: prefill.tokens,
    decode_calls: decode.calls,
    ...(failed.calls > 0 && { failed_calls: failed.calls }),
    operators: summary.operators,
    workers: summary.workers,
    issues: countOf(summary.issues),
    ...(summary.leftOut.length > 0 && { not_drawn: listOf(summary.leftOut) }),
    ...clockFacts(summary),
  }
}

const countOf = (issues: Summary['issues']) => issues.reduce((sum, { count }) => sum + count, 0)

/** `1203 tracing_mark_write, 96 cpu_frequency`; of very many kinds, the most frequent. */
function listOf(leftOut: Summary['leftOut']): string {
  const most = leftOut.slice(0, LEFT_OUT_LISTED_MAX).map(({ what, count }) => `${count} ${what}`)
  const rest = leftOut.length - most.length
  return [...most, ...(rest > 0 ? [`${rest} more kinds`] : [])].join(', ')
}

function clockFacts({ relation, clock }: Summary): Attributes {
  if (!relation) return {}
  const { how, offsetNs, boundNs } = relation
  return {
    clock,
    clock_relation: how,
    clock_offset_ns: String(offsetNs),
    ...(boundNs === undefined ? {} : { clock_error_ns: boundNs }),
  }
}
