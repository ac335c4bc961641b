import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { cpuList } from '../lib/model/topology.ts'

/** A core of a made machine. */
export interface MadeCore {
  readonly cpus: readonly number[]
  readonly package?: number
  readonly node?: number
  /** Intel's name of its kind. */
  readonly kind?: 'core' | 'atom' | 'lowpower'
  readonly capacity?: number
  readonly maxKhz?: number
  readonly limitKhz?: number
  readonly governor?: string
}

/** Writes the files of a machine's /sys that describe its CPUs, into a new folder; the recorder reads them by GGML2PERFETTO_SYS. */
export function makeSys(root: string, cores: readonly MadeCore[], more: Readonly<Record<string, string>> = {}): string {
  const write = (path: string, text: string) => {
    const file = join(root, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, `${text}\n`)
  }
  const those = (is: (core: MadeCore) => boolean) => cpuList(cores.filter(is).flatMap(({ cpus }) => cpus))
  write(
    'devices/system/cpu/online',
    those(() => true),
  )
  const nodes = [...new Set(cores.map(({ node = 0 }) => node))]
  write('devices/system/node/online', cpuList(nodes))
  for (const number of nodes)
    write(
      `devices/system/node/node${number}/cpulist`,
      those(({ node = 0 }) => node === number),
    )
  for (const name of ['core', 'atom', 'lowpower'] as const) {
    const cpus = those(({ kind }) => kind === name)
    if (cpus !== '') write(`devices/cpu_${name}/cpus`, cpus)
  }
  for (const core of cores) {
    const ofPackage = those(({ package: number = 0 }) => number === (core.package ?? 0))
    for (const cpu of core.cpus) {
      const at = `devices/system/cpu/cpu${cpu}`
      write(`${at}/topology/core_cpus_list`, cpuList(core.cpus))
      write(`${at}/topology/package_cpus_list`, ofPackage)
      if (core.capacity !== undefined) write(`${at}/cpu_capacity`, `${core.capacity}`)
      if (core.maxKhz !== undefined) write(`${at}/cpufreq/cpuinfo_max_freq`, `${core.maxKhz}`)
      if (core.limitKhz !== undefined) write(`${at}/cpufreq/scaling_max_freq`, `${core.limitKhz}`)
      if (core.governor !== undefined) write(`${at}/cpufreq/scaling_governor`, core.governor)
      const caches = [
        ['1', 'Data', '32K', cpuList(core.cpus)],
        ['1', 'Instruction', '32K', cpuList(core.cpus)],
        ['3', 'Unified', '32768K', ofPackage],
      ] as const
      for (const [i, [level, type, size, cpus]] of caches.entries()) {
        const files = { level, type, size, shared_cpu_list: cpus }
        for (const [name, text] of Object.entries(files)) write(`${at}/cache/index${i}/${name}`, text)
      }
    }
  }
  for (const [path, text] of Object.entries(more)) write(path, text)
  return root
}
