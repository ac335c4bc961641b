/** What a device does not compute: Vulkan by lavapipe, and the CUDA backend on a driver that computes on the CPU (test/gpu). */
import { modelIn } from '../bench-folder.mjs'

const BASE = { layers: 4, width: 256, feedForward: 256, heads: 4, kvHeads: 2, vocabulary: 1400, context: 512 }
/** What remains on the CPU takes most of the time. */
const LARGE = { ...BASE, feedForward: 8192 }
const LONG = { ...BASE, context: 2048 }
const MOE = { ...BASE, feedForward: 4096, experts: 8, expertsUsed: 4 }
const PLACED = { tokens: 12, threads: 1 }

const DEEP = { ...BASE, layers: 8, width: 512, feedForward: 2048, heads: 8 }

/** `args` and `more`, further variables of the environment, may depend on the number of the run. */
const placed = ({ spec = BASE, args, more = () => ({}), rule, prompt = 8, ...cause }) => ({
  isUndisturbed: true,
  rules: [rule],
  async create({ folder, build, number }) {
    const options = { ...PLACED, prompt: prompt + 4 * number, args: typeof args === 'function' ? args(number) : args }
    return {
      command: build.decode({ model: await modelIn(folder, spec), ...options }),
      env: { ...build.env, ...more(number) },
    }
  },
  ...cause,
})

const ALL = ['--gpu-layers', '99']

export const oddHeads = placed({
  id: 'odd-heads',
  title: 'heads of a size for which the device has no kernel',
  builds: ['cuda'],
  spec: { ...LONG, width: 192 },
  prompt: 1500,
  args: [...ALL, '--flash-attention', '1'],
  rule: 'moved-operators',
})
export const cacheType = placed({
  id: 'cache-type',
  title: 'a KV cache of a type for which the device has no kernel',
  builds: ['cuda'],
  spec: LONG,
  prompt: 1500,
  args: [...ALL, '--flash-attention', '1', '--type-k', 'iq4_nl', '--type-v', 'iq4_nl'],
  rule: 'moved-operators',
})
export const weightType = placed({
  id: 'weight-type',
  title: 'weights of a type for which the device has no kernel',
  builds: ['cuda'],
  spec: { ...LARGE, types: { ffn_down: 'TQ2_0', ffn_gate: 'TQ2_0', ffn_up: 'TQ2_0' } },
  args: ALL,
  rule: 'moved-operators',
})
export const expertsOnCpu = placed({
  id: 'experts-on-cpu',
  title: 'experts that stay on the CPU',
  builds: ['cuda', 'vulkan'],
  spec: MOE,
  args: [...ALL, '--on-cpu', 'ffn_.*_exps'],
  rule: 'moved-operators',
})
export const fewLayers = placed({
  id: 'few-layers',
  title: 'layers that stay on the CPU',
  builds: ['cuda', 'vulkan'],
  spec: LARGE,
  args: ['--gpu-layers', '1'],
  rule: 'layers-on-cpu',
})
/** Of 8 layers and the output, the device has 3 to 5. */
export const halfOffload = placed({
  id: 'half-offload',
  title: 'half of the layers, which stay on the CPU',
  // With lavapipe, the layers of the CPU do not count.
  builds: ['cuda'],
  spec: DEEP,
  args: (number) => ['--gpu-layers', `${3 + (number % 3)}`],
  rule: 'layers-on-cpu',
})
/** On 2 to 4 GPUs. */
export const gpusByTurns = placed({
  id: 'gpus-by-turns',
  title: 'a model that is divided by layers over several GPUs',
  builds: ['cuda'],
  spec: { ...DEEP, weights: 'F16' },
  args: ALL,
  more: (number) => ({ BED_DEVICES: `${2 + (number % 3)}` }),
  rule: 'gpu-turns',
})
export const outputOnCpu = placed({
  id: 'output-on-cpu',
  title: 'an output matrix that stays on the CPU',
  // With lavapipe all that the GPU computes takes so long that the output does not count.
  builds: ['cuda'],
  spec: { ...BASE, layers: 8, width: 1024, feedForward: 1024, heads: 16, vocabulary: 32_000 },
  args: [...ALL, '--on-cpu', '^output.weight'],
  rule: 'divided-model',
})
export const attentionOff = placed({
  id: 'attention-off',
  title: 'flash attention that is switched off by itself',
  builds: ['cuda'],
  isCostUnknown: true,
  spec: { ...LONG, width: 192 },
  prompt: 1500,
  args: ALL,
  rule: 'flash-attention-off',
})
