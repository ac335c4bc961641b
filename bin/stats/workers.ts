import { type Analysis, computingNs, partsOfWorker } from '../../lib/cli.ts'
import { count, percent } from '../units.ts'
import { number, type Section, some, tableOf, text } from './section.ts'

/** Rows of a table of roles. */
const ROLES_MAX = 8
/** Takers of CPUs that a row names. */
const TAKERS_MAX = 3

const named = ({ role, op }: { readonly role: string; readonly op: string }) => `${role} ${op}`.trim() || '(unnamed)'

/** What each worker did. */
export function workersSection({ workers, imbalance }: Analysis): Section | undefined {
  if (workers.length === 0) return undefined
  const rows = workers.map((worker) => ({ ...worker, parts: partsOfWorker(worker) }))
  type Row = (typeof rows)[number]
  const table = tableOf(rows, {}, [
    text('worker', ({ worker }) => String(worker)),
    number('operators', ({ executions }) => count(executions)),
    ...rows[0]!.parts.flatMap(({ what }, i) => {
      const rank = what === 'without a CPU' ? 1 : 0
      return [
        number<Row>(what, ({ parts }) => some(parts[i]!.time_ns), rank),
        number<Row>('share', ({ parts }) => some(parts[i]!.share, percent), rank),
      ]
    }),
    number('last to end', ({ last, steps }) => some(steps && last / steps, percent)),
    number('on another CPU', ({ moved_operators }) => some(moved_operators, count)),
  ])
  return { title: 'workers', tables: [table, ...imbalanceTable(imbalance)] }
}

/** Roles in which workers wait most for the slowest one. */
function imbalanceTable(imbalance: Analysis['imbalance']) {
  if (imbalance.length === 0) return []
  return [
    tableOf(imbalance, { max: ROLES_MAX }, [
      text('imbalance', named),
      text('phase', ({ phase }) => phase),
      number('slowest worker', ({ slowest_ns }) => some(slowest_ns)),
      number('mean', ({ mean_ns }) => some(mean_ns)),
      number('imbalance', ({ imbalance_share }) => some(imbalance_share, percent)),
      number('last worker', ({ last_worker, last_share }) => `${last_worker} in ${percent(last_share)}`),
    ]),
  ]
}

type Takers = NonNullable<Analysis['scheduling']>['workers'][number]['takers']

/** Time in which workers had no CPU, and who had it. */
export function schedulingSection({ scheduling }: Analysis): Section | undefined {
  if (!scheduling) return undefined
  const workers = tableOf(scheduling.workers, {}, [
    text('worker', ({ worker }) => String(worker)),
    text('phase', ({ phase }) => phase),
    number('calls', ({ call_time_ns }) => some(call_time_ns)),
    number('running', ({ running_ns }) => some(running_ns)),
    number('preempted', ({ preempted_ns }) => some(preempted_ns)),
    number('woken', ({ woken_ns }) => some(woken_ns)),
    number('blocked', ({ blocked_ns }) => some(blocked_ns)),
    number('unknown', ({ unknown_ns }) => some(unknown_ns)),
    number('preempted', ({ preempted_ns, call_time_ns }) => some(call_time_ns && preempted_ns / call_time_ns, percent)),
    number('times', ({ preemptions }) => some(preemptions, count)),
    number('migrations', ({ migrations }) => some(migrations, count)),
    text('by', ({ takers }) => takersText(takers)),
  ])
  const roles = tableOf(scheduling.roles, { max: ROLES_MAX }, [
    text('operator', named),
    text('phase', ({ phase }) => phase),
    number('computing', (role) => some(computingNs(role))),
    number('preempted', ({ preempted_ns }) => some(preempted_ns)),
    number('blocked', ({ blocked_ns }) => some(blocked_ns)),
    text('by', ({ takers }) => takersText(takers)),
  ])
  return { title: 'threads of workers in calls', tables: [workers, ...(roles.rows.length > 0 ? [roles] : [])] }
}

/** `stress-ng 9.2 %, git 2.1 %` */
function takersText(takers: Takers): string {
  return takers
    .slice(0, TAKERS_MAX)
    .map(({ comm, share }) => `${comm} ${percent(share)}`)
    .join(', ')
}
