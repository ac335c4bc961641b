import type { Analysis } from '../../lib/index.ts'
import { count, duration, percent } from '../units.ts'
import type { Section } from './section.ts'

/** Computing and waiting of each worker. */
export function workersSection({ workers, operators }: Analysis): Section | undefined {
  if (workers.length === 0) return undefined
  const steps = operators.rows.reduce((sum, row) => sum + row.steps, 0)
  // A log of one worker contains no waits.
  const known = (value: number, text: string) => (value > 0 ? text : '')
  const rows = workers.map(({ worker, executions, operator_time_ns, wait_ns, last }) => [
    String(worker),
    count(executions),
    duration(operator_time_ns),
    known(wait_ns, duration(wait_ns)),
    known(wait_ns, percent(wait_ns / (operator_time_ns + wait_ns || 1))),
    known(last, percent(last / (steps || 1))),
  ])
  const titles = ['worker', 'operators', 'computing', 'barrier wait', 'share of waiting', 'last to end']
  return { title: 'workers', tables: [{ columns: titles.map((title) => ({ title })), rows }] }
}
