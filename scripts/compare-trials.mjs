/**
 * How often `compare` is right on this machine, of runs that it records by turns: of one model with itself it should name no change; of
 * a model against one whose ffn_down has Q8_0 weights, that role first. Prints a line a trial, and the counts; exits 1 if a change, or a finding
 * that appears or vanishes, is named where there is none.
 *   node scripts/compare-trials.mjs [trials of each, default 20] [runs a side, default 5] [folder for the logs]
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { analyze } from 'ggml2perfetto'
import { compareRuns } from 'ggml2perfetto/analysis'
import { inputOf, recordRuns } from 'ggml2perfetto/node'
import { cachedModel, presets } from '../test/llama/gguf.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const [trials, runs] = [Number(process.argv[2] ?? 20), Number(process.argv[3] ?? 5)]
const folder = resolve(process.argv[4] ?? mkdtempSync(join(tmpdir(), 'ggml2perfetto-compare-')))
mkdirSync(folder, { recursive: true })
const libs = join(root, 'vendor/llama/lib')
const program = join(folder, 'decode')
const linked = [`-L${libs}`, `-Wl,-rpath,${libs}`, '-lllama', '-lggml', '-lggml-base', '-lpthread']
const headers = `-I${join(root, 'vendor/llama/include')}`
execFileSync('cc', ['-std=gnu11', '-O2', headers, join(root, 'test/llama/run.c'), '-o', program, ...linked])

const commandOf = async (spec) => {
  const { path } = await cachedModel(spec)
  return `${program} --lib ${libs} --model ${path} --threads 1 --prompt 16 --decode 60`
}
const same = await commandOf('tinyDense')
const slower = await commandOf({ ...presets.tinyDense, types: { ffn_down: 'Q8_0' } })
const CHANGED = ['slower', 'faster', 'new', 'gone']

async function compared(commands, name) {
  const logs = await recordRuns({ commands, runs, warmup: 1, folder: join(folder, name) })
  const side = async (name, logs) => ({ name, runs: await Promise.all(logs.map((log) => analyze(inputOf(log)))) })
  return compareRuns(await side('a', logs.a), await side('b', logs.b))
}

let [wrong, right] = [0, 0]
for (let i = 0; i < trials; i++) {
  const itself = await compared([same, same], `same-${i}`)
  const named = itself.effects.filter(({ verdict }) => CHANGED.includes(verdict))
  const appeared = itself.findings.filter(({ change }) => change === 'appeared' || change === 'vanished')
  if (named.length + appeared.length > 0 || /slower|faster/.test(itself.verdict)) wrong++
  const effects = (await compared([same, slower], `slower-${i}`)).effects
  const [first] = effects.filter(({ group }) => group === 'role')
  const isRight = /slower$/.test(first.verdict) && first.name === 'ffn_out MUL_MAT'
  if (isRight) right++
  const text = ({ name, phase, verdict, change_share }) =>
    `${phase} ${name} ${verdict} ${(100 * change_share).toFixed(1)} %`
  console.log(
    `${i + 1}: itself: ${[...named.map(text), ...appeared.map(({ rule }) => rule)].join(' · ') || 'no change'} (${itself.verdict}) | slower: ${text(first)}${isRight ? '' : ': WRONG'}`,
  )
}
console.log(
  `itself: ${trials - wrong} of ${trials} without a named change; slower role named first in ${right} of ${trials}`,
)
process.exitCode = wrong > 0 ? 1 : 0
