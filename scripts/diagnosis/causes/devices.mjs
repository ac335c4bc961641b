/** What a device does not compute: Vulkan by lavapipe, and the CUDA backend on a driver that computes on the CPU (test/gpu). */
import { modelIn } from '../bench-folder.mjs'

const BASE = { layers: 4, width: 256, feedForward: 256, heads: 4, kvHeads: 2, vocabulary: 1400, context: 512 }
/** What remains on the CPU takes most of the time. */
const LARGE = { ...BASE, feedForward: 4096 }
const MOE = { ...BASE, feedForward: 4096, experts: 8, expertsUsed: 4 }
const PLACED = { prompt: 8, tokens: 12, threads: 1 }

const placed = ({ spec = BASE, args, rule, ...cause }) => ({
  isUndisturbed: true,
  isNamed: (finding) => finding.rule === rule,
  async create({ folder, build }) {
    const { env } = build
    return { command: build.decode({ model: await modelIn(folder, spec), ...PLACED, args }), env }
  },
  ...cause,
})

const ALL = ['--gpu-layers', '99']

export const oddHeads = placed({
  id: 'odd-heads',
  title: 'heads of a size for which the device has no kernel',
  builds: ['cuda'],
  spec: { ...BASE, width: 192 },
  args: [...ALL, '--flash-attention', '1'],
  rule: 'moved-operators',
})
export const cacheType = placed({
  id: 'cache-type',
  title: 'a KV cache of a type for which the device has no kernel',
  builds: ['cuda'],
  args: [...ALL, '--flash-attention', '1', '--type-k', 'q5_1', '--type-v', 'q5_1'],
  rule: 'moved-operators',
})
export const weightType = placed({
  id: 'weight-type',
  title: 'weights of a type for which the device has no kernel',
  builds: ['cuda'],
  spec: { ...LARGE, types: { ffn_down: 'TQ2_0' } },
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
export const attentionOff = placed({
  id: 'attention-off',
  title: 'flash attention that is switched off by itself',
  builds: ['cuda'],
  spec: { ...BASE, width: 192 },
  args: ALL,
  rule: 'flash-attention-off',
})
