/** Whose threads the workers are: threads for each caller, of a second runtime, or new ones for every graph. */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { at, modelIn } from '../bench-folder.mjs'

/** Spinning threads: those of other teams take the CPUs. */
const ACTIVE = { OMP_WAIT_POLICY: 'active' }

/** As a server with a pool of threads for its requests. */
export const teamsOfCallers = {
  id: 'teams-of-callers',
  title: 'calls by turns from four threads, each with a team of OpenMP',
  builds: ['own'],
  rules: ['teams-of-callers'],
  async create({ folder, build }) {
    const options = { model: await modelIn(folder, 'tinyMoe'), threads: 2, tokens: 40, args: ['--callers', '4'] }
    return { command: build.decode(options), env: ACTIVE }
  },
}

/** As two wheels of Python, each with its own libgomp: the loader takes libraries of one SONAME for the same. */
export const twoRuntimes = {
  id: 'two-openmp-runtimes',
  title: 'a second OpenMP runtime, whose threads wait on the CPUs',
  builds: ['own'],
  rules: ['two-openmp-runtimes'],
  async create({ folder, build }) {
    const [library, second] = [join(folder, 'second-openmp.so'), join(folder, 'libgomp-second.so.1')]
    const source = at('test/native/second-openmp.c')
    execFileSync('cc', ['-O1', '-shared', '-fPIC', source, '-o', library, '-ldl', '-pthread'])
    const gomp = execFileSync('cc', ['-print-file-name=libgomp.so.1'], { encoding: 'utf8' }).trim()
    const renamed = readFileSync(gomp, 'latin1').replaceAll('libgomp.so.1\0', 'libgomq.so.1\0')
    writeFileSync(second, renamed, 'latin1')
    const command = build.decode({ model: await modelIn(folder, 'tinyMoe'), threads: 2, tokens: 40 })
    // For the program only: the recorder's own process must not load it.
    const enter = [
      'sh',
      '-c',
      'LD_PRELOAD="$0:$LD_PRELOAD" SECOND_OPENMP="$1" && export LD_PRELOAD SECOND_OPENMP && shift && exec "$@"',
    ]
    return { command: [...enter, library, second, ...command], env: ACTIVE }
  },
}

/** So small that the start of a thread takes longer than a graph. */
const SMALL = {
  ...{ layers: 2, width: 64, feedForward: 128, heads: 2, kvHeads: 1, vocabulary: 300, context: 128 },
  ...{ experts: 4, expertsUsed: 2 },
}

/** No pool is attached to the context. */
export const newThreads = {
  id: 'new-threads',
  title: 'new threads of ggml for every graph',
  builds: ['pool'],
  isUndisturbed: true,
  rules: ['new-threads'],
  async create({ folder, build }) {
    const options = { model: await modelIn(folder, SMALL), threads: 2, tokens: 100, hasPool: false }
    return { command: build.decode(options) }
  },
}
