/** What a mixture of experts makes slow: its routing, and which experts it chooses. */
import { modelIn } from '../bench-folder.mjs'

/** So many experts that one worker sorts for longer than all other operators take. */
const MANY = {
  ...{ layers: 16, width: 32, feedForward: 32, heads: 1, kvHeads: 1, vocabulary: 300, context: 512 },
  // Of a type that AMX does not compute: with it, all operators of so small a model wait long for each other.
  ...{ experts: 512, expertsUsed: 1, weights: 'F32' },
}
export const sortedExperts = {
  id: 'sorted-experts',
  title: 'many experts, which one worker sorts',
  builds: ['pool', 'openmp'],
  isUndisturbed: true,
  rules: ['unbalanced-op', 'barrier-wait'],
  // Where other operators of so small a model wait as long, worker 0 is the last one at most barriers.
  isNamed: ({ sentence }) => /ARGSORT|worker 0 arrives last in .*\(after MoE /.test(sentence),
  async create({ folder, build, number }) {
    const options = { model: await modelIn(folder, MANY), threads: 2, prompt: 4, tokens: 40 + 10 * number }
    return { command: build.decode(options) }
  },
}

/** Its texts repeat themselves, as those of random weights do. */
const FEW = {
  ...{ layers: 4, width: 256, feedForward: 256, heads: 4, kvHeads: 2, vocabulary: 300, context: 1024 },
  ...{ experts: 32, expertsUsed: 2 },
}
export const sameExperts = {
  id: 'same-experts',
  title: 'a text that repeats itself, for which the same experts are chosen',
  builds: ['pool', 'openmp'],
  by: ['why'],
  isUndisturbed: true,
  isCostUnknown: true,
  rules: ['expert-imbalance'],
  async create({ folder, build, number }) {
    const options = { model: await modelIn(folder, FEW), threads: 1, prompt: 4, tokens: 500 + 50 * number }
    return { command: build.decode(options) }
  },
}
