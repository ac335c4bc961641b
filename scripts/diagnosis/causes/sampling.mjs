import { presets } from '../../../test/llama/gguf.mjs'
import { modelIn } from '../bench-folder.mjs'

/** A grammar of which dozens of rules are possible at each token. */
/** Words that two rules fit, each with `count` letters at most: what fits is kept for each way to read it. */
const grammar = (count) =>
  `root ::= item{1,${2 * count}}\nitem ::= " "? [a-z0-9]{0,${count}} " "? | " "? [a-z]{0,${count}} [0-9]{0,${count}}\n`
/** By the number of the run. */
const COUNTS = [14, 10, 12, 18, 8]

export const slowGrammar = {
  id: 'slow-grammar',
  title: 'an ambiguous grammar with large counts of repetitions',
  builds: ['openmp'],
  isUndisturbed: true,
  rules: ['slow-grammar'],
  async create({ folder, build, number }) {
    const model = await modelIn(folder, 'tinyDense')
    const args = ['--grammar', grammar(COUNTS[number % COUNTS.length])]
    return { command: build.decode({ model, threads: 2, tokens: 12, args }) }
  },
}

/** llama.cpp writes the cells of the KV cache, its batches and graphs for each call. */
export const debugLog = {
  id: 'debug-log',
  title: 'a debug log of each call',
  builds: ['openmp'],
  isUndisturbed: true,
  rules: ['log-output'],
  async create({ folder, build }) {
    const command = build.decode({ model: await modelIn(folder, 'tinyDense'), threads: 2, args: ['-lv', '5'] })
    return {
      command,
      env: { LLAMA_BATCH_DEBUG: '2', LLAMA_KV_CACHE_DEBUG: '2', GGML_SCHED_DEBUG: '2', LLAMA_GRAPH_REUSE_DISABLE: '1' },
    }
  },
}

/** The samplers of a vocabulary of 32 000 tokens sort all of it. */
export const slowSamplers = {
  id: 'slow-samplers',
  title: 'samplers that sort a large vocabulary',
  builds: ['openmp'],
  isUndisturbed: true,
  rules: ['slow-samplers'],
  async create({ folder, build, number }) {
    const spec = {
      ...presets.tinyDense,
      layers: 2,
      width: 64,
      feedForward: 96,
      heads: 4,
      kvHeads: 2,
      vocabulary: 32_000,
    }
    const sampling = [
      '--temp',
      '1',
      '--seed',
      `${number + 1}`,
      '--samplers',
      'typ_p;top_p;temperature',
      '--typical',
      '0.9',
    ]
    return { command: build.decode({ model: await modelIn(folder, spec), threads: 2, tokens: 60, sampling }) }
  },
}

/** Sorting is not split over workers. */
export const samplingInGraph = {
  id: 'sampling-in-graph',
  title: 'samplers in the graph (--backend-sampling): one worker sorts a large vocabulary',
  builds: ['openmp'],
  isUndisturbed: true,
  rules: ['unbalanced-op', 'barrier-wait'],
  // Where many operators are not split, none of them waits more than the others do.
  isNamed: ({ sentence }) => /ARGSORT|worker 0 arrives last in .*\(after other /.test(sentence),
  async create({ folder, build, number }) {
    const spec = { ...presets.tinyDense, layers: 2, width: 256, feedForward: 512, vocabulary: 32_000 }
    const sampling = [
      '--temp',
      '1',
      '--seed',
      `${number + 1}`,
      '--samplers',
      'top_p;temperature',
      '--top-p',
      '0.9',
      '-bs',
    ]
    return { command: build.decode({ model: await modelIn(folder, spec), threads: 2, tokens: 40, sampling }) }
  },
}

/** Each call plans its graph again, which a small model computes in less time. */
export const noReuse = {
  id: 'no-reuse',
  title: 'graphs that are planned again for each call (LLAMA_GRAPH_REUSE_DISABLE)',
  builds: ['pool', 'openmp'],
  isUndisturbed: true,
  rules: ['outside-graphs'],
  async create({ folder, build }) {
    const spec = { layers: 16, width: 32, feedForward: 32, heads: 2, kvHeads: 1, vocabulary: 300, context: 128 }
    const command = build.decode({ model: await modelIn(folder, spec), threads: 1, tokens: 60 })
    return { command, env: { LLAMA_GRAPH_REUSE_DISABLE: '1' } }
  },
}
