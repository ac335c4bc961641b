import { modelIn } from '../bench-folder.mjs'

/** A grammar of which dozens of rules are possible at each token. */
const GRAMMAR = 'root ::= item{1,60}\nitem ::= " "? [a-z0-9]{0,30} " "? | " "? [a-z]{0,30} [0-9]{0,30}\n'

export const slowGrammar = {
  id: 'slow-grammar',
  title: 'an ambiguous grammar with large counts of repetitions',
  builds: ['openmp'],
  isUndisturbed: true,
  isNamed: ({ rule }) => rule === 'slow-grammar',
  async create({ folder, build }) {
    const model = await modelIn(folder, 'tinyDense')
    return { command: build.decode({ model, threads: 2, tokens: 16, args: ['--grammar', GRAMMAR] }) }
  },
}

/** llama.cpp writes the cells of the KV cache, its batches and graphs for each call. */
export const debugLog = {
  id: 'debug-log',
  title: 'a debug log of each call',
  builds: ['openmp'],
  isUndisturbed: true,
  isNamed: ({ rule }) => rule === 'log-output',
  async create({ folder, build }) {
    const command = build.decode({ model: await modelIn(folder, 'tinyDense'), threads: 2, args: ['-lv', '5'] })
    return {
      command,
      env: { LLAMA_BATCH_DEBUG: '2', LLAMA_KV_CACHE_DEBUG: '2', GGML_SCHED_DEBUG: '2', LLAMA_GRAPH_REUSE_DISABLE: '1' },
    }
  },
}
