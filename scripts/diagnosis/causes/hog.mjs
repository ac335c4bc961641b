import { availableParallelism } from 'node:os'
import { modelIn } from '../bench-folder.mjs'
import { hog as start } from './parts.mjs'

/** Another program computes: on all CPUs, or on one of them. */
export const hog = {
  id: 'hog',
  title: 'another program takes the CPUs',
  builds: ['pool', 'openmp'],
  isNamed: ({ rule }) => rule === 'preempted',
  async create({ folder, build, number }) {
    const cpus = availableParallelism()
    const command = build.decode({ model: await modelIn(folder, 'big'), threads: cpus, tokens: 24 })
    const ends = Array.from({ length: number % 3 === 2 ? 1 : cpus }, (_, cpu) => start(cpu))
    return {
      command,
      undo: () => {
        for (const end of ends) end()
      },
    }
  },
}
