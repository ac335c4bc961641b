/** Causes that no log shows: nothing may be named with confidence, unless it is true of the run as well. */
import { execFileSync, spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { presets } from '../../../test/llama/gguf.mjs'
import { modelIn } from '../bench-folder.mjs'
import { ask, prompt, served } from './requests.mjs'

/** Copies memory on one CPU: the bandwidth that all CPUs share. */
const COPY = 'const a = Buffer.alloc(2 ** 28, 1), b = Buffer.alloc(2 ** 28); for (;;) a.copy(b)'

const unseen = ({ args = [], threads = 1, model = 'tinyDense', tokens = 60, env, around, ...cause }) => ({
  builds: ['pool', 'openmp'],
  isUndisturbed: true,
  isUnseen: true,
  async create({ folder, build }) {
    const { before = [], undo } = around?.(folder) ?? {}
    return {
      command: [...before, ...build.decode({ model: await modelIn(folder, model), threads, tokens, args })],
      env,
      undo,
    }
  },
  ...cause,
})

/** Its calls take longer than what a server does for each token. */
const SLOWER = { ...presets.tinyDense, layers: 16 }

const unseenByServer = ({ args = [], ...cause }) => ({
  ...served({ model: SLOWER, args: ['-c', '2048', '-np', '1', '--cache-ram', '0', ...args], ...cause }),
  isUnseen: true,
  rules: undefined,
})

/** Becomes a program without speculation of loads before stores, as sandboxes of seccomp had it. */
const CAREFUL = `#include <sys/prctl.h>
#include <unistd.h>
int main(int argc, char ** argv) {
    if (argc < 2 || prctl(PR_SET_SPECULATION_CTRL, PR_SPEC_STORE_BYPASS, PR_SPEC_FORCE_DISABLE, 0, 0)) return 2;
    return execvp(argv[1], argv + 1);
}
`

export const UNSEEN = [
  unseen({
    id: 'bandwidth',
    title: 'another program takes the bandwidth of the memory, on a CPU that the run does not use',
    // Ahead of all others, a thread that computes for seconds may lose a twentieth of each (sched_rt_runtime_us).
    isUndisturbed: false,
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
  unseen({
    id: 'returned-memory',
    title: 'an allocator that asks the kernel for memory each time, and returns it',
    env: { MALLOC_MMAP_THRESHOLD_: '4096', MALLOC_TRIM_THRESHOLD_: '0', MALLOC_TOP_PAD_: '0' },
  }),
  unseen({ id: 'old-kernels', title: 'a CPU backend without the instructions of this CPU', builds: ['own'] }),
  unseen({ id: 'small-pages', title: 'no transparent huge pages', env: { GLIBC_TUNABLES: 'glibc.malloc.hugetlb=0' } }),
  unseen({
    id: 'no-speculation',
    title: 'a sandbox that turns the speculation of loads off',
    around(folder) {
      const [source, program] = [join(folder, 'careful.c'), join(folder, 'careful')]
      writeFileSync(source, CAREFUL)
      execFileSync('cc', ['-O1', source, '-o', program])
      return { before: [program] }
    },
  }),
  unseen({
    id: 'deeper-model',
    title: 'a model with more layers than its answers need',
    model: { ...presets.tinyDense, layers: 32 },
    tokens: 40,
  }),
  unseen({
    id: 'unquantised',
    title: 'weights of 32 bits, where 4 would do',
    model: { ...presets.tinyDense, weights: 'F32' },
    tokens: 40,
  }),
  unseen({
    id: 'large-vocabulary',
    title: 'a vocabulary of many languages, of which one is used',
    model: { ...presets.tinyDense, vocabulary: 64_000 },
    tokens: 30,
  }),
  unseenByServer({
    id: 'distant-client',
    title: 'a client whose next question comes late, as from far away',
    async play(url, number) {
      for (let i = 0; i < 6; i++) {
        await ask(url, prompt(30, 10 * number + i), 20)
        await sleep(300)
      }
    },
  }),
  unseenByServer({
    id: 'longer-answers',
    title: 'answers that are longer than they need to be',
    async play(url, number) {
      for (let i = 0; i < 3; i++) await ask(url, prompt(30, 10 * number + i), 120)
    },
  }),
  unseenByServer({
    id: 'byte-tokens',
    model: { ...SLOWER, layers: 48 },
    title: 'a tokeniser without the words of the language: each letter is some tokens',
    async play(url, number) {
      for (let i = 0; i < 4; i++) await ask(url, `${'Größenänderung '.repeat(8)}${number + i}`, 30)
    },
  }),
]
