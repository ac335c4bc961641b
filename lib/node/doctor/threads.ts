import { readFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { cpusOf } from '../../model/topology.ts'

/** Numbers of threads to try. */
export interface ThreadCounts {
  /** Ascending. */
  readonly all: readonly number[]
  /** What llama.cpp takes by default: one for each core. */
  readonly usual: number
}

/** One thread, half the cores, all cores, all CPUs: of those that this process may use (affinity; limits of CPU time where Node knows them). */
export async function threadCounts(): Promise<ThreadCounts> {
  const cpus = availableParallelism()
  const usual = Math.min((await coresOf(await allowedCpus())) || cpus, cpus)
  const counts = new Set([1, Math.ceil(usual / 2), usual, cpus])
  return { all: [...counts].sort((a, b) => a - b), usual }
}

async function allowedCpus(): Promise<number[]> {
  const status = await readFile('/proc/self/status', 'latin1').catch(() => '')
  return cpusOf(/^Cpus_allowed_list:\s*(.*)$/m.exec(status)?.[1] ?? '')
}

/** The number of cores of these CPUs; 0: not known. */
async function coresOf(cpus: readonly number[]): Promise<number> {
  const siblings = await Promise.all(
    cpus.map((cpu) =>
      readFile(`/sys/devices/system/cpu/cpu${cpu}/topology/thread_siblings_list`, 'latin1').catch(() => undefined),
    ),
  )
  return siblings.includes(undefined) ? 0 : new Set(siblings).size
}
