/**
 * Compares the time per token of a GPU's asynchronous calls, which end before their work, with that of a run in which the program waits
 * for each call: both recorded, both by `stats`. Issue 22's third measure: within 2 %.
 *   npm run bench:asynchronous [-- pairs of runs, default 5]
 * Needs linux-x64, cc and mesa-vulkan-drivers. The order within a pair is random.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { analyze } from 'ggml2perfetto'
import { inputOf } from 'ggml2perfetto/node'
import { cachedModel } from '../../test/llama/gguf.mjs'
import { buildProgram, LIBS, ON_VULKAN, RECORDER } from './llama-program.mjs'

const pairs = Number(process.argv[2] ?? 5)
const folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-asynchronous-'))

try {
  const program = buildProgram(folder, { vulkan: true })
  const { path } = await cachedModel('tinyDense')
  const args = ['--lib', LIBS, '--model', path, '--prompt', '8', '--decode', '30', '--gpu-layers', '99']
  const ratios = []
  for (let pair = 0; pair < pairs; pair++) {
    const times = {}
    const order = Math.random() < 0.5 ? ['asynchronous', 'synchronised'] : ['synchronised', 'asynchronous']
    for (const kind of order)
      times[kind] = await tpotOf(program, kind === 'synchronised' ? [...args, '--synchronize'] : args)
    ratios.push(times.asynchronous / times.synchronised)
    const texts = Object.entries(times).map(([kind, ns]) => `${kind} ${(ns / 1e6).toFixed(2)} ms`)
    console.log(`${texts.sort().join(', ')}: ratio ${ratios.at(-1).toFixed(4)}`)
  }
  ratios.sort((a, b) => a - b)
  console.log(
    `TPOT of asynchronous calls to that of synchronised ones: median ${ratios[ratios.length >> 1].toFixed(4)}`,
  )
} finally {
  rmSync(folder, { recursive: true })
}

/** In ns, as `stats` computes it. */
async function tpotOf(program, args) {
  const log = join(folder, 'run.ggtrace')
  rmSync(log, { force: true })
  const env = { ...process.env, ...ON_VULKAN, LD_PRELOAD: RECORDER, GGML2PERFETTO_OUT: log }
  execFileSync(program, args, { env, stdio: 'ignore' })
  return (await analyze(inputOf(log))).calls.tpot_ns
}
