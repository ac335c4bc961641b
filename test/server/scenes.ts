import type { Answer } from '../llama/client.ts'
import { presets } from '../llama/gguf.mjs'
import { greedy, words } from '../llama/load.ts'
import type { Server, ServerOptions } from '../llama/server.ts'

/** Requests that are slow for one reason each, made on purpose. */

/** How its server is started, and what is sent to it. */
export interface Scene {
  readonly server: ServerOptions
  /** The answers: `slow` is the one whose latency the scene is about. */
  readonly play: (server: Server) => Promise<{ readonly slow: Answer; readonly others: readonly Answer[] }>
}

const BOS = 1
const small = { ...presets.tinyDense, layers: 4, width: 256, feedForward: 512, heads: 4, kvHeads: 2, context: 8192 }

/** Decodes run; then a prompt of 2000 tokens is processed in the same calls, in parts. */
export const longPrompt: Scene = {
  server: { model: small, args: ['-c', 16_384, '-np', 4, '-t', 1, '-b', 512] },
  play: async (server) => {
    let started: (() => void) | undefined
    const isDecoding = new Promise<void>((resolve) => {
      started = resolve
    })
    const decodes = [0, 1].map((i) => {
      const ask = greedy([BOS, ...words(20, i)], 200, { stream: true })
      return server.ask(i === 0 ? { ...ask, onEvents: (events) => events >= 10 && started?.() } : ask)
    })
    await isDecoding
    const long = server.ask(greedy([BOS, ...words(1999, 9)], 4))
    const [slow, ...others] = await Promise.all([...decodes, long])
    return { slow: slow!, others }
  },
}

/** One token near the start of a prompt differs from that of the request before, so nearly all of it is processed twice. */
export const MISSED_AT = 5
export const missedPrefix: Scene = {
  server: { model: small, args: ['-c', 4096, '-np', 1, '-t', 1] },
  play: async (server) => {
    const prompt = [BOS, ...words(1999, 3)]
    const first = await server.ask(greedy(prompt, 8))
    const again = await server.ask(greedy(prompt, 8))
    const slow = await server.ask(greedy([...prompt.slice(0, MISSED_AT), BOS, ...prompt.slice(MISSED_AT)], 8))
    return { slow, others: [first, again] }
  },
}

/** A list of words that share their first letters: each token of a large vocabulary is matched with each of them. */
const GRAMMAR = `root ::= (${Array.from({ length: 20 }, (_, i) => `" w${1000 + 37 * i}"`).join(' | ')}){1,40}`

/** The grammar costs more than the calls. */
export const slowGrammar: Scene = {
  server: {
    model: { ...small, layers: 2, width: 64, feedForward: 96, vocabulary: 32_000 },
    args: ['-c', 2048, '-np', 2, '-t', 1],
  },
  play: async (server) => {
    const prompt = [BOS, ...words(30, 4)]
    const plain = await server.ask(greedy(prompt, 12))
    const slow = await server.ask(greedy(prompt, 12, { grammar: GRAMMAR }))
    return { slow, others: [plain] }
  },
}
