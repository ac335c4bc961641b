import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { CLI, modelIn } from '../bench-folder.mjs'

const THREADS = [1, 2, 3]

/** Logs of several numbers of threads, of which the last ones are too many. */
export const tooManyThreads = {
  id: 'too-many-threads',
  title: 'runs with more and more threads, of which the last ones do not pay',
  builds: ['pool', 'openmp'],
  by: ['why'],
  rules: ['thread-scaling'],
  async create({ folder, build, number }) {
    const model = await modelIn(folder, 'tinyMoe')
    const commandOf = (threads) => build.decode({ model, threads, prompt: 4, tokens: 8 + number })
    // Where Debian's programs see the recorder.
    const env = { ...process.env, XDG_CACHE_HOME: join(folder, 'cache') }
    const beside = (log) =>
      THREADS.map((threads) => {
        const other = log.replace(/ggtrace$/, `${threads}.ggtrace`)
        const record = [CLI, 'record', '-q', '-o', other, '--', ...commandOf(threads)]
        execFileSync(process.execPath, record, { stdio: 'ignore', env })
        return other
      })
    return { command: commandOf(4), beside }
  },
}
