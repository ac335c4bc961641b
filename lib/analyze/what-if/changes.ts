import { checkNames, UsageError } from '../../errors.ts'
import { typeNamed } from '../../model/ggml-types.ts'
import { plural } from '../../model/units.ts'
import type { Changes, Disturbance } from './figures.ts'

/** All values of {@link Disturbance}. */
export const DISTURBANCES = ['preempted', 'faults', 'first-call'] as const satisfies readonly Disturbance[]

/** Throws UsageError for changes that nothing can be predicted for. */
export function checkChanges(changes: Changes): void {
  checkNames('what-if', changes, ['context', 'without', 'threads', 'type', 'batch', 'experts'])
  const { context, without = [], threads, type, batch, experts } = changes
  if ([context, threads, type, batch, experts].every((change) => change === undefined) && without.length === 0)
    throw new UsageError(
      'what-if: no change is given\nhint: such as --context 4096, --threads 8, or --without preempted',
    )
  const counts = {
    context: [context, 'tokens'],
    threads: [threads, 'threads'],
    batch: [batch, 'sequences'],
    experts: [experts, 'experts'],
  } as const
  for (const [name, [value, what]] of Object.entries(counts)) {
    if (value !== undefined && !(Number.isInteger(value) && value >= 1))
      throw new UsageError(`what-if: ${name} ${value}: expected ${what}, a whole number from 1 on`)
  }
  if (type !== undefined && !typeNamed(type))
    throw new UsageError(`what-if: type ${type}: no type of ggml\nhint: such as q4_0, q4_K, q8_0 or f16`)
  const unknown = without.find((what) => !DISTURBANCES.includes(what))
  if (unknown !== undefined)
    throw new UsageError(`what-if: without ${unknown}: expected one of ${DISTURBANCES.join(', ')}`)
}

const UNDISTURBED: Readonly<Record<Disturbance, string>> = {
  preempted: 'no call lost a CPU',
  faults: 'no call had page faults that read',
  'first-call': 'there is no first call to leave out',
}

/** Why changes do nothing in a run: it is so already. */
export function alreadySo({ context, without = [], threads, type, batch, experts }: Changes): string[] {
  const has = (what: string, value: number | string | undefined) =>
    value === undefined
      ? []
      : [`the run has ${typeof value === 'number' ? plural(value, what) : `${what} ${value}`} already`]
  return [
    ...without.map((what) => UNDISTURBED[what]),
    ...has('token', context).map((text) => text.replace('already', 'in its prompt already')),
    ...has('thread', threads),
    ...has('weights of type', type),
    ...has('sequence', batch),
    ...has('expert', experts).map((text) => text.replace('already', 'for each token already')),
  ]
}
