import { availableParallelism } from 'node:os'
import { modelIn } from '../bench-folder.mjs'
import { hog as start } from './parts.mjs'

/** Another program computes on these CPUs. */
const hogOn = (id, title, cpusOf) => ({
  id,
  title,
  builds: ['pool', 'openmp'],
  rules: ['preempted'],
  async create({ folder, build }) {
    const threads = availableParallelism()
    const command = build.decode({ model: await modelIn(folder, 'big'), threads, tokens: 24 })
    const ends = cpusOf(threads).map(start)
    return {
      command,
      undo: () => {
        for (const end of ends) end()
      },
    }
  },
})

export const hog = hogOn('hog', 'another program takes all CPUs', (cpus) =>
  Array.from({ length: cpus }, (_, cpu) => cpu),
)
/** As {@link hog}, with a recording of the scheduler that lost switches: it may take no answer away. */
export const hogWithSwitches = {
  ...hog,
  id: 'hog-with-switches',
  title: 'another program takes all CPUs, next to a recording of the scheduler that lost switches',
  async create(place) {
    const planted = await hog.create(place)
    return {
      ...planted,
      options: { record: ['--sched', '--sched-buffer', '64K'] },
      beside: (log) => [log.replace(/\.ggtrace$/, '.sched.dat')],
    }
  },
}

export const hogOnOne = hogOn('hog-on-one', 'another program takes one of the CPUs', () => [0])
