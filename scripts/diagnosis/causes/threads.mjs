import { availableParallelism } from 'node:os'
import { modelIn } from '../bench-folder.mjs'

const rules = ['more-threads-than-cpus']

/** Twice as many threads as CPUs. */
export const moreThreads = {
  id: 'more-threads',
  title: 'more threads than CPUs',
  builds: ['pool', 'openmp'],
  rules,
  async create({ folder, build }) {
    const threads = 2 * availableParallelism()
    return { command: build.decode({ model: await modelIn(folder, 'tinyMoe'), threads, tokens: 24 }) }
  },
}

/** The program binds all threads of its pool to one CPU, though it may use all. */
export const boundPool = {
  id: 'bound-pool',
  title: 'two threads of a pool that are bound to one CPU',
  builds: ['pool'],
  rules: ['crowded-affinity'],
  async create({ folder, build }) {
    const options = { model: await modelIn(folder, 'tinyMoe'), threads: 2, tokens: 24, args: ['--pool-cpu', '0'] }
    return { command: build.decode(options) }
  },
}

/** All threads may run on one CPU only. */
export const oneCpu = {
  id: 'one-cpu',
  title: 'two threads on one CPU (affinity)',
  builds: ['pool', 'openmp'],
  rules,
  async create({ folder, build }) {
    const command = build.decode({ model: await modelIn(folder, 'tinyMoe'), threads: 2, tokens: 24 })
    return { command: ['taskset', '-c', '0', ...command] }
  },
}
