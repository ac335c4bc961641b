import { presets } from '../../../test/llama/gguf.mjs'
import { modelIn } from '../bench-folder.mjs'

/** Decoding from a short context to a long one. */
export const longContext = {
  id: 'long-context',
  title: 'a context that grows long',
  builds: ['pool', 'openmp'],
  isUndisturbed: true,
  isNamed: ({ rule, sentence }) => rule === 'context-growth' && /FLASH_ATTN_EXT|KQ|kq/.test(sentence),
  async create({ folder, build }) {
    const command = build.decode({ model: await modelIn(folder, 'tinyDense'), threads: 2, tokens: 1600 })
    return { command }
  },
}

/** The weights of one role are not quantised, those of all others are. */
export const slowerType = {
  id: 'slower-type',
  title: 'one tensor of a layer in a slower type',
  builds: ['pool', 'openmp'],
  isUndisturbed: true,
  isNamed: ({ rule }) => rule === 'slower-type',
  async create({ folder, build }) {
    const spec = { name: 'slower', ...presets.tinyDense, types: { ffn_down: 'F32' } }
    return { command: build.decode({ model: await modelIn(folder, spec), threads: 2 }) }
  },
}
