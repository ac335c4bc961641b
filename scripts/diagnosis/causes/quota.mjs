import { availableParallelism } from 'node:os'
import { modelIn } from '../bench-folder.mjs'
import { controlGroup } from './parts.mjs'

const PERIOD_US = 100_000

/**
 * A control group has a fifth of the time of each CPU, or some more: less than other programs leave it. Named is the limit itself, not only that workers
 * lose their CPU.
 */
export const quota = {
  id: 'quota',
  title: 'a CPU limit of the container',
  builds: ['pool', 'openmp'],
  rules: ['cpu-limit'],
  async create({ folder, build, number }) {
    const threads = availableParallelism()
    const limits = {
      'cpu.cfs_period_us': PERIOD_US,
      'cpu.cfs_quota_us': Math.round((0.2 + 0.02 * number) * PERIOD_US) * threads,
    }
    const command = build.decode({ model: await modelIn(folder, 'tinyMoe'), threads, tokens: 100 })
    const { enter, undo } = controlGroup('cpu', limits)
    return { command: [...enter, ...command], enter, undo }
  },
}
