/** A model that decodes beside its draft: calls of the one are not compared with those of the other. */
import { presets } from '../../../test/llama/gguf.mjs'
import { modelIn } from '../bench-folder.mjs'
import { dropFromCache } from './parts.mjs'

const DRAFT = { ...presets.tinyDense, vocabulary: presets.big.vocabulary }

const besideDraft = (isCold) => ({
  builds: ['openmp'],
  async create({ folder, build, number }) {
    const [model, draft] = [await modelIn(folder, 'big'), await modelIn(folder, DRAFT)]
    if (isCold) dropFromCache(model)
    return { command: build.speculate({ model, draft, tokens: 12 + 4 * number }) }
  },
})

export const coldTarget = {
  ...besideDraft(true),
  id: 'cold-target',
  title: 'a model beside its draft that is read from the disk for the first time',
  rules: ['first-call', 'slow-load', 'page-faults'],
  isNamed: ({ sentence }) => /disk|cache|page/i.test(sentence),
}

export const warmTarget = {
  ...besideDraft(false),
  id: 'beside-draft',
  title: 'a model beside its draft, both in memory',
  isUndisturbed: true,
  isHarmless: true,
  rules: ['first-call'],
}
