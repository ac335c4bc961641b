import type { AffinityEvent } from '../../model/events.ts'
import type { Names } from '../../model/names.ts'
import { cpusOf, cpuTitle, topologyOf } from '../../model/topology.ts'

/** Finds the workers whose threads may run on one CPU only, always the same. */
export class WorkerCpus {
  /** By worker; undefined: it may run on several. */
  private readonly only = new Map<number, number | undefined>()

  constructor(private readonly names: Names) {}

  add({ worker, allowed }: AffinityEvent): void {
    const cpus = cpusOf(this.names.text(allowed))
    const only = cpus.length === 1 ? cpus[0] : undefined
    const isSame = !this.only.has(worker) || this.only.get(worker) === only
    this.only.set(worker, isSame ? only : undefined)
  }

  /** `CPU 11 (E, node 1)` by worker; `attributes`: those of the input, with the machine's topology. */
  titles(attributes: Readonly<Record<string, string | number>>): Map<number, string> {
    const topology = topologyOf(attributes)
    return new Map(
      [...this.only].flatMap(([worker, cpu]) => (cpu === undefined ? [] : [[worker, cpuTitle(cpu, topology)]])),
    )
  }
}
