import { DefaultMap } from '../../model/default-map.ts'
import type { Analysis, CallTime, OperatorRow } from '../analysis.ts'
import { either } from './program.ts'
import { confidenceOf, found, type Limit, type Looked, phasesOf, type Rule, stoppedIn } from './rule.ts'
import { slicesIn } from './sql.ts'
import { percent, shares } from './words.ts'

const SHARE: Limit = {
  value: 0.1,
  why: 'runs of two to eight workers on idle CPUs mostly lose 1 to 7 % to barriers, most in the smallest models',
}
const LAST: Limit = {
  value: 0.85,
  why: 'of equal workers each is the last one in 1 of n steps; virtual CPUs that share a core make it up to 79 % in runs on idle CPUs',
}
const CALLS: Limit = { value: 8, why: 'in fewer calls one worker is the last in up to 93 % by chance: `any` applies' }
const ANY: Limit = {
  value: 0.2,
  why: 'where the last worker changes from step to step: small models on idle CPUs lose up to 15 % so, as their steps take microseconds',
}
const OPEN: Limit = {
  value: 0.3,
  why: 'workers that spin on idle CPUs notice within 1 µs that a barrier is open: of long waits, that is less',
}

const BLOCKED: Limit = {
  value: 0.1,
  why: 'of the phase, as in blocked-workers: where they explain the waits but for less than `share` or `any`, they are the cause',
}

/** Workers wait for each other. */
export const barrierWait: Rule = {
  id: 'barrier-wait',
  title: 'Workers wait for each other at barriers',
  limits: { share: SHARE, last: LAST, calls: CALLS, any: ANY, open: OPEN, blocked: BLOCKED },
  advice: (program) =>
    'One worker is the last: its CPU is slower (E-core, SMT sibling) or shared: fewer threads, or threads on equal CPUs ' +
    `(${either('taskset', program.unless(['--cpu-mask', '-C', '--cpu-range', '-Cr'], '--cpu-mask'))}). ` +
    'Another one each time, or after the last one has arrived: something takes their CPUs (record --sched), or steps are too short for so many threads',
  covers: ['blocked-workers'],
  look: (analysis) => phasesOf(analysis).flatMap((time) => lookAt(analysis, time)),
}

function lookAt(analysis: Analysis, { phase, calls, time_ns }: CallTime): Looked[] {
  const rows = analysis.operators.rows.filter((row) => row.phase === phase && row.workers.length > 1)
  if (rows.length === 0) return []
  const lostNs = rows.reduce((sum, row) => sum + lostIn(row), 0)
  const openNs = rows.reduce((sum, row) => sum + openIn(row), 0)
  const share = lostNs / time_ns
  const { worker, last } = latest(rows)
  const isOne = last >= LAST.value
  const blocks = new Map<string, number>()
  for (const row of rows) blocks.set(row.block, (blocks.get(row.block) ?? 0) + lostIn(row) / time_ns)
  const sentence =
    `${percent(share)} of ${phase} is waiting at barriers: ` +
    `worker ${worker} arrives last in ${percent(last)} of it${shares([...blocks]) === '' ? '' : ` (after ${shares([...blocks])})`}` +
    (openNs > 0 && openNs >= OPEN.value * lostNs
      ? `; ${percent(openNs / lostNs)} of it is after the last arrival, at an open barrier`
      : '')
  const least = isOne && calls >= CALLS.value ? SHARE.value : ANY.value
  if (share < least) return [{ figure: `${percent(share)} of ${phase} is waiting at barriers` }]
  const waitNs = rows.flatMap(({ workers }) => workers).reduce((sum, { wait_ns }) => sum + wait_ns, 0)
  const blockedNs = rows.reduce((sum, { blocked_ns }) => sum + (blocked_ns ?? 0), 0)
  const workers = Math.max(...rows.map((row) => row.workers.length))
  const stoppedNs = stoppedIn(rows)
  // While one is blocked, all others wait; what is stopped at an open barrier waits there itself.
  const otherNs = waitNs - stoppedNs - openNs * workers - (workers - 1) * blockedNs
  if (blockedNs + stoppedNs >= BLOCKED.value * workers * time_ns && otherNs < least * workers * time_ns)
    return [{ figure: `at barriers of ${phase}, workers wait for others that are blocked in operators` }]
  const { confidence, confidence_reason } = confidenceOf(analysis, calls)
  return found(sentence, {
    time_ns: lostNs,
    ...(isOne || confidence === 'low'
      ? { confidence, confidence_reason }
      : {
          confidence: 'medium',
          confidence_reason: `${confidence_reason}; no worker is always the last one, so its cause is elsewhere`,
        }),
    evidence: {
      ...{ phase, worker, lost_share: share, last_share: last },
      ...(openNs > 0 && { open_share: openNs / lostNs }),
      wait_of_all_workers_ns: waitNs,
    },
    check: { sql: `select sum(s.dur) ${slicesIn(phase, 'barrier')}`, evidence: 'wait_of_all_workers_ns' },
  })
}

/** Time that a step would take less if its work and its workers were equal: the mean wait of its workers for each other, in ns. */
export function lostIn({ wait_ns, wait_stopped_ns = 0, workers }: OperatorRow): number {
  return (wait_ns - wait_stopped_ns) / workers.length
}

/** The part of it in which the last worker had arrived: those that wait had no CPU, or had not noticed. No worker is to blame for it. */
function openIn({ wait_open_ns = 0, workers }: OperatorRow): number {
  return wait_open_ns / workers.length
}

/**
 * The worker that is the last one in most of the time until it arrives, and its share of that time: that of each role by its counts, however finely the
 * rows divide it.
 */
function latest(rows: readonly OperatorRow[]): { readonly worker: number; readonly last: number } {
  const roles = new DefaultMap<string, { lostNs: number; readonly last: number[] }>(() => ({ lostNs: 0, last: [] }))
  for (const row of rows) {
    const role = roles.of(`${row.op} ${row.role}`)
    role.lostNs += lostIn(row) - openIn(row)
    for (const { worker, last } of row.workers) role.last[worker] = (role.last[worker] ?? 0) + last
  }
  const byWorker: number[] = []
  for (const { lostNs, last } of roles.values()) {
    const steps = last.reduce((sum, count) => sum + (count ?? 0), 0)
    for (const [worker, count = 0] of last.entries())
      byWorker[worker] = (byWorker[worker] ?? 0) + (steps > 0 ? (lostNs * count) / steps : 0)
  }
  const sum = byWorker.reduce((sum, ns) => sum + (ns ?? 0), 0)
  const worker = byWorker.reduce((most, ns, i) => ((ns ?? 0) > (byWorker[most] ?? 0) ? i : most), 0)
  return { worker, last: sum > 0 ? byWorker[worker]! / sum : 0 }
}
