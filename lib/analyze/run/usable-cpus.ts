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

/** What a log contains of workers and CPUs. */
export interface SeenWorkers {
  /** CPUs on which workers ran. */
  readonly cpusOfWorkers: readonly number[]
  readonly workerCpus?:
    | {
        /** CPUs of all workers at the starts of graphs, separated by blanks; -1: not known. */
        readonly together: ReadonlyMap<string, number>
        /** Of each worker, its affinities as lists of the kernel. */
        readonly allowed: readonly ReadonlyMap<string, number>[]
      }
    | undefined
}

/** The CPUs that a program may use. */
export interface UsableCpus {
  readonly cpus: readonly number[]
  /** How it was inferred, where the log does not contain it. */
  readonly inferred?: string
}

/**
 * The CPUs that the program may use, from the facts of a log and its workers. The affinity among the facts is that of one thread: each worker adds those of its own, and those on
 * which it ran. Where a variable of OpenMP names CPUs, those of the control group, or of the machine, are added. Undefined: not known.
 */
export function usableCpusOf(facts: Facts, { cpusOfWorkers, workerCpus }: SeenWorkers): UsableCpus | undefined {
  const text = (key: string) => (facts[key] === undefined ? undefined : String(facts[key]))
  const binding = bindingOfFacts(facts)
  const recorded = text('cpus.allowed_list')
  if (recorded === undefined && !binding) return undefined
  const wider = binding?.namesCpus ? (text('cpuset.cpus') ?? text('topology.online')) : undefined
  const lists = [recorded ?? '', wider ?? '', ...(workerCpus?.allowed ?? []).flatMap((lists) => [...lists.keys()])]
  const began = [...(workerCpus?.together.keys() ?? [])].flatMap((key) => key.split(' ').map(Number))
  const all = new Set([...lists.flatMap((list) => cpusOf(list)), ...began, ...cpusOfWorkers].filter((cpu) => cpu >= 0))
  if (all.size === 0) return undefined
  const cpus = [...all].sort((a, b) => a - b)
  if (!binding) return { cpus }
  const of = wider === undefined ? 'a lower bound, the CPUs of its workers' : 'all CPUs that the machine leaves it'
  return { cpus, inferred: `${binding.variable} binds the thread whose affinity the log contains: ${of}` }
}

/** The variable that binds the threads of a log; undefined where its threads are not OpenMP's. */
function bindingOfFacts(facts: Facts): Binding | undefined {
  if (facts['threads.runtime'] !== 'openmp') return undefined
  return bindingOf(Object.fromEntries(Object.entries(facts).map(([key, value]) => [key.replace(/^env\./, ''), value])))
}
