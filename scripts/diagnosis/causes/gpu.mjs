/** What a device waits for: Vulkan by lavapipe, and CUDA on a driver whose device has the times of a GPU (test/gpu). */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { modelIn } from '../bench-folder.mjs'

const SMALL = { layers: 8, width: 256, feedForward: 512, heads: 4, kvHeads: 2, vocabulary: 1400, context: 512 }
const LARGE = { ...SMALL, layers: 2, width: 2048, feedForward: 8192, heads: 16, kvHeads: 4, weights: 'F16' }
const ALL = ['--gpu-layers', '99']

const onDevice = ({ spec, args, prompt = 8, tokens = 40, env, ...cause }) => ({
  isUndisturbed: true,
  async create({ folder, build, number }) {
    const options = { model: await modelIn(folder, spec), threads: 1, prompt, tokens: tokens + 4 * number, args }
    return { command: build.decode(options), env: { ...build.env, ...env } }
  },
  ...cause,
})

export const starvedGpu = onDevice({
  id: 'starved-gpu',
  title: 'kernels so short that a GPU waits for each launch',
  builds: ['cuda'],
  rules: ['gpu-launches'],
  spec: SMALL,
  args: ALL,
  env: { GGML_CUDA_DISABLE_GRAPHS: '1' },
})

/** ggml copies weights to a device for batches from 32 tokens on. The driver here copies on the CPU before the device does: the GPU waits for that, too. */
export const copiedWeights = onDevice({
  id: 'copied-weights',
  title: 'weights that are copied to a GPU for each prompt',
  builds: ['cuda'],
  isCostUnknown: true,
  rules: ['gpu-copies'],
  spec: LARGE,
  args: ['--gpu-layers', '0', '--batch', '64', '--ubatch', '64'],
  prompt: 480,
  tokens: 1,
})

let caches = 0

/** The cache of the driver is empty. */
export const newPipelines = {
  id: 'new-pipelines',
  title: 'pipelines that are compiled in the first call',
  builds: ['vulkan'],
  isUndisturbed: true,
  rules: ['first-call'],
  async create({ folder, build, number }) {
    const cache = join(folder, `shaders-${caches++}`)
    mkdirSync(cache)
    const command = build.decode({
      ...{ model: await modelIn(folder, SMALL), threads: 1, prompt: 8 + number, tokens: 20, args: ALL },
    })
    return { command, env: { ...build.env, MESA_SHADER_CACHE_DIR: cache } }
  },
}
