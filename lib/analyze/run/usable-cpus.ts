import { cpusOf } from '../../model/topology.ts'

type Facts = Readonly<Record<string, string | number>>

/** Kinds of places for which OpenMP takes all CPUs that the program may use. */
const ALL_PLACES = /^(threads|cores|sockets|ll_caches|numa_domains)$/i
const UNBOUND = /^(false|none|disabled|norespect)?$/i

/** The variable of the environment that sets the places of OpenMP's threads. */
export interface Binding {
  readonly variable: string
  /** It names the CPUs, and does not take all that the program may use. */
  readonly namesCpus: boolean
}

/** The variable by which OpenMP binds threads, the one that loads it included: then its affinity is not the program's. */
export function bindingOf(variables: Readonly<Record<string, string | number | undefined>>): Binding | undefined {
  const value = (name: string) => String(variables[name] ?? '').trim()
  const isOff = (name: string) => value(name) === '' || UNBOUND.test(value(name))
  if (/^false$/i.test(value('OMP_PROC_BIND'))) return undefined
  const named = ['OMP_PLACES', 'GOMP_CPU_AFFINITY', 'KMP_AFFINITY'].find((name) => !isOff(name))
  const name = named ?? (isOff('OMP_PROC_BIND') ? undefined : 'OMP_PROC_BIND')
  if (name === undefined) return undefined
  const namesCpus =
    name === 'OMP_PLACES' ? !ALL_PLACES.test(value(name)) : name !== 'OMP_PROC_BIND' && /\d/.test(value(name))
  return { variable: `${name}=${value(name)}`, namesCpus }
}

/**
 * The CPUs that the program may use, from the facts of a log and the affinities of its workers (lists of the kernel). OpenMP may have bound the thread whose affinity the
 * facts contain: then they are those of all workers; where a variable names CPUs, those of the control group, or of the machine. Undefined: not known.
 */
export function usableCpusOf(facts: Facts, ofWorkers: readonly string[]): number[] | undefined {
  const text = (key: string) => (facts[key] === undefined ? undefined : String(facts[key]))
  const recorded = text('cpus.allowed_list')
  const binding = bindingOfFacts(facts)
  if (!binding) return recorded === undefined ? undefined : cpusOf(recorded)
  const wider = binding.namesCpus ? (text('cpuset.cpus') ?? text('topology.online')) : undefined
  const all = new Set([recorded ?? '', wider ?? '', ...ofWorkers].flatMap((list) => cpusOf(list)))
  return all.size > 0 ? [...all].sort((a, b) => a - b) : undefined
}

/** The variable that binds the threads of a log; undefined where its threads are not OpenMP's. */
function bindingOfFacts(facts: Facts): Binding | undefined {
  if (facts['threads.runtime'] !== 'openmp') return undefined
  return bindingOf(Object.fromEntries(Object.entries(facts).map(([key, value]) => [key.replace(/^env\./, ''), value])))
}

/** The lists of CPUs on which workers might run. */
export const listsOf = (ofWorkers: readonly ReadonlyMap<string, number>[]): string[] =>
  ofWorkers.flatMap((lists) => [...lists.keys()])
