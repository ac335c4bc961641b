/** A model that decodes next to its draft: calls of the one are not compared with those of the other. */
import { presets } from '../../../test/llama/gguf.mjs'
import { modelIn } from '../bench-folder.mjs'

const DRAFT = { ...presets.tinyDense, vocabulary: presets.big.vocabulary }

export const besideDraft = {
  id: 'beside-draft',
  title: 'a model next to its draft, both in memory',
  builds: ['openmp'],
  isUndisturbed: true,
  isHarmless: true,
  rules: ['first-call'],
  async create({ folder, build, number }) {
    const [model, draft] = [await modelIn(folder, 'big'), await modelIn(folder, DRAFT)]
    return { command: build.speculate({ model, draft, tokens: 12 + 4 * number }) }
  },
}
