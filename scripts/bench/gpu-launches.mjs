/**
 * What the recorder costs for each launch of a kernel, on the GPU of test/gpu: `node scripts/bench/gpu-launches.mjs`. Each launch is made with and
 * without the recorder's function, in turns in one process. Needs linux-x64, cc, c++ and make; builds in a temporary folder.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))
const llama = join(root, 'vendor/llama')
const folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-launches-'))

const run = (program, args, env = {}) =>
  execFileSync(program, args, {
    encoding: 'utf8',
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'ignore'],
  })

try {
  run(process.execPath, [join(root, 'scripts/fetch-llama.mjs')])
  run('make', ['-s', '-C', join(root, 'test/gpu'), `BUILD=${folder}`])
  run('make', ['-s', '-C', join(root, 'native'), `BUILD=${folder}/native`, `${folder}/native/libggml2perfetto.so`])
  const linked = [
    '-rdynamic',
    '-lllama',
    '-lggml',
    '-lggml-base',
    '-l:libcudart.so.13',
    '-Wl,--unresolved-symbols=ignore-in-shared-libs',
  ]
  const places = [`-I${llama}/include`, `-L${llama}/lib`, `-L${folder}`, `-Wl,-rpath,${llama}/lib`]
  run('cc', ['-O2', join(root, 'test/gpu/launches.c'), '-o', `${folder}/launches`, ...places, ...linked])
  for (const [title, fault] of Object.entries({ 'without CUPTI': 'busy-cupti', 'with the imitation of CUPTI': '' })) {
    const env = { BED_FAULT: fault, LD_LIBRARY_PATH: folder, LD_PRELOAD: `${folder}/native/libggml2perfetto.so` }
    const outcome = run(`${folder}/launches`, [], {
      ...env,
      GGML2PERFETTO_OUT: `${folder}/log`,
    })
    const [recorded, plain] = outcome.split(' ').map(Number)
    console.log(
      `${title}: ${(recorded - plain).toFixed(0)} ns a launch (${plain} ns without the recorder, ${recorded} with it)`,
    )
  }
} finally {
  rmSync(folder, { recursive: true })
}
