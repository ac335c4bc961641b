import type { Analysis, CallTime, OperatorRow } from '../analysis.ts'
import { computingNs } from '../operators/computing.ts'
import { lostIn } from './barrier-wait.ts'
import { confidenceOf, found, type Limit, type Looked, phasesOf, type Rule } from './rule.ts'
import { ofWorker, slicesIn, text } from './sql.ts'
import { number, percent } from './words.ts'

const SHARE: Limit = {
  value: 0.05,
  why: 'a gain of 5 % is the least that is worth another split of the work; norms of a small model lose 2 to 4 %',
}
const IDLE: Limit = {
  value: 0.3,
  why: 'with an even split workers wait less than 15 % of a step; with one row for two workers, 50 %',
}
const TIMES: Limit = {
  value: 2,
  why: 'a slow CPU makes all operators wait in proportion: this one must wait twice as much as the others',
}

/** The work of one kind of node is not split evenly. */
export const unbalancedOp: Rule = {
  id: 'unbalanced-op',
  title: 'The work of an operator is not split evenly over the workers',
  limits: { share: SHARE, idle: IDLE, times: TIMES },
  advice:
    'ggml splits most operators by rows: one with fewer rows (or heads) than workers leaves some of them idle. Fewer threads, a larger ' +
    'batch, or another kernel (flash attention on or off) changes the split',
  covers: ['barrier-wait'],
  look: (analysis) => phasesOf(analysis).flatMap((time) => lookAt(analysis, time)),
}

/** Sums over the layers of one role. */
interface OfRole {
  readonly op: string
  readonly role: string
  lostNs: number
  wallNs: number
  steps: number
  /** By worker, computing and in the operator. */
  readonly computingNs: Map<number, number>
  readonly timeNs: Map<number, number>
}

function lookAt(analysis: Analysis, { phase, calls, time_ns }: CallTime): Looked[] {
  const roles = sumsOf(analysis.operators.rows.filter((row) => row.phase === phase && row.workers.length > 1))
  if (roles.length === 0) return []
  const total = roles.reduce((sum, { lostNs, wallNs }) => ({ lost: sum.lost + lostNs, wall: sum.wall + wallNs }), {
    lost: 0,
    wall: 0,
  })
  const uneven = roles.filter((role) => {
    if (role.wallNs === 0) return false
    const idle = role.lostNs / role.wallNs
    const others = total.wall > role.wallNs ? (total.lost - role.lostNs) / (total.wall - role.wallNs) : 0
    return role.lostNs / time_ns >= SHARE.value && idle >= IDLE.value && idle >= TIMES.value * others
  })
  if (uneven.length === 0) {
    const [most] = roles
    const share = most!.lostNs / time_ns
    const lost = `${nameOf(most!)} loses most of ${phase} to an uneven split: ${percent(share)} of it`
    return [{ figure: share < SHARE.value ? lost : `no operator of ${phase} is split less evenly than the others` }]
  }
  return uneven.flatMap((role) => {
    const [busiest, busyNs] = [...role.computingNs].reduce((a, b) => (b[1] > a[1] ? b : a))
    const othersNs = [...role.computingNs.values()].reduce((sum, ns) => sum + ns, -busyNs) / (role.computingNs.size - 1)
    const sentence =
      `${percent(role.lostNs / time_ns)} of ${phase} is lost in ${nameOf(role)}: worker ${busiest} computes ` +
      `${othersNs > 0 ? `${number(busyNs / othersNs)} × as long as the others` : 'alone'}`
    return found(sentence, {
      time_ns: role.lostNs,
      ...confidenceOf(analysis, calls),
      evidence: {
        phase,
        role: role.role,
        op: role.op,
        lost_share: role.lostNs / time_ns,
        idle_share: role.lostNs / role.wallNs,
        steps: role.steps,
        worker: busiest,
        worker_time_ns: role.timeNs.get(busiest)!,
      },
      check: {
        sql:
          `select sum(s.dur) ${slicesIn(phase, 'operator')} and ${ofWorker(busiest)} ` +
          `and s.name = ${text(nameOf(role))}`,
        evidence: 'worker_time_ns',
      },
    })
  })
}

/** The name of its slices. */
const nameOf = ({ role, op }: OfRole) => (role === '' ? op : `${role} ${op}`)

/** By role and op, most lost time first. */
function sumsOf(rows: readonly OperatorRow[]): OfRole[] {
  const roles = new Map<string, OfRole>()
  for (const row of rows) {
    const { role, op, workers } = row
    const key = `${role} ${op}`
    const sums = roles.get(key) ?? {
      ...{ role, op, lostNs: 0, wallNs: 0, steps: 0 },
      computingNs: new Map<number, number>(),
      timeNs: new Map<number, number>(),
    }
    roles.set(key, sums)
    sums.lostNs += lostIn(row)
    sums.wallNs += row.wall_ns
    sums.steps += row.steps
    for (const part of workers) {
      sums.computingNs.set(part.worker, (sums.computingNs.get(part.worker) ?? 0) + computingNs(part))
      sums.timeNs.set(part.worker, (sums.timeNs.get(part.worker) ?? 0) + part.operator_time_ns)
    }
  }
  return [...roles.values()].sort((a, b) => b.lostNs - a.lostNs)
}
