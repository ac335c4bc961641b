import { DefaultMap } from '../../model/default-map.ts'
import { type Cpu, cpuList, cpusOf, type Topology, topologyOf } from '../../model/topology.ts'
import { type SeenWorkers, usableCpusOf } from '../run/usable-cpus.ts'
import type {
  CoreKindFigures,
  CoreKindTimes,
  MachineFigures,
  PlaceFigures,
  TeamFigures,
  ThreadFigures,
  WorkerPlace,
} from './figures.ts'
import type { WorkerCpus } from './worker-cpus.ts'

type Facts = Readonly<Record<string, string | number>>

/** CPUs of a worker that are listed. */
const LISTED_MAX = 8
const POOL = /^threads\.pool\.\d+$/

const textIn = (facts: Facts, key: string) => (facts[key] === undefined ? null : String(facts[key]))

/** The machine, of the facts of a log and its workers; null where they do not contain it. */
export function machineOf(facts: Facts, seen: SeenWorkers): MachineFigures | null {
  const topology = topologyOf(facts)
  const online = textIn(facts, 'topology.online')
  if (!topology || online === null) return null
  const cpus = [...topology.values()]
  const count = (key: 'package' | 'node' | 'core') => new Set(cpus.map((cpu) => cpu[key])).size
  const siblings = grouped(cpus, ({ core }) => core)
  const caches = grouped(
    [...new Set(cpus.flatMap(({ cache, cacheOf }) => (cache === '' ? [] : `${cacheOf}: ${cache}`)))],
    (cache) => cache.replace(/^\d+: /, ''),
  )
  const boost = textIn(facts, 'topology.boost')
  const usable = usableCpusOf(facts, seen)
  return {
    online,
    allowed: usable ? cpuList(usable.cpus) : null,
    cpuset: textIn(facts, 'cpuset.cpus'),
    packages: count('package'),
    nodes: count('node'),
    cores: count('core'),
    cpus_per_core: Math.max(...[...siblings.values()].map(({ length }) => length)),
    kinds: [...grouped(cpus, ({ kind }) => kind)].map(([kind, cpus]) => kindOf(kind ?? null, cpus)),
    caches: [...caches].map(([name, groups]) => ({ name, count: groups.length })),
    boost: boost === null ? null : boost !== '0',
    missing: textIn(facts, 'topology.missing'),
  }
}

function grouped<T, K>(all: readonly T[], keyOf: (one: T) => K): Map<K, T[]> {
  const groups = new DefaultMap<K, T[]>(() => [])
  for (const one of all) groups.of(keyOf(one)).push(one)
  return groups
}

function kindOf(kind: string | null, cpus: readonly Cpu[]): CoreKindFigures {
  const most = (key: 'capacity' | 'maxKhz' | 'limitKhz', factor: number) => {
    const highest = Math.max(...cpus.map((cpu) => cpu[key]))
    return highest < 0 ? null : highest * factor
  }
  return {
    kind,
    cpus: cpuList(cpus.map(({ cpu }) => cpu)),
    cores: new Set(cpus.map(({ core }) => core)).size,
    capacity: most('capacity', 1),
    max_hz: most('maxKhz', 1000),
    limit_hz: most('limitKhz', 1000),
    governors: [...new Set(cpus.map(({ governor }) => governor))].filter((governor) => governor !== ''),
  }
}

/** The threads that compute, of the facts of a log and what its calls add; null where nothing is known of them. */
export function threadsOf(
  facts: Facts,
  teams: TeamFigures | null,
  seen: SeenWorkers & { readonly workerCpus: WorkerCpus | undefined },
  coreKinds: CoreKindTimes | null,
): ThreadFigures | null {
  const { workerCpus } = seen
  const runtime = textIn(facts, 'threads.runtime')
  if (runtime === null && !teams && !workerCpus) return null
  return {
    runtime: runtime === 'openmp' || runtime === 'pool' ? runtime : null,
    openmp: textIn(facts, 'threads.openmp'),
    // Those at the first graph, and those at the end.
    openmp_loaded: [...new Set(textIn(facts, 'threads.openmp_loaded')?.split('; ') ?? [])],
    pools: Object.keys(facts).flatMap((key) => (POOL.test(key) ? [String(facts[key])] : [])),
    teams,
    places: workerCpus ? placesOf(facts, workerCpus, usableCpusOf(facts, seen)?.cpus) : null,
    by_core_kind: coreKinds,
  }
}

/** CPUs of workers that began at the same time, and for how long. */
interface Together {
  readonly cpus: readonly number[]
  readonly ns: number
}

