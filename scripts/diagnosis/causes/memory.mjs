import { statSync } from 'node:fs'
import { join } from 'node:path'
import { modelIn } from '../bench-folder.mjs'
import { controlGroup, dropFromCache, swapFile } from './parts.mjs'

const MIB = 2 ** 20
/** Of 400 MB, most in experts; a token reads an eighth of them. */
const EXPERTS = {
  ...{ layers: 4, width: 1024, feedForward: 2048, heads: 16, kvHeads: 4, vocabulary: 2048, context: 512 },
  ...{ experts: 32, expertsUsed: 4 },
}

/** Decodes in a control group with so many MiB of memory. */
const decodeWithin =
  (preset, mibOf, tokens) =>
  async ({ folder, build, number }) => {
    const model = await modelIn(folder, preset)
    // Repacked weights are no pages of the file: the kernel would end the program.
    const command = build.decode({ model, threads: 2, prompt: 4, tokens, args: ['--no-repack'] })
    const { enter, undo } = controlGroup('memory', { 'memory.limit_in_bytes': mibOf(number) * MIB })
    // Pages in the cache belong to the group that read them first.
    dropFromCache(model)
    return { command: [...enter, ...command], undo }
  }

/** The model's file is larger than the memory of the control group: each token reads it from the disk again. */
export const memoryLimit = {
  id: 'memory-limit',
  title: 'a model that does not fit into the memory of the container',
  builds: ['pool', 'openmp'],
  rules: ['page-faults', 'weight-faults'],
  create: decodeWithin('big', (number) => 400 - 10 * number, 8),
}

/** No page of the model's file is in memory at the start. */
export const coldCache = {
  id: 'cold-cache',
  title: 'a model that is read from the disk for the first time',
  builds: ['pool', 'openmp'],
  rules: ['first-call', 'slow-load', 'page-faults'],
  isNamed: ({ sentence }) => /disk|cache|page/i.test(sentence),
  async create({ folder, build }) {
    const model = await modelIn(folder, 'big')
    dropFromCache(model)
    return { command: build.decode({ model, threads: 2, tokens: 12 }) }
  },
}

/** As {@link memoryLimit}, of a mixture of experts: other experts are read for each token. */
export const expertsRead = {
  id: 'experts-read',
  title: 'experts that do not fit into the memory of the container',
  builds: ['pool', 'openmp'],
  rules: ['page-faults', 'weight-faults'],
  create: decodeWithin(EXPERTS, (number) => 230 - 5 * number, 12),
}

/** Of 80 MB. */
const SWAPPED = { layers: 4, width: 1536, feedForward: 6144, heads: 12, kvHeads: 4, vocabulary: 2048, context: 512 }

/** The weights are memory of the process, of which a part is in a swap file, each time another one. */
export const swap = {
  id: 'swap',
  title: 'weights that are swapped out',
  builds: ['pool', 'openmp'],
  isUndisturbed: true,
  rules: ['page-faults', 'weight-faults'],
  async create({ folder, build, number }) {
    const model = await modelIn(folder, SWAPPED)
    const limit = statSync(model).size * (0.8 - 0.05 * number)
    const { enter, undo: remove } = controlGroup('memory', { 'memory.limit_in_bytes': Math.floor(limit / 4096) * 4096 })
    const end = swapFile(join(folder, 'swap'), 192)
    dropFromCache(model)
    const command = build.decode({ model, threads: 2, prompt: 4, tokens: 6, args: [...build.read, '--no-repack'] })
    const undo = () => {
      end()
      remove()
    }
    return { command: [...enter, ...command], undo }
  },
}

/** As {@link memoryLimit}, with addresses of page faults. */
export const weightsTaken = {
  id: 'weights-taken',
  title: 'weights that the kernel takes back, with a log of page faults',
  builds: ['pool', 'openmp'],
  by: ['why'],
  isUndisturbed: true,
  isCostUnknown: true,
  rules: ['weight-faults'],
  async create(where) {
    const planted = await memoryLimit.create(where)
    const beside = (log) => [log.replace(/ggtrace$/, 'faults.data')]
    return { ...planted, options: { record: ['--mem'] }, beside }
  },
}

/** The device of the model's file, as control groups name it: partitions have no limits of their own. */
function deviceOf(path) {
  const { dev } = statSync(path)
  return `${(dev >> 8) & 0xfff}:${(dev & 0xff) | ((dev >> 12) & 0xfff00)}`
}

/** A disk that reads 100 MB a second, or less. */
export const slowDisk = {
  id: 'slow-disk',
  title: 'a slow disk',
  builds: ['pool', 'openmp'],
  isUndisturbed: true,
  rules: ['slow-load'],
  isNamed: ({ sentence }) => sentence.includes('disk'),
  async create({ folder, build, number }) {
    const model = await modelIn(folder, 'big')
    const limits = { 'blkio.throttle.read_bps_device': `${deviceOf(model)} ${100e6 - 10e6 * number}` }
    const { enter, undo } = controlGroup('blkio', limits)
    dropFromCache(model)
    return { command: [...enter, ...build.decode({ model, threads: 2, tokens: 12, args: build.read })], undo }
  },
}
