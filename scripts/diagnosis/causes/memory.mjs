import { modelIn } from '../bench-folder.mjs'
import { controlGroup, dropFromCache } from './parts.mjs'

/** The model's file is larger than the memory of the control group: each token reads it from the disk again. */
export const memoryLimit = {
  id: 'memory-limit',
  title: 'a model that does not fit into the memory of the container',
  builds: ['pool', 'openmp'],
  isNamed: ({ rule }) => rule === 'page-faults' || rule === 'weight-faults',
  async create({ folder, build }) {
    const model = await modelIn(folder, 'big')
    // Repacked weights are no pages of the file: the kernel would end the program.
    const command = build.decode({ model, threads: 2, prompt: 4, tokens: 8, args: ['--no-repack'] })
    const { enter, undo } = controlGroup('memory', { 'memory.limit_in_bytes': 400 * 2 ** 20 })
    // Pages in the cache belong to the group that read them first.
    dropFromCache(model)
    return { command: [...enter, ...command], undo }
  },
}

/** No page of the model's file is in memory at the start. */
export const coldCache = {
  id: 'cold-cache',
  title: 'a model that is read from the disk for the first time',
  builds: ['pool', 'openmp'],
  isNamed: ({ rule, sentence }) =>
    ['first-call', 'slow-load', 'page-faults'].includes(rule) && /disk|cache|page/i.test(sentence),
  async create({ folder, build }) {
    const model = await modelIn(folder, 'big')
    dropFromCache(model)
    return { command: build.decode({ model, threads: 2, tokens: 12 }) }
  },
}
