/** What a trial is explained by afterwards: parts of calls as they were predicted and as they were measured. */

/** Groups whose differences are printed, of a figure. */
const SHOWN = 4

const PHASES = { TPOT: 'decode', TTFT: 'prefill' }
/** Types are other ones where they are changed. */
const keyOf = ({ phase, what, op, role }) => [phase, what, op, role].join('\0')

/**
 * Times of a call of a figure such as TPOT by part, in ns, in the mean of the documents: `now_ns`, in the run from which it was predicted, `predicted_ns`, and `measured_ns`. `now` and
 * `quiet`: predictions of the sides without preemption; `predictions`: of the first side with the changes. Those of a part that a side has not are 0.
 */
export function partsOf(figure, { now, predictions, quiet }) {
  const rows = new Map()
  const add = (column, documents, field) => {
    for (const { parts } of documents) {
      for (const part of parts) {
        const { phase, what, op, role } = part
        if (phase !== PHASES[figure]) continue
        const row = rows.get(keyOf(part)) ?? { phase, what, op, role, now_ns: 0, predicted_ns: 0, measured_ns: 0 }
        rows.set(keyOf(part), { ...row, [column]: row[column] + part[field] / documents.length })
      }
    }
  }
  add('now_ns', now, 'then_ns')
  add('predicted_ns', predictions, 'then_ns')
  add('measured_ns', quiet, 'then_ns')
  return [...rows.values()]
}

/** The figures of a run that say how it was disturbed. */
export function disturbanceOf({ calls, scheduling, findings, run }) {
  const workers = (scheduling?.workers ?? []).map(
    ({ phase, worker, call_time_ns, preempted_ns, preemptions, migrations }) => ({
      ...{ phase, worker, call_time_ns, preempted_ns, preemptions, migrations },
    }),
  )
  const { tpot_ns, ttft_ns } = calls
  return { tpot_ns, ttft_ns, workers, rules: findings.map(({ rule }) => rule), threads: run.workers }
}

const ms = (ns) => `${(ns / 1e6).toPrecision(3)} ms`

/** The parts that differ most between prediction and measurement, a line each, for a figure such as TPOT. */
export function explained({ what }, parts) {
  const own = parts.filter(({ phase }) => phase === PHASES[what])
  const offOf = ({ predicted_ns, measured_ns }) => predicted_ns - measured_ns
  const all = own.reduce((sum, part) => sum + offOf(part), 0)
  return own
    .toSorted((a, b) => Math.abs(offOf(b)) - Math.abs(offOf(a)))
    .slice(0, SHOWN)
    .map((part) => {
      const name = part.what === 'operators' ? `${part.role} ${part.op}` : part.what
      const times = `${ms(part.now_ns)}, predicted ${ms(part.predicted_ns)}, measured ${ms(part.measured_ns)}`
      return `    ${what} ${name}: ${times} (${ms(offOf(part))} of ${ms(all)})`
    })
}

/** A figure of each recording: of the run as it was, as predicted from it, and of the changed run. */
export const turnsOf = (key, { now, predictions, quiet }) => ({
  now: now.map((document) => document[key].expected ?? document[key].now),
  predicted: predictions.map((document) => document[key].expected),
  measured: quiet.map((document) => document[key].expected ?? document[key].now),
})
