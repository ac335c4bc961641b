import { percent, plural, threeDigits } from '../../model/units.ts'
import { CORE_KINDS } from './core-kinds.ts'
import type { CoreKindFigures, MachineFigures, TeamFigures, ThreadFigures, WorkerPlace } from './figures.ts'

interface Known {
  readonly machine: MachineFigures | null
  readonly threads: ThreadFigures | null
}

type Fact = readonly [label: string, text: string]

/** The machine and the threads of an Analysis, as facts with their labels; none where neither is known. */
export function machineWords({ machine, threads }: Known): Fact[] {
  const facts = [...(machine ? ofMachine(machine) : []), ...(threads ? ofThreads(threads) : [])]
  return facts.filter(([, text]) => text !== '')
}

function ofMachine({ online, allowed, cpuset, cores, packages, nodes, kinds, caches, boost, missing }: MachineFigures) {
  const places = [plural(packages, 'package'), ...(nodes > 1 ? [plural(nodes, 'node')] : [])]
  const facts: Fact[] = [
    ['CPUs', [online, ...(allowed === null || allowed === online ? [] : [`may use ${allowed}`])].join(', ')],
    ['cpuset', cpuset === null || cpuset === online ? '' : cpuset],
    ['cores', [plural(cores, 'core'), ...places].join(', ')],
    ...kinds.map((kind): Fact => [kind.kind === null ? 'clock' : `${kind.kind} cores`, kindText(kind)]),
    ['caches', caches.map(({ name, count }) => (count > 1 ? `${count} × ${name}` : name)).join(', ')],
    ['boost', boost === null ? '' : boost ? 'on' : 'off'],
    ['not read', missing ?? ''],
  ]
  return facts
}

const gigahertz = (hz: number) => `${threeDigits(hz / 1e9)} GHz`

function kindText({ kind, cpus, cores, capacity, max_hz, limit_hz, governors }: CoreKindFigures): string {
  const isLimited = max_hz !== null && limit_hz !== null && limit_hz < max_hz
  return [
    ...(kind === null ? [] : [cpus, plural(cores, 'core')]),
    ...(kind === null || capacity === null ? [] : [`capacity ${capacity}`]),
    ...(max_hz === null ? [] : [`up to ${gigahertz(max_hz)}`]),
    ...(isLimited ? [`limited to ${gigahertz(limit_hz)}`] : []),
    ...governors,
  ].join(', ')
}

function ofThreads({ runtime, openmp, openmp_loaded, pools, teams, places }: ThreadFigures): Fact[] {
  const name = (path: string) => path.replace(/^.*\//, '')
  const others = openmp_loaded.filter((path) => path !== openmp)
  const whose = runtime === 'openmp' ? `of OpenMP (${name(openmp ?? '?')})` : `of ggml's pool`
  return [
    ['threads', runtime === null ? '' : whose],
    ['also loaded', others.map(name).join(', ')],
    ['pools', pools.join('; ')],
    ['teams', teams && teams.teams > 1 ? teamsText(teams) : ''],
    ['shared cores', places?.shared_core_share ? `${percent(places.shared_core_share)} of the time of calls` : ''],
    ['slow cores', places?.slow_core_share ? `${percent(places.slow_core_share)} of the time of calls` : ''],
  ]
}

/** `3 in 40 calls; 20 calls by another thread than the call before, 20 with other workers; 12 new threads` */
function teamsText({ teams, calls, moved_calls, changed_calls, new_threads }: TeamFigures): string {
  const changes = [
    ...(moved_calls > 0 ? [`${plural(moved_calls, 'call')} by another thread than the call before`] : []),
    ...(changed_calls > 0 ? [`${plural(changed_calls, 'call')} with other workers than the call before`] : []),
    ...(new_threads > 0 ? [`${plural(new_threads, 'new thread')} after the first call`] : []),
  ]
  return [`${teams} in ${plural(calls, 'call')}`, ...changes].join('; ')
}

/** `CPU 0 61 %, CPU 3 39 %`: where a worker began, most time first. */
export const cpusOfWorker = ({ cpus }: WorkerPlace): string =>
  cpus.map(({ cpu, share }) => `CPU ${cpu} ${percent(share)}`).join(', ')

/** `P 80 %, E 20 %`: by kind of core. */
export const kindsOfWorker = ({ by_kind }: WorkerPlace): string =>
  Object.entries(by_kind)
    .sort(([, a], [, b]) => b - a)
    .map(([kind, share]) => `${kind} ${percent(share)}`)
    .join(', ')

/** Kinds of cores of these rows, the fastest first. */
export const coreKindsIn = (rows: readonly { readonly kinds: readonly { readonly kind: string }[] }[]): string[] => {
  const found = new Set(rows.flatMap(({ kinds }) => kinds.map(({ kind }) => kind)))
  return CORE_KINDS.filter((kind) => found.has(kind))
}
