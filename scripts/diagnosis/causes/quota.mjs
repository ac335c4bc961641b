import { availableParallelism } from 'node:os'
import { modelIn } from '../bench-folder.mjs'
import { controlGroup } from './parts.mjs'

const PERIOD_US = 100_000

/** A control group has half of the time of each CPU. Named is the limit itself, not only that workers lose their CPU. */
export const quota = {
  id: 'quota',
  title: 'a CPU limit of the container',
  builds: ['pool', 'openmp'],
  isNamed: ({ rule, sentence }) =>
    rule === 'cpu-quota' || (rule === 'preempted' && /limit|quota|cgroup/i.test(sentence)),
  async create({ folder, build }) {
    const threads = availableParallelism()
    const limits = { 'cpu.cfs_period_us': PERIOD_US, 'cpu.cfs_quota_us': (PERIOD_US / 2) * threads }
    const command = build.decode({ model: await modelIn(folder, 'big'), threads, tokens: 24 })
    const { enter, undo } = controlGroup('cpu', limits)
    return { command: [...enter, ...command], undo }
  },
}
