import type { Analysis, CallTime, OperatorRow } from '../analysis.ts'
import { confidenceOf, type Limit, type Looked, phasesOf, type Rule } from './rule.ts'
import { slicesIn } from './sql.ts'
import { number, percent } from './words.ts'

const SHARE: Limit = {
  value: 0.1,
  why: 'operators compute and spin: a worker that is blocked in one waits for a page or a lock, which runs from memory do not',
}
const FAULTS: Limit = {
  value: 16,
  why: 'major faults a call, on average: the model does not stay in memory; code and caches of the program fault once',
}

/** Workers wait within operators for pages of the model. */
export const pageFaults: Rule = {
  id: 'page-faults',
  title: 'Operators wait for pages that are not in memory',
  limits: { share: SHARE, faults: FAULTS },
  advice:
    'The model, or what else runs, does not fit into memory: a smaller quantisation, --mlock, --no-mmap, or fewer experts in memory. ' +
    'record --faults names the weights (track Faults and I/O)',
  look: (analysis) => phasesOf(analysis).flatMap((time) => lookAt(analysis, time)),
}

function lookAt(analysis: Analysis, { phase, calls, time_ns }: CallTime): Looked[] {
  const rows = analysis.operators.rows.filter((row) => row.phase === phase)
  const workers = Math.max(1, ...rows.map((row) => row.workers.length))
  const hasCounts = rows.some(({ counters }) => counters['major_faults'] !== undefined)
  const hasStates = rows.some(({ blocked_ns }) => blocked_ns !== null)
  if (!hasCounts && !hasStates) return []
  const faults = rows.reduce((sum, { counters }) => sum + (counters['major_faults'] ?? 0), 0)
  const blockedNs = rows.reduce((sum, { blocked_ns }) => sum + (blocked_ns ?? 0), 0) / workers
  const share = blockedNs / time_ns
  const inWords = [
    ...(hasStates ? [`its workers are blocked ${percent(share)} of it`] : []),
    ...(hasCounts ? [`${number(faults / calls)} major page faults a call`] : []),
  ].join(', ')
  const sentence = `${phase} waits for pages: ${inWords}${where(rows)}`
  const isBlocked = share >= SHARE.value
  if (!isBlocked && !(hasCounts && !hasStates && faults >= FAULTS.value * calls))
    return [{ figure: `${phase}: ${inWords}` }]
  const finding = {
    sentence,
    time_ns: blockedNs,
    ...(hasCounts || !isBlocked
      ? confidenceOf(analysis, calls)
      : {
          confidence: 'medium' as const,
          confidence_reason: 'blocked in operators; page faults were not counted (record --faults)',
        }),
    evidence: { phase, blocked_share: share, blocked_ns: blockedNs, ...(hasCounts && { major_faults: faults }) },
    check: hasCounts
      ? {
          sql: `select sum(extract_arg(s.arg_set_id, 'debug.major_faults')) ${slicesIn(phase, 'operator')}`,
          evidence: 'major_faults',
        }
      : { command: 'ggml2perfetto stats <logs>', evidence: 'blocked_share' },
  }
  return [{ figure: sentence, finding }]
}

/** The layer in which most of it happens. */
function where(rows: readonly OperatorRow[]): string {
  const layers = new Map<number, number>()
  for (const { layer, counters, blocked_ns } of rows)
    layers.set(layer, (layers.get(layer) ?? 0) + (counters['major_faults'] ?? blocked_ns ?? 0))
  const most = [...layers].reduce((a, b) => (b[1] > a[1] ? b : a), [-1, 0])
  return most[0] < 0 || most[1] === 0 ? '' : `, most in blk.${most[0]}`
}
