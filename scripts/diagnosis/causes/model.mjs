import { presets } from '../../../test/llama/gguf.mjs'
import { modelIn } from '../bench-folder.mjs'

/** Decoding from a short context to a long one. */
export const longContext = {
  id: 'long-context',
  title: 'a context that grows long',
  builds: ['pool', 'openmp'],
  isUndisturbed: true,
  rules: ['context-growth'],
  isNamed: ({ sentence }) => /FLASH_ATTN_EXT|KQ|kq/.test(sentence),
  async create({ folder, build, number }) {
    const tokens = 1600 - 100 * number
    const command = build.decode({ model: await modelIn(folder, 'tinyDense'), threads: 2, tokens })
    return { command }
  },
}

/** Attention as products of matrices, whose results are as long as the context. */
export const noFlashAttention = {
  id: 'no-flash-attention',
  title: 'a long context without flash attention',
  builds: ['pool', 'openmp'],
  isUndisturbed: true,
  rules: ['context-growth'],
  isNamed: ({ sentence }) => /kq|softmax|SOFT_MAX/i.test(sentence),
  async create({ folder, build, number }) {
    const args = build.name === 'openmp' ? ['-fa', 'off'] : ['--flash-attention', '0']
    const options = { model: await modelIn(folder, 'tinyDense'), threads: 2, tokens: 1200 + 100 * number, args }
    return { command: build.decode(options) }
  },
}

/** Each token takes the types of all keys and values apart. */
export const quantisedCache = {
  id: 'quantised-cache',
  title: 'a KV cache of a type that is slow to read',
  builds: ['pool', 'openmp'],
  isUndisturbed: true,
  rules: ['context-growth'],
  isNamed: ({ sentence }) => sentence.includes('FLASH_ATTN_EXT'),
  async create({ folder, build, number }) {
    const args =
      build.name === 'openmp'
        ? ['-fa', 'on', '-ctk', 'iq4_nl', '-ctv', 'iq4_nl']
        : ['--flash-attention', '1', '--type-k', 'iq4_nl', '--type-v', 'iq4_nl']
    const options = { model: await modelIn(folder, 'tinyDense'), threads: 2, tokens: 800 + 100 * number, args }
    return { command: build.decode(options) }
  },
}

/** Reads weights as fast as the memory permits. */
export const memoryBound = {
  id: 'memory-bound',
  title: 'weights without quantisation, which are read as fast as memory permits',
  builds: ['pool', 'openmp'],
  by: ['why'],
  isUndisturbed: true,
  rules: ['roofline'],
  isNamed: ({ sentence }) => sentence.includes('memory-bound'),
  async create({ folder, build, number }) {
    const spec = { layers: 6, width: 2048, feedForward: 8192, heads: 16, kvHeads: 4, vocabulary: 2048, context: 512 }
    const model = await modelIn(folder, { ...spec, weights: 'F16' })
    const command = build.decode({ model, threads: 2, tokens: 20 + 4 * number })
    return { command, options: { why: ['--peaks', 'measure'] } }
  },
}

/** The weights of one role are not quantised, those of all others are. */
export const slowerType = {
  id: 'slower-type',
  title: 'one tensor of a layer in a slower type',
  builds: ['pool', 'openmp'],
  isUndisturbed: true,
  rules: ['slower-type'],
  async create({ folder, build }) {
    const spec = { name: 'slower', ...presets.tinyDense, types: { ffn_down: 'F32' } }
    return { command: build.decode({ model: await modelIn(folder, spec), threads: 2 }) }
  },
}
