/**
 * A Node host for the recorder's tests: decodes the same prompt as run.c, greedily, with node-llama-cpp; llama_decode
 * then runs on changing threads of libuv's pool, in libraries that Node loaded. Prints JSON lines as run.c does, but no
 * hash.
 *
 * node test/llama/run-node.mjs --model FILE [--threads N] [--prompt N] [--decode N] [--seed N]
 *   [--vocabulary N] [--gpu-layers N] [--times] [--api]
 *
 * By default the addon of vendor/llama/lib alone, called directly. With --api the package's own JavaScript API, which
 * `node scripts/fetch-llama.mjs --node` installs; it first forks a process that tries the addon out.
 */
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const vendor = new URL('../../vendor/llama/', import.meta.url)
const monotonic = () => Number(process.hrtime.bigint()) // CLOCK_MONOTONIC, as in run.c
const print = (line) => console.log(JSON.stringify(line))

const { values } = parseArgs({
  options: {
    model: { type: 'string' },
    threads: { type: 'string', default: '1' },
    prompt: { type: 'string', default: '8' },
    decode: { type: 'string', default: '8' },
    seed: { type: 'string', default: '1' },
    vocabulary: { type: 'string', default: '2048' },
    'gpu-layers': { type: 'string', default: '0' }, // of the addon
    times: { type: 'boolean', default: false },
    api: { type: 'boolean', default: false },
  },
})
const [threads, prompt, decode, seed, vocabulary] = ['threads', 'prompt', 'decode', 'seed', 'vocabulary'].map((name) =>
  Number(values[name]),
)
const contextSize = prompt + decode + 1

/** The prompt of run.c: a begin token, then words. */
const promptOf = () => {
  let random = Math.imul(seed, 2_654_435_761) >>> 0
  return Array.from({ length: prompt }, (_, index) => {
    random = (Math.imul(random, 1_664_525) + 1_013_904_223) >>> 0
    return index ? 259 + ((random >>> 8) % (vocabulary - 259)) : 1
  })
}

const timed = async (call, kind, tokens, work) => {
  const start = monotonic()
  const result = await work()
  if (values.times) print({ event: 'call', context: 0, call, kind, tokens, start, end: monotonic() })
  return result
}

const byAddon = async () => {
  const lib = fileURLToPath(new URL('lib/', vendor))
  const addon = createRequire(import.meta.url)(`${lib}llama-addon.node`)
  addon.setLogger(() => {})
  addon.loadBackends(lib)
  await addon.init()
  const gpuLayers = Number(values['gpu-layers'])
  const model = new addon.AddonModel(values.model, { addonExports: addon, gpuLayers, useMmap: true })
  if (!(await model.init())) throw new Error(`the addon does not load ${values.model}`)
  const context = new addon.AddonContext(model, { contextSize, batchSize: 512, sequences: 1, threads })
  if (!(await context.init())) throw new Error('the addon makes no context')
  const sampler = new addon.AddonSampler(model)
  sampler.applyConfig({ temperature: 0 })

  const tokens = []
  let input = promptOf()
  let position = 0
  for (let call = 0; call <= decode; call++) {
    context.initBatch(input.length)
    const [output] = context.addToBatch(0, position, Uint32Array.from(input), Uint32Array.of(input.length - 1))
    await timed(call, call ? 'decode' : 'prompt', input.length, () => context.decodeBatch())
    position += input.length
    input = [await context.sampleToken(output, sampler)]
    if (call < decode) tokens.push(input[0])
  }
  sampler.dispose()
  await context.dispose()
  await model.dispose()
  await addon.dispose()
  return tokens
}

const byApi = async () => {
  const { getLlama } = await import(new URL('node/node_modules/node-llama-cpp/dist/index.js', vendor))
  const llama = await getLlama({
    gpu: false,
    build: 'never',
    skipDownload: true,
    progressLogs: false,
    logLevel: 'error',
  })
  const model = await llama.loadModel({ modelPath: values.model })
  const context = await model.createContext({ contextSize, threads })
  const sequence = context.getSequence()
  const tokens = []
  const evaluation = sequence.evaluate(promptOf(), { temperature: 0, yieldEogToken: true })
  for (let call = 0; call < decode; call++) {
    const next = () => evaluation.next()
    const { value, done } = await timed(call, call ? 'decode' : 'prompt', call ? 1 : prompt, next)
    if (done) break
    tokens.push(value)
  }
  await evaluation.return()
  await llama.dispose()
  return tokens
}

const tokens = values.api ? await byApi() : await byAddon()
print({ event: 'result', pid: process.pid, tokens: [[tokens]] })
