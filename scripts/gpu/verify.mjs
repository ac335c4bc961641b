/**
 * Compares the recorder's logs of CUDA with a real GPU: output unchanged, works equal what an independent observer (observer.c, loaded by
 * NVIDIA's driver) sees, each kernel is of the operator that is being computed when it is launched, times are on the host's clock, sums agree
 * with node-by-node computing, and what recording costs. Prints a line a check; exit code 1 if one fails.
 *
 *   node scripts/gpu/verify.mjs [--out folder] [--libraries folders] [--bed folder] [--llama folder] [--only word] [--pairs 5]
 *
 * `--llama`: its lib, cuda and include, vendor/llama by default. `--libraries`: where libcudart, libcublas, libcupti are, as in LD_LIBRARY_PATH. `--bed`: on the GPU of test/gpu, built in that folder, instead.
 * Needs linux-x64, cc, `npm run build`, `node scripts/fetch-llama.mjs --cuda`, and with a GPU the toolkit's headers. A machine without a
 * network gets all that in pieces: pack.mjs.
 */
import { execFileSync, spawn } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { analyze } from 'ggml2perfetto'
import { inputOf } from 'ggml2perfetto/node'
import { cachedModel, presets } from '../../test/llama/gguf.mjs'
import { ARGS, CALLS, cases, checkPlacement, DENSE, placements } from './cases.mjs'
import { checkClock, checkStreams, demand, difference, firstUnequal, kernelsOf, readLog, shortName } from './logs.mjs'
import { compileObserver, compileProgram } from './programs.mjs'

const root = fileURLToPath(new URL('../..', import.meta.url))
const { values: options } = parseArgs({
  options: {
    out: { type: 'string', default: 'gpu-verify' },
    libraries: { type: 'string', default: process.env.LD_LIBRARY_PATH ?? '' },
    bed: { type: 'string' },
    llama: { type: 'string', default: join(root, 'vendor/llama') },
    only: { type: 'string', default: '' },
    pairs: { type: 'string', default: '5' },
  },
})
const out = resolve(options.out)
const llama = resolve(options.llama)
const recorder = join(root, 'dist/native/linux-x64/libggml2perfetto.so')
const bed = options.bed && resolve(options.bed)
rmSync(join(out, 'logs'), { recursive: true, force: true })
mkdirSync(join(out, 'logs'), { recursive: true })

/** A program of pack.mjs, or built now. */
const built = (name, build) => {
  const ready = join(root, 'kit', name)
  if (existsSync(ready)) return ready
  const path = join(out, name)
  build(path)
  return path
}
const libs = join(llama, 'lib')
const program = built('run', (path) => compileProgram(llama, path))
const folders = options.libraries.split(':')
const observer = bed ? undefined : built('libobserver.so', (path) => compileObserver(path, folders))

const ENVIRONMENT = {
  GGML_BACKEND_PATH: join(llama, 'cuda/libggml-cuda.so'),
  LD_LIBRARY_PATH: bed ?? options.libraries,
}
/** Without them, a launch is of one node, and made when the node is computed. */
const PLAIN = { GGML_CUDA_DISABLE_GRAPHS: '1', GGML_CUDA_DISABLE_FUSION: '1' }
const NO_GRAPHS = { GGML_CUDA_DISABLE_GRAPHS: '1' }
const observing = (file) => (bed ? { BED_LOG: file } : { CUDA_INJECTION64_PATH: observer, OBSERVER_OUT: file })
const LAUNCHES = bed ? { BED_LOG: '-' } : { CUDA_INJECTION64_PATH: observer, OBSERVER_CALLS: '1' }

