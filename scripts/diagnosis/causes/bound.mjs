/** Threads of OpenMP that variables bind to CPUs: to one, and rightly. */
import { modelIn } from '../bench-folder.mjs'

const bound = ({ id, title, rules, builds = ['own', 'openmp'], envOf, ...cause }) => ({
  ...{ id, title, builds, rules },
  async create({ folder, build, number }) {
    const options = { model: await modelIn(folder, 'tinyMoe'), threads: 2, tokens: 24 + 8 * number }
    return { command: build.decode(options), env: envOf(number) }
  },
  ...cause,
})

/** The places are CPU 0, or CPU 1, from run to run; the last runs name it by another variable. */
export const boundPlaces = bound({
  id: 'bound-places',
  title: 'OpenMP that binds two threads to one CPU (OMP_PLACES)',
  rules: ['crowded-affinity'],
  isNamed: ({ sentence }) => /with (?:OMP_PLACES|GOMP_CPU_AFFINITY)=/.test(sentence),
  envOf(number) {
    const cpu = (number >> 1) % 2
    return number % 5 === 4
      ? { GOMP_CPU_AFFINITY: `${cpu}` }
      : { OMP_PLACES: `{${cpu}},{${cpu}}`, OMP_PROC_BIND: 'true' }
  },
})

const wellBound = (id, title, env) =>
  bound({
    ...{ id, title, isUndisturbed: true, isHarmless: true },
    rules: ['crowded-affinity', 'more-threads-than-cpus'],
    envOf: () => env,
  })

export const HARMLESS = [
  wellBound('bound-threads', 'OpenMP that binds each thread to a CPU of its own (OMP_PROC_BIND=true)', {
    OMP_PROC_BIND: 'true',
  }),
  wellBound('spread-threads', 'OpenMP that binds each thread to a core (OMP_PROC_BIND=spread OMP_PLACES=cores)', {
    OMP_PROC_BIND: 'spread',
    OMP_PLACES: 'cores',
  }),
]
