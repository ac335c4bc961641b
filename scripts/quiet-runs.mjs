/**
 * Records runs that nothing disturbs, and wants no finding in them that is false: nothing takes their CPUs (SCHED_FIFO, as root), their
 * model is in memory, their context is short. Findings that can be true of small models (time outside of graphs, a slow first call) are
 * printed, and are not false. Exits 1 if there is a false one.
 *   node scripts/quiet-runs.mjs [runs, default 20] [folder for the logs]
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { analyze, inputOf, record } from 'ggml2perfetto'
import { cachedModel } from '../test/llama/gguf.mjs'

/** True of any small model, disturbed or not. */
const TRUE = ['outside-graphs', 'between-calls', 'first-call', 'roofline']

const root = fileURLToPath(new URL('..', import.meta.url))
const runs = Number(process.argv[2] ?? 20)
const folder = resolve(process.argv[3] ?? mkdtempSync(join(tmpdir(), 'ggml2perfetto-quiet-')))
const libs = join(root, 'vendor/llama/lib')
const program = join(folder, 'decode')
mkdirSync(folder, { recursive: true })
const linked = [`-L${libs}`, `-Wl,-rpath,${libs}`, '-lllama', '-lggml', '-lggml-base', '-lpthread']
const headers = `-I${join(root, 'vendor/llama/include')}`
execFileSync('cc', ['-std=gnu11', '-O2', headers, join(root, 'test/llama/run.c'), '-o', program, ...linked])

const first = spawnSync('chrt', ['-f', '1', 'true']).status === 0 ? ['chrt', '-f', '1'] : []
if (first.length === 0) console.log('without SCHED_FIFO: what else runs on this machine may disturb the runs')
let wrong = 0
for (let i = 0; i < runs; i++) {
  const { path } = await cachedModel(['tinyDense', 'tinyMoe'][i % 2])
  const threads = 1 + ((i >> 1) % Math.min(availableParallelism(), 4))
  const log = join(folder, `quiet-${i}.ggtrace`)
  const args = ['--lib', libs, '--model', path, '--threads', `${threads}`, '--prompt', '16', '--decode', '40']
  const command = [...first, program, ...args]
  const { exitCode } = await record({ command, output: log, stdio: ['ignore', 'ignore', 'inherit'] })
  if (exitCode !== 0) throw new Error(`${command.join(' ')}: exit code ${exitCode}`)
  const { findings } = await analyze(inputOf(log))
  const bad = findings.filter(({ rule }) => !TRUE.includes(rule))
  if (bad.length > 0) wrong++
  const sentences = findings.map((finding) => `${bad.includes(finding) ? 'FALSE: ' : ''}${finding.sentence}`)
  console.log(`${i + 1}: ${threads} threads: ${sentences.join(' · ') || 'no findings'}`)
}
console.log(`${runs - wrong} of ${runs} runs have no false finding`)
process.exitCode = wrong > 0 ? 1 : 0