function placesOf(
  facts: Facts,
  { together, allowed, moves }: WorkerCpus,
  usable: readonly number[] = cpusOf(textIn(facts, 'topology.online') ?? ''),
): PlaceFigures {
  const topology = topologyOf(facts)
  const all = [...together].map(([key, ns]): Together => ({ cpus: key.split(' ').map(Number), ns }))
  const allNs = all.reduce((sum, { ns }) => sum + ns, 0)
  const shareOf = (ns: number) => (allNs > 0 ? ns / allNs : 0)
  const share = (is: (cpus: readonly number[]) => boolean) =>
    shareOf(all.reduce((sum, { cpus, ns }) => sum + (is(cpus) ? ns : 0), 0))
  const hasKinds = topology !== undefined && [...topology.values()].some(({ kind }) => kind !== undefined)
  const workers = allowed.map((lists, worker): WorkerPlace => {
    const byCpu = new Map<number, number>()
    for (const { cpus, ns } of all) {
      const cpu = cpus[worker] ?? -1
      if (cpu >= 0) byCpu.set(cpu, (byCpu.get(cpu) ?? 0) + ns)
    }
    const kinds: Record<string, number> = {}
    for (const [cpu, ns] of byCpu) {
      const kind = topology?.get(cpu)?.kind
      if (kind) kinds[kind] = (kinds[kind] ?? 0) + shareOf(ns)
    }
    return {
      worker,
      allowed: byTime(lists).flatMap(([cpus, ns]) => (cpus === '' ? [] : { cpus, share: shareOf(ns) })),
      cpus: byTime(byCpu)
        .slice(0, LISTED_MAX)
        .map(([cpu, ns]) => ({ cpu, share: shareOf(ns) })),
      by_kind: kinds,
      moves: moves[worker] ?? 0,
    }
  })
  return {
    time_ns: allNs,
    workers,
    shared_core_share: topology ? share((cpus) => shareCore(cpus, topology, usable)) : null,
    slow_core_share: topology && hasKinds ? share((cpus) => areSlow(cpus, topology, usable)) : null,
    crowded: crowdedIn(workers, usable.length),
  }
}

const byTime = <K>(times: ReadonlyMap<K, number>) => [...times].sort(([, a], [, b]) => b - a)

const coresOf = (cpus: readonly number[], topology: Topology) =>
  new Set(cpus.flatMap((cpu) => topology.get(cpu)?.core ?? []))

/** Are two workers on different CPUs of one core, while a core is free that they might use? */
function shareCore(cpus: readonly number[], topology: Topology, usable: readonly number[]): boolean {
  const different = [...new Set(cpus.filter((cpu) => topology.has(cpu)))]
  const used = coresOf(different, topology)
  return used.size < different.length && used.size < coresOf(usable, topology).size
}

/** Is a worker on a slower kind of core, while one of the fastest kind is free that it might use? */
function areSlow(cpus: readonly number[], topology: Topology, usable: readonly number[]): boolean {
  const isFast = (cpu: number) => topology.get(cpu)?.kind === 'P'
  const isSlow = cpus.some((cpu) => topology.has(cpu) && !isFast(cpu))
  return isSlow && coresOf(cpus.filter(isFast), topology).size < coresOf(usable.filter(isFast), topology).size
}

/** Was a worker mostly on these CPUs, where it is known? Where it ran is the truth, not its affinity when a call began. */
function ranWithin({ cpus: ran }: WorkerPlace, cpus: readonly number[]): boolean {
  const share = (of: WorkerPlace['cpus']) => of.reduce((sum, { share }) => sum + share, 0)
  return share(ran.filter(({ cpu }) => cpus.includes(cpu))) >= share(ran) / 2
}

/** Workers that may run on fewer CPUs than they are, though the program may use more. */
function crowdedIn(workers: readonly WorkerPlace[], usable: number): PlaceFigures['crowded'] {
  const lists = workers.flatMap((place) => {
    const cpus = cpusOf(place.allowed[0]?.cpus ?? '')
    return cpus.length > 0 && ranWithin(place, cpus) ? [{ worker: place.worker, cpus }] : []
  })
  for (const { cpus } of lists.toSorted((a, b) => a.cpus.length - b.cpus.length)) {
    const within = lists.filter((other) => other.cpus.every((cpu) => cpus.includes(cpu)))
    if (within.length > cpus.length && cpus.length < usable)
      return { cpus: cpuList(cpus), workers: within.map(({ worker }) => worker) }
  }
  return null
}
