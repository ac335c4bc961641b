import { availableParallelism } from 'node:os'
import { modelIn } from '../bench-folder.mjs'

const isNamed = ({ rule }) => rule === 'more-threads-than-cpus'

/** Twice as many threads as CPUs. */
export const moreThreads = {
  id: 'more-threads',
  title: 'more threads than CPUs',
  builds: ['pool', 'openmp'],
  isNamed,
  async create({ folder, build }) {
    const threads = 2 * availableParallelism()
    return { command: build.decode({ model: await modelIn(folder, 'tinyMoe'), threads, tokens: 24 }) }
  },
}

/** All threads may run on one CPU only. */
export const oneCpu = {
  id: 'one-cpu',
  title: 'two threads on one CPU (affinity)',
  builds: ['pool', 'openmp'],
  isNamed,
  async create({ folder, build }) {
    const command = build.decode({ model: await modelIn(folder, 'tinyMoe'), threads: 2, tokens: 24 })
    return { command: ['taskset', '-c', '0', ...command] }
  },
}