/** Runs the program; its lines of JSON, exit code, seconds. */
async function run(model, args, env = {}, { signalAfterMs } = {}) {
  const started = performance.now()
  const child = spawn(program, ['--lib', libs, '--model', model, '--threads', '1', '--gpu-layers', '99', ...args], {
    env: { ...process.env, ...ENVIRONMENT, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [texts, errors] = [[], []]
  child.stdout.on('data', (text) => texts.push(text))
  child.stderr.on('data', (text) => errors.push(text))
  if (signalAfterMs !== undefined) setTimeout(() => child.kill('SIGKILL'), signalAfterMs)
  const [code, signal] = await new Promise((settle) => child.on('close', (...ended) => settle(ended)))
  const text = Buffer.concat(texts).toString()
  const lines = text
    .split('\n')
    .flatMap((line) => (line.startsWith('{"event"') && line.endsWith('}') ? [JSON.parse(line)] : []))
  const result = lines.findLast(({ event }) => event === 'result')
  const error = Buffer.concat(errors).toString()
  if (code !== 0 && signalAfterMs === undefined) throw new Error(`exit code ${code ?? signal}: ${error.slice(0, 500)}`)
  return { code, signal, lines, hash: result?.hash, error, seconds: (performance.now() - started) / 1000 }
}

let logCount = 0
const newLog = (name) => join(out, 'logs', `${++logCount}-${name.replace(/[^\w.-]+/g, '-')}.ggtrace`)
const recording = (log, env = {}) => ({ LD_PRELOAD: recorder, GGML2PERFETTO_OUT: log, ...env })

async function record(model, name, args, env = {}) {
  const log = newLog(name)
  const outcome = await run(model, args, recording(log, env))
  return { ...(await readLog(log)), ...outcome }
}

const results = []
/** Runs a check; what it returns are its figures. */
async function check(name, perform) {
  if (!name.includes(options.only)) return
  const started = performance.now()
  const seconds = () => `${((performance.now() - started) / 1000).toFixed(1)} s`
  try {
    const figures = await perform()
    results.push({ name, ok: true, figures })
    console.log(`ok      ${name}: ${figures} (${seconds()})`)
  } catch (error) {
    results.push({ name, ok: false, figures: error.message })
    console.log(`FAILED  ${name}: ${error.message} (${seconds()})`)
  }
}
const noDifference = (wrong) => demand(wrong === undefined, wrong)

async function checkCase([name, spec, args]) {
  const { path } = await cachedModel(spec)
  const observed = join(out, 'observed.jsonl')
  let [plain, recorded] = []
  await check(`${name}: output unchanged`, async () => {
    plain = await run(path, args)
    const again = await run(path, args)
    recorded = await record(path, name, args)
    const isSame = again.hash === plain.hash
    demand(!isSame || recorded.hash === plain.hash, `results ${recorded.hash}, ${plain.hash} without the recorder`)
    demand(recorded.error === plain.error, recorded.error.slice(0, 300))
    demand(recorded.issues.length === 0, recorded.issues.join('; '))
    demand(recorded.facts['gpu.missing'] === undefined, `gpu.missing: ${recorded.facts['gpu.missing']}`)
    return `${recorded.works.length} works, ${isSame ? `hash ${plain.hash}` : 'results differ from run to run without the recorder, too: not compared'}`
  })
  if (!recorded) return
  await check(`${name}: works equal the observer's`, async () => {
    rmSync(observed, { force: true })
    await run(path, args, observing(observed))
    const works = readFileSync(observed, 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    const kinds = { kernel: 'kernel', memcpy: 'copy', memset: 'fill' }
    const { text } = recorded
    const found = recorded.works.map((work) => {
      const { what, name, facts } = work
      return what === 'kernel'
        ? `kernel ${text(name)} ${facts.grid} ${facts.block}`
        : `${kinds[what]} of ${facts.bytes}`
    })
    const expected = works.map(({ kind, name, grid, block, bytes }) =>
      kind === 'kernel' ? `kernel ${shortName(name)} ${grid} ${block}` : `${kind} of ${bytes}`,
    )
    noDifference(difference(found, expected))
    const sum = (list) => list.reduce((total, value) => total + value, 0) / 1e6
    const [own, others] = [
      sum(recorded.works.map((work) => work.endNs - work.startNs)),
      sum(works.map((work) => work.ns ?? work.end - work.start)),
    ]
    return `${expected.length}; ${own.toFixed(3)} ms of work, ${others.toFixed(3)} ms by the observer`
  })
  await check(`${name}: streams, clock, all kernels have an operator`, () => {
    const { streams, overlapping } = checkStreams(recorded)
    const least = checkClock(recorded)
    const without = recorded.works.filter(({ what, node }) => what === 'kernel' && !node)
    demand(
      without.length === 0,
      () =>
        `${without.length} kernels without an operator: ${[...new Set(without.map((work) => recorded.text(work.name)))].slice(0, 5)}`,
    )
    const copies = recorded.works
      .filter(({ what, node }) => what === 'memcpy' && node)
      .map(({ node }) => recorded.op(node.tensor))
    noDifference(copies.find((op) => !/^(?:CPY|CONT|DUP)$/.test(op)))
    return `${streams} streams, ${overlapping} overlaps; a work begins ≥ ${(least / 1000).toFixed(1)} µs after its launch`
  })
  await check(`${name}: kernels are of the node that is computed when they are launched`, async () => {
    const { lines } = await run(path, [...args, '--each-node'], { ...PLAIN, ...LAUNCHES })
    const calls = []
    let at
    for (const line of lines) {
      if (line.event === 'node') at = line
      else if (line.event === 'work' && line.kind === 'kernel' && at) {
        calls[at.call] ??= []
        calls[at.call].push(`${shortName(line.name)}: ${at.node.op} ${at.node.name}`)
      }
    }
    const log = await record(path, `${name}-plain`, args, PLAIN)
    demand(calls.length === CALLS, `${calls.length} calls`)
    for (const [call, expected] of calls.entries()) noDifference(firstUnequal(kernelsOf(log, call), expected))
    return `${calls.flat().length} kernels`
  })
  await check(`${name}: replays of graphs are of the nodes of eager launches`, async () => {
    const eager = await record(path, `${name}-eager`, args, NO_GRAPHS)
    for (let call = 0; call < CALLS; call++)
      noDifference(firstUnequal(kernelsOf(recorded, call), kernelsOf(eager, call)))
    const replays = recorded.ofKind('api').filter(({ name }) => recorded.text(name) === 'cudaGraphLaunch').length
    return `${replays} launches of graphs`
  })
}

/** Time of each op of prefill, of the device and with --sync's waits: the latter has all of the former. */
async function checkSync() {
  const { path } = await cachedModel({ ...presets.big, weights: 'F16' })
  const args = ['--prompt', '512', '--decode', '4']
  const [device, synced] = [
    await record(path, 'sync-device', args, NO_GRAPHS),
    await record(path, 'sync', args, { ...NO_GRAPHS, GGML2PERFETTO_SYNC: '1' }),
  ]
  const sums = (events, opOf) => {
    const totals = new Map()
    for (const event of events) {
      const op = opOf(event)
      const total = totals.get(op) ?? { ns: 0, count: 0 }
      totals.set(op, { ns: total.ns + event.endNs - event.startNs, count: total.count + 1 })
    }
    return totals
  }
  const first = ({ call }) => call === 0
  const own = sums(
    device.works.filter((work) => first(work) && work.node),
    ({ node }) => device.op(node.tensor),
  )
  const waits = sums(synced.ofKind('operator').filter(first), ({ tensor }) => synced.op(tensor))
  const rows = [...own].toSorted(([, a], [, b]) => b.ns - a.ns).slice(0, 8)
  const figures = rows.map(([op, { ns, count }]) => {
    const wait = waits.get(op)
    return `${op} ${(ns / 1000).toFixed(0)} µs of ${count} kernels, ${wait ? `${(wait.ns / 1000).toFixed(0)} µs of ${wait.count} by --sync` : 'none by --sync'}`
  })
  return figures.join('; ')
}

const secondsOf = ({ lines }) => {
  const calls = lines.filter(({ event, kind }) => event === 'call' && kind === 'decode').slice(4)
  return (calls.at(-1).end - calls[0].start) / calls.length / 1000
}

/** Microseconds a token, by turns. */
async function checkCost(title, spec, env) {
  const { path } = await cachedModel(spec)
  const args = ['--prompt', '8', '--decode', '260', '--times', '--synchronize']
  const ways = {
    plain: () => ({}),
    token: () => recording(newLog('cost'), { GGML2PERFETTO_LEVEL: 'token' }),
    'events around graph runs': () => recording(newLog('cost'), { GGML2PERFETTO_CUPTI: '/nonexistent' }),
    'events around nodes': () =>
      recording(newLog('cost'), { GGML2PERFETTO_CUPTI: '/nonexistent', GGML2PERFETTO_GPU_EVENTS: '1' }),
    op: () => recording(newLog('cost')),
  }
  const times = Object.fromEntries(Object.keys(ways).map((way) => [way, []]))
  for (let i = 0; i < Number(options.pairs); i++) {
    for (const [way, more] of Object.entries(ways))
      times[way].push(secondsOf(await run(path, args, { ...env, ...more() })))
  }
  const median = (list) => list.toSorted((a, b) => a - b)[Math.floor(list.length / 2)]
  const base = median(times.plain)
  const figures = Object.entries(times).map(
    ([way, list]) => `${way} ${median(list).toFixed(1)} µs (${((median(list) / base - 1) * 100).toFixed(1)} %)`,
  )
  return `${title}: ${figures.join(', ')}`
}

/** Without CUPTI: events around nodes last as long as their kernels, and the gaps between them; events around graph runs as long as all of that. */
async function checkEvents(title, spec, args, env) {
  const { path } = await cachedModel(spec)
  const plain = await run(path, args, env)
  const none = { GGML2PERFETTO_CUPTI: '/nonexistent', ...env }
  const nodes = await record(path, 'events-nodes', args, { ...none, GGML2PERFETTO_GPU_EVENTS: '1' })
  const runs = await record(path, 'events-runs', args, none)
  const exact = await record(path, 'events-exact', args, env)
  for (const { hash, issues } of [nodes, runs]) {
    demand(hash === plain.hash, `results ${hash}, ${plain.hash} without the recorder`)
    demand(issues.length === 0, issues.join('; '))
  }
  const sum = ({ works }) =>
    works.reduce((total, { call, startNs, endNs }) => total + (call > 0 ? endNs - startNs : 0), 0) / 1e3
  const missing = nodes.works.filter(({ what, node }) => what === 'kernel' && !node).length
  // A float in milliseconds, and the resolution of events: docs/reference/recorder.md.
  const errorOf = ({ facts }) => Number(facts.gpu_clock_error_ns) + 61 + 500
  const [least, leastOfRuns] = [checkClock(nodes, errorOf(nodes)), checkClock(runs, errorOf(runs))]
  return (
    `${title}: of decode ${sum(exact).toFixed(0)} µs by CUPTI (${exact.works.length} works), ${sum(nodes).toFixed(0)} µs by events around nodes ` +
    `(${nodes.works.length}, ${missing} without one; ≥ ${(least / 1000).toFixed(1)} µs after their launch; ${nodes.facts['gpu.times']}; clock error ` +
    `${nodes.facts.gpu_clock_error_ns} ns), ${sum(runs).toFixed(0)} µs around graph runs (${runs.works.length}; ≥ ${(leastOfRuns / 1000).toFixed(1)} µs after)`
  )
}

/** With branches of a graph on streams of their own, in another order: each kernel is of the same node. What is fused may differ, so nothing is. */
async function checkStreamsOf(spec, more = {}) {
  const { path } = await cachedModel(spec)
  const unfused = { GGML_CUDA_DISABLE_FUSION: '1', ...more }
  const env = { GGML_CUDA_GRAPH_OPT: '1', ...unfused }
  // b7347 reads memory that is not its own with CUDA graphs of more than one stream, on an H200, in most runs.
  const tried = []
  for (let i = 0; i < 4; i++) tried.push(await run(path, ARGS, env).catch((error) => error))
  const [plain] = tried
  const failed = tried.find(({ message }) => message)
  if (failed) return `not compared: without the recorder, too, the program ends with: ${failed.message.slice(0, 120)}`
  const [one, several] = [await record(path, 'one-stream', ARGS, unfused), await record(path, 'several', ARGS, env)]
  demand(several.hash === plain.hash, `results ${several.hash}, ${plain.hash} without the recorder`)
  for (let call = 0; call < CALLS; call++) noDifference(difference(kernelsOf(several, call), kernelsOf(one, call)))
  const { streams, overlapping } = checkStreams(several)
  return `${several.works.length} works on ${streams} streams (${checkStreams(one).streams} before), ${overlapping} overlaps; ${several.facts['gpu.missing'] ?? 'nothing missing'}`
}

async function checkBusy() {
  const { path } = await cachedModel(DENSE)
  const plain = await run(path, ARGS)
  const log = newLog('busy')
  const busy = await run(path, ARGS, {
    ...recording(log),
    ...(bed ? { BED_FAULT: 'busy-cupti' } : observing(join(out, 'busy.jsonl'))),
  })
  const { facts, ofKind, text } = await readLog(log)
  demand(busy.hash === plain.hash, 'another result')
  demand(/CUPTI/.test(facts['gpu.missing'] ?? ''), `gpu.missing: ${facts['gpu.missing']}`)
  return `${facts['gpu.missing']}; ${ofKind('api').filter(({ name }) => text(name) === 'cudaGraphLaunch').length} launches of graphs, ${ofKind('gpu').length} works with times`
}

async function checkKills() {
  const { path } = await cachedModel(DENSE)
  let [readable, works] = [0, 0]
  const count = 12
  for (let i = 0; i < count; i++) {
    const log = newLog('killed')
    await run(path, ['--prompt', '8', '--decode', '600'], recording(log), { signalAfterMs: 300 + i * 150 })
    if (!existsSync(log)) continue
    const found = await readLog(log)
    readable++
    works += found.works.length
    const wrong = found.issues.filter((issue) => !/^(?:run did not end|.*lost)/.test(issue))
    demand(wrong.length === 0, wrong.join('; '))
  }
  return `${readable} of ${count} had begun a log, all readable, ${works} works`
}

async function checkLong() {
  const { path } = await cachedModel(DENSE)
  const args = ['--prompt', '8', '--decode', '2000']
  const plain = await run(path, args)
  const found = await record(path, 'long', args)
  demand(found.hash === plain.hash, 'another result')
  demand(found.issues.length === 0, found.issues.join('; '))
  const { streams, overlapping } = checkStreams(found)
  const without = found.works.filter(({ what, node }) => what === 'kernel' && !node).length
  demand(without === 0, `${without} of ${found.works.length} kernels without an operator`)
  return `${found.works.length} works on ${streams} streams, ${overlapping} overlaps, ${plain.seconds.toFixed(2)} s, recorded ${found.seconds.toFixed(2)} s`
}

/** As a user does it. */
async function checkCommand() {
  const { path } = await cachedModel(presets.big)
  const log = join(out, 'big.ggtrace')
  const command = [program, '--lib', libs, '--model', path, '--gpu-layers', '99', '--prompt', '64', '--decode', '16']
  const cli = join(root, 'dist/ggml2perfetto.js')
  const of = (...args) =>
    execFileSync(process.execPath, [cli, ...args], {
      env: { ...process.env, ...ENVIRONMENT },
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    })
  of('record', '-o', log, '--', ...command)
  writeFileSync(join(out, 'stats.txt'), ['stats', 'why'].map((verb) => of(verb, log)).join('\n'))
  of(log, '-o', join(out, 'big.pftrace'))
  const { verdict } = await analyze(inputOf(log))
  return JSON.stringify(verdict)
}

for (const entry of cases) await checkCase(entry)
await check('CUPTI is used by another', checkBusy)
for (const plant of placements)
  await check(`placement: ${plant[0]}`, async () => {
    const [title, spec, args] = plant
    const { path } = await cachedModel(spec)
    const log = newLog(`placed-${title}`)
    await run(path, [...ARGS, ...args], recording(log))
    return checkPlacement(plant, await analyze(inputOf(log)))
  })
await check('several streams, tiny', () => checkStreamsOf(DENSE))
await check('several streams, Qwen2', () => checkStreamsOf(presets.tinyQwen2))
await check('several streams, without CUDA graphs', () => checkStreamsOf(DENSE, { GGML_CUDA_DISABLE_GRAPHS: '1' }))
await check('several streams, f16', () => checkStreamsOf({ ...DENSE, weights: 'F16' }))
await check('several streams, 1.1 B', () => checkStreamsOf(presets.big))
await check('times by events, graphs', () => checkEvents('tiny', DENSE, ARGS, {}))
await check('times by events, without graphs', () => checkEvents('tiny', DENSE, ARGS, NO_GRAPHS))
await check('times by events, 1.1 B', () => checkEvents('1.1 B', presets.big, ARGS, {}))
await check('2 000 tokens', checkLong)
await check('killed at any time', checkKills)
await check('the command', checkCommand)
await check('time of operators by --sync', checkSync)
await check('cost, 1.1 B, graphs', () => checkCost('a token', presets.big, {}))
await check('cost, 1.1 B, without graphs', () => checkCost('a token', presets.big, NO_GRAPHS))
await check('cost, tiny, graphs', () => checkCost('a token', DENSE, {}))
const failed = results.filter(({ ok }) => !ok).length
writeFileSync(join(out, 'results.json'), JSON.stringify(results, null, 1))
for (const name of ['tiny', 'MoE']) {
  const log = join(out, 'logs', `${name === 'tiny' ? 1 : 4}-${name}.ggtrace`)
  if (existsSync(log)) copyFileSync(log, join(out, `${name}.ggtrace`))
}
console.log(`${results.length - failed} of ${results.length} checks passed`)
process.exitCode = failed > 0 ? 1 : 0
