import { checkNames, UsageError } from '../../errors.ts'
import type { Changes, Disturbance } from './figures.ts'

/** All values of {@link Disturbance}. */
export const DISTURBANCES = ['preempted', 'faults', 'first-call'] as const satisfies readonly Disturbance[]

/** Throws UsageError for changes that nothing can be predicted for. */
export function checkChanges(changes: Changes): void {
  checkNames('what-if', changes, ['context', 'without'])
  const { context, without = [] } = changes
  if (context === undefined && without.length === 0)
    throw new UsageError('what-if: no change is given\nhint: such as --context 4096, or --without preempted')
  if (context !== undefined && !(Number.isInteger(context) && context >= 1))
    throw new UsageError(`what-if: context ${context}: expected tokens, a whole number from 1 on`)
  const unknown = without.find((what) => !DISTURBANCES.includes(what))
  if (unknown !== undefined)
    throw new UsageError(`what-if: without ${unknown}: expected one of ${DISTURBANCES.join(', ')}`)
}
