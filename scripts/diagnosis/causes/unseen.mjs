/** Causes that no log shows: nothing may be named, or only what is true of the run as well. */
import { spawn } from 'node:child_process'
import { modelIn } from '../bench-folder.mjs'

/** Copies memory on one CPU: the bandwidth that all CPUs share. */
const COPY = 'const a = Buffer.alloc(2 ** 28, 1), b = Buffer.alloc(2 ** 28); for (;;) a.copy(b)'

const unseen = ({ args = [], threads = 1, model = 'tinyDense', tokens = 60, env, around, ...cause }) => ({
  builds: ['pool', 'openmp'],
  isUndisturbed: true,
  isUnseen: true,
  isNamed: () => false,
  async create({ folder, build }) {
    const { before = [], undo } = around?.() ?? {}
    return {
      command: [...before, ...build.decode({ model: await modelIn(folder, model), threads, tokens, args })],
      env,
      undo,
    }
  },
  ...cause,
})

export const UNSEEN = [
  unseen({
    id: 'bandwidth',
    title: 'another program takes the bandwidth of the memory, on a CPU that the run does not use',
    model: 'big',
    tokens: 24,
    around() {
      const child = spawn('taskset', ['-c', '1', process.execPath, '-e', COPY], { stdio: 'ignore' })
      return { before: ['taskset', '-c', '0'], undo: () => child.kill('SIGKILL') }
    },
  }),
  unseen({
    id: 'slow-alloc',
    title: 'an allocator that fills and checks all memory',
    env: { MALLOC_PERTURB_: '7', MALLOC_CHECK_: '3' },
  }),
  unseen({ id: 'old-kernels', title: 'a CPU backend without the instructions of this CPU', builds: ['own'] }),
  unseen({ id: 'small-pages', title: 'no transparent huge pages', env: { GLIBC_TUNABLES: 'glibc.malloc.hugetlb=0' } }),
]
