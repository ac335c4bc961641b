/** Highest number of a CPU in a list, plus one; those above it are left out. */
const CPUS_MAX = 4096

/** The CPUs in a list of the kernel: `0-3,8`. */
export function cpusOf(list: string): number[] {
  return list.split(',').flatMap((part) => {
    const [, first, last = first] = /^(\d+)(?:-(\d+))?$/.exec(part.trim()) ?? []
    const [from, to] = [Number(first), Math.min(Number(last), CPUS_MAX - 1)]
    return from <= to ? Array.from({ length: to - from + 1 }, (_, i) => from + i) : []
  })
}

/** The list of these CPUs, as the kernel writes it. */
export function cpuList(cpus: Iterable<number>): string {
  const sorted = [...new Set(cpus)].sort((a, b) => a - b)
  const parts: string[] = []
  for (let i = 0; i < sorted.length; i++) {
    const first = sorted[i]!
    while (sorted[i + 1] === sorted[i]! + 1) i++
    parts.push(sorted[i] === first ? `${first}` : `${first}-${sorted[i]}`)
  }
  return parts.join(',')
}

/** A kind of cores: performance, efficiency, or the efficient ones outside of the cores' ring (Intel's low power). */
export type CoreKind = 'P' | 'E' | 'LP'

/** One logical CPU. What is not known is -1, or undefined. */
export interface Cpu {
  readonly cpu: number
  /** The lowest CPU of its core. */
  readonly core: number
  readonly package: number
  readonly node: number
  /** Undefined where all cores are of one kind. */
  readonly kind: CoreKind | undefined
  /** Of the kernel: 1024 is the fastest. */
  readonly capacity: number
  /** Highest clock, and the one that the kernel permits. */
  readonly maxKhz: number
  readonly limitKhz: number
  readonly governor: string
  /** Its last cache, such as `L3 32768K`, and the lowest CPU that shares it. */
  readonly cache: string
  readonly cacheOf: number
}

/** The CPUs of a machine, by number. */
export type Topology = ReadonlyMap<number, Cpu>

type Facts = Readonly<Record<string, string | number>>

/** Cores with less than this part of the highest capacity or clock are of another kind: clocks of one kind differ by less. */
const OTHER_KIND = 0.8

/** The topology in the facts of a log (`topology.…`); undefined where it has none. */
export function topologyOf(facts: Facts): Topology | undefined {
  const text = (key: string) => String(facts[`topology.${key}`] ?? '')
  const groups = (key: string) => (text(key) === '' ? [] : text(key).split('|'))
  const cores = groups('cores').map(cpusOf)
  if (cores.length === 0) return undefined
  const coreOf = new Map(cores.flatMap((cpus) => cpus.map((cpu) => [cpu, Math.min(...cpus)] as const)))
  // Attributes are those of the first CPU of a core.
  const byCore = (key: string) => valuesOf(groups(key))
  const [capacity, maxKhz, limitKhz] = [byCore('capacity'), byCore('max_khz'), byCore('limit_khz')]
  const [governor, node, kinds] = [byCore('governor'), valuesOf(groups('nodes')), valuesOf(groups('kinds'))]
  const packages = new Map(groups('packages').flatMap((list, i) => cpusOf(list).map((cpu) => [cpu, i] as const)))
  const caches = new Map(
    groups('caches').flatMap((group) => {
      const [name = '', list = ''] = group.split(':')
      const cpus = cpusOf(list)
      return cpus.map((cpu) => [cpu, [name, Math.min(...cpus)] as const] as const)
    }),
  )
  const numbers = (values: ReadonlyMap<number, string>, core: number) => Number(values.get(core) ?? -1)
  const measure = capacity.size > 0 && new Set(capacity.values()).size > 1 ? capacity : maxKhz
  const most = Math.max(0, ...[...measure.values()].map(Number))
  const kindOf = (cpu: number, core: number): CoreKind | undefined => {
    if (kinds.size > 0) return KINDS[kinds.get(cpu) ?? '']
    const value = numbers(measure, core)
    return most === 0 || value < 0 ? undefined : value < OTHER_KIND * most ? 'E' : 'P'
  }
  const all = [...coreOf].map(([cpu, core]): Cpu => {
    const [cache, cacheOf] = caches.get(cpu) ?? ['', -1]
    return {
      ...{ cpu, core, package: packages.get(cpu) ?? -1, node: Number(node.get(cpu) ?? -1), kind: kindOf(cpu, core) },
      ...{ capacity: numbers(capacity, core), maxKhz: numbers(maxKhz, core), limitKhz: numbers(limitKhz, core) },
      ...{ governor: governor.get(core) ?? '', cache, cacheOf },
    }
  })
  const hasKinds = new Set(all.map(({ kind }) => kind)).size > 1
  all.sort((a, b) => a.cpu - b.cpu)
  return new Map(all.map((cpu) => [cpu.cpu, hasKinds ? cpu : { ...cpu, kind: undefined }]))
}

/** The NUMA nodes in the facts of a log, with their CPUs, as numbers and as the list of the kernel. */
export function nodesOf(
  facts: Facts,
): { readonly node: number; readonly cpus: readonly number[]; readonly list: string }[] {
  const text = String(facts['topology.nodes'] ?? '')
  return text.split('|').flatMap((group) => {
    const [node = '', list = ''] = group.split(':')
    return /^\d{1,4}$/.test(node) ? [{ node: Number(node), cpus: cpusOf(list), list }] : []
  })
}

/** Intel's names of kinds. */
const KINDS: Readonly<Record<string, CoreKind>> = { core: 'P', atom: 'E', lowpower: 'LP' }

/** `value:cpus` groups, by CPU. */
const valuesOf = (groups: readonly string[]): Map<number, string> =>
  new Map(
    groups.flatMap((group) => {
      const at = group.lastIndexOf(':')
      return cpusOf(group.slice(at + 1)).map((cpu) => [cpu, group.slice(0, at)] as const)
    }),
  )

/** `CPU 11 (E, node 1)`: the kind where cores differ, the node where there are several. */
export function cpuTitle(cpu: number, topology: Topology | undefined): string {
  const known = topology?.get(cpu)
  const hasNodes = topology !== undefined && new Set([...topology.values()].map(({ node }) => node)).size > 1
  const parts = [known?.kind, hasNodes && known && known.node >= 0 ? `node ${known.node}` : undefined]
  const texts = parts.filter((part) => part !== undefined)
  return texts.length > 0 ? `CPU ${cpu} (${texts.join(', ')})` : `CPU ${cpu}`
}
