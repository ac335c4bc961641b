/**
 * Counts the instructions that run in the recorder's own object, per call of llama_decode and per operator, of two or more states of the code:
 *   node scripts/bench/instructions.mjs [--model tinyMoe] before [after …]
 * A state is a commit, of which native/ is built in the cache of tests once, or a checkout; without `after`, it is this one. Callgrind counts: the
 * figures depend on no other load. Of runs of one thread with few and with more calls, the difference is taken, so that what happens once is left
 * out. Per operator: the difference between level `op` and level `graph`. Instructions of other objects (libc, ggml) are not counted, nor those of
 * the recorder's own threads, which follow the clock.
 * Needs linux-x64, cc and valgrind; fetches llama.cpp, makes the model.
 */
import { execFileSync } from 'node:child_process'
import { createReadStream, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { summarizeFile } from 'ggml2perfetto/node'
import { cacheFolder } from '../../test/cache.cjs'
import { cachedModel } from '../../test/llama/gguf.mjs'
import { assignments, buildProgram, LIBS } from './llama-program.mjs'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const OBJECT = 'libggml2perfetto.so'
const [FEW, MORE] = [20, 120]
const RUNS = 3

/** A state's recorder, with its name for the table. */
function recorderOf(state) {
  const isCheckout = existsSync(join(state, 'native/Makefile'))
  const commit = isCheckout ? '' : execFileSync('git', ['rev-parse', '--short', state], { cwd: ROOT }).toString().trim()
  const folder = isCheckout ? resolve(state) : join(cacheFolder('instructions'), commit)
  if (!existsSync(join(folder, 'native'))) {
    mkdirSync(folder, { recursive: true })
    const archive = execFileSync('git', ['archive', commit, 'native'], { cwd: ROOT, maxBuffer: 2 ** 30 })
    execFileSync('tar', ['-x'], { cwd: folder, input: archive })
  }
  execFileSync('make', ['-s', '-C', join(folder, 'native'), `build/${OBJECT}`], { stdio: 'inherit' })
  return { name: commit || state, path: join(folder, 'native/build', OBJECT) }
}

/** The cost of an object's own code in a file of Callgrind: lines behind `calls=` are the cost of what is called. */
async function instructionsIn(file) {
  const objects = new Map()
  let [isInside, isOfCallee, sum] = [false, false, 0]
  for await (const line of createInterface({ input: createReadStream(file) })) {
    const [, kind, id, name] = /^(c?ob)=\((\d+)\)(?: (.*))?/.exec(line) ?? []
    if (kind) {
      if (name) objects.set(id, name)
      if (kind === 'ob') isInside = objects.get(id).endsWith(OBJECT)
    } else if (line.startsWith('calls=')) isOfCallee = true
    else if (/^[\d+*-]/.test(line)) {
      if (isInside && !isOfCallee) sum += Number(line.split(' ').at(-1))
      isOfCallee = false
    }
  }
  return sum
}

/** The least of some runs: what follows the clock, such as a look at the machine every second, is in more of a slow run. */
async function leastOf(...args) {
  const runs = []
  for (let i = 0; i < RUNS; i++) runs.push(await run(...args))
  return runs.reduce((least, other) => (other.instructions < least.instructions ? other : least))
}

async function run(program, recorder, model, level, calls) {
  const [log, out] = [join(folder, 'run.ggtrace'), join(folder, 'callgrind.out')]
  for (const path of [log, out]) rmSync(path, { force: true })
  const env = { LD_PRELOAD: recorder, GGML2PERFETTO_OUT: log, GGML2PERFETTO_LEVEL: level }
  const sizes = ['--threads', '1', '--prompt', '8', '--decode', `${calls}`]
  const counted = ['--tool=callgrind', '--trace-children=yes', '--separate-threads=yes', `--callgrind-out-file=${out}`]
  const host = [program, '--lib', LIBS, '--model', model, ...sizes]
  execFileSync('valgrind', [...counted, 'env', ...assignments(env), ...host], { stdio: 'ignore' })
  const { operators } = await summarizeFile(log)
  return { instructions: await instructionsIn(`${out}-01`), operators }
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { model: { type: 'string', default: 'tinyMoe' } },
})
if (!positionals.length) {
  console.error('expected a commit or a checkout to compare with: node scripts/bench/instructions.mjs BEFORE [AFTER …]')
  process.exit(1)
}
const folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-bench-'))
process.on('exit', () => rmSync(folder, { recursive: true }))
const program = buildProgram(folder)
const { path: model } = await cachedModel(values.model)
const states = [...positionals, ...(positionals.length > 1 ? [] : [ROOT])].map(recorderOf)

/** Per call at both levels, and what each operator adds at level `op`. */
async function costOf({ path }) {
  const costs = {}
  for (const level of ['graph', 'op']) {
    const few = await leastOf(program, path, model, level, FEW)
    const more = await leastOf(program, path, model, level, MORE)
    const calls = MORE - FEW
    costs[level] = {
      perCall: (more.instructions - few.instructions) / calls,
      operators: (more.operators - few.operators) / calls,
    }
  }
  const { graph, op } = costs
  return {
    ofGraphs: graph.perCall,
    ofOperators: op.perCall,
    perOperator: (op.perCall - graph.perCall) / op.operators,
    operators: op.operators,
  }
}

console.log(`instructions in ${OBJECT}, ${values.model}, 1 thread, decode`)
let first
for (const state of states) {
  const cost = await costOf(state)
  first ??= cost
  const text = (key) => `${cost[key].toFixed(1)} (× ${(cost[key] / first[key]).toFixed(4)})`
  const calls = `per call ${text('ofGraphs')} at level graph, ${text('ofOperators')} at level op`
  console.log(
    `${state.name.padEnd(12)} ${calls}; per operator ${text('perOperator')}, ${cost.operators} of them a call`,
  )
}
