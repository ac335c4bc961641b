import { type Analysis, computingNs, partsOfWorker } from '../../lib/cli.ts'
import { count, duration, percent } from '../units.ts'
import { type Column, firstRows, more, type Section } from './section.ts'

/** Rows of a table of roles. */
const ROLES_MAX = 8
/** Takers of CPUs that a row names. */
const TAKERS_MAX = 3

const text = (title: string): Column => ({ title, isText: true })
const numbers = (...titles: readonly string[]): Column[] => titles.map((title) => ({ title }))
/** Zeros are not shown: a log of one worker contains no waits. */
const ns = (value: number | null) => (value === null || value === 0 ? '' : duration(value))
const share = (value: number | null) => (value === null || value === 0 ? '' : percent(value))
const named = ({ role, op }: { readonly role: string; readonly op: string }) => `${role} ${op}`.trim() || '(unnamed)'

/** What each worker did. */
export function workersSection({ workers, imbalance }: Analysis): Section | undefined {
  if (workers.length === 0) return undefined
  const rows = workers.map((worker) => [
    String(worker.worker),
    count(worker.executions),
    ...partsOfWorker(worker).flatMap((part) => [ns(part.time_ns), share(part.share)]),
    worker.steps > 0 ? share(worker.last / worker.steps) : '',
    worker.moved_operators > 0 ? count(worker.moved_operators) : '',
  ])
  const timed = (title: string, rank = 0) => [title, 'share'].map((title) => ({ title, rank }))
  const times = [...timed('computing'), ...timed('without a CPU', 1), ...timed('barrier wait'), ...timed('idle')]
  const columns = [text('worker'), { title: 'operators' }, ...times, ...numbers('last to end', 'on another CPU')]
  return { title: 'workers', tables: [{ columns, rows }, ...imbalanceTable(imbalance)] }
}

/** Roles in which workers wait most for the slowest one. */
function imbalanceTable(imbalance: Analysis['imbalance']) {
  if (imbalance.length === 0) return []
  const { shown, rest } = firstRows(imbalance, ROLES_MAX)
  const rows = shown.map((imbalance) => [
    named(imbalance),
    imbalance.phase,
    ns(imbalance.slowest_ns),
    ns(imbalance.mean_ns),
    share(imbalance.imbalance_share),
    `${imbalance.last_worker} in ${percent(imbalance.last_share)}`,
  ])
  if (rest.length > 0) rows.push([more(rest), '', '', '', '', ''])
  const columns = [text('imbalance'), text('phase'), ...numbers('slowest worker', 'mean', 'imbalance', 'last worker')]
  return [{ columns, rows }]
}

type Takers = NonNullable<Analysis['scheduling']>['workers'][number]['takers']

/** Time in which workers had no CPU, and who had it. */
export function schedulingSection({ scheduling }: Analysis): Section | undefined {
  if (!scheduling) return undefined
  const off = ['preempted', 'woken', 'blocked']
  const workers = scheduling.workers.map((worker) => [
    String(worker.worker),
    worker.phase,
    ...[
      worker.call_time_ns,
      worker.running_ns,
      worker.preempted_ns,
      worker.woken_ns,
      worker.blocked_ns,
      worker.unknown_ns,
    ].map(ns),
    share(worker.call_time_ns > 0 ? worker.preempted_ns / worker.call_time_ns : null),
    worker.preemptions > 0 ? count(worker.preemptions) : '',
    worker.migrations > 0 ? count(worker.migrations) : '',
    takersText(worker.takers),
  ])
  const times = numbers('calls', 'running', ...off, 'unknown', 'preempted', 'times', 'migrations')
  const { shown, rest } = firstRows(scheduling.roles, ROLES_MAX)
  const roles = shown.map((scheduling) => {
    const times = [computingNs(scheduling), scheduling.preempted_ns, scheduling.blocked_ns].map(ns)
    return [named(scheduling), scheduling.phase, ...times, takersText(scheduling.takers)]
  })
  if (rest.length > 0) roles.push([more(rest), '', '', '', '', ''])
  const ofRoles = [text('operator'), text('phase'), ...numbers('computing', 'preempted', 'blocked'), text('by')]
  return {
    title: 'threads of workers in calls',
    tables: [
      { columns: [text('worker'), text('phase'), ...times, text('by')], rows: workers },
      ...(roles.length > 0 ? [{ columns: ofRoles, rows: roles }] : []),
    ],
  }
}

/** `stress-ng 9.2 %, git 2.1 %` */
function takersText(takers: Takers): string {
  return takers
    .slice(0, TAKERS_MAX)
    .map(({ comm, share }) => `${comm} ${percent(share)}`)
    .join(', ')
}
