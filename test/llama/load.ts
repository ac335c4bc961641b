import { bitsOf } from '../../scripts/random.mjs'
import type { Answer, Ask } from './client.ts'
import { presets } from './gguf.mjs'
import type { Server, ServerOptions } from './server.ts'

/** A load for llama-server: the same requests for the same seed. Prompts are tokens, so that their sizes are exact. */

export type LoadKind =
  | 'completion'
  | 'stream'
  /** The client closes the connection in the middle of the answer. */
  | 'closed'
  /** The client closes the connection before the answer. */
  | 'abandoned'
  | 'grammar'
  /** Two answers to one prompt: two tasks. */
  | 'choices'
  /** Larger than a slot. */
  | 'oversize'
  | 'embedding'

/** A request of the load. */
export interface LoadRequest {
  readonly kind: LoadKind
  /** No two have the same, but those of an `embedding`. */
  readonly promptTokens: number
  readonly ask: Ask
}

export interface LoadOptions {
  readonly requests: number
  readonly kinds: readonly LoadKind[]
  /** Tokens that a slot has room for. */
  readonly slotTokens: number
  readonly generated: number
  readonly seed?: number
}

/** Requests of the load are in flight at once: more than a server of four slots can process. */
const IN_FLIGHT = 6
/** The first token of a word in the vocabulary of models with random weights, and the number of those that prompts have. */
const [FIRST_WORD, WORDS] = [300, 1000]
const BOS = 1
const PREFIXES = 4

/** Random tokens of words. */
export const words = (count: number, seed: number): number[] => {
  const random = bitsOf(seed)
  return Array.from({ length: count }, () => FIRST_WORD + (random() % WORDS))
}

/** The body of a completion whose answer does not depend on chance. */
export const greedy = (prompt: readonly number[], generated: number, more: Ask['body'] = {}): Ask => ({
  path: '/completion',
  body: { prompt, n_predict: generated, temperature: 0, ignore_eos: true, timings_per_token: true, ...more },
})

const GRAMMAR = 'root ::= (" " [a-m]+ " " [0-9] [0-9] ",")+'

const askOf = (kind: LoadKind, prompt: readonly number[], { generated, slotTokens }: LoadOptions): Ask => {
  switch (kind) {
    case 'completion':
      return greedy(prompt, generated)
    case 'stream':
      return greedy(prompt, generated, { stream: true })
    case 'closed':
      return { ...greedy(prompt, slotTokens / 2, { stream: true }), closeAfter: 3 }
    case 'abandoned':
      return { ...greedy(prompt, 4 * generated), closeAfter: 0 }
    case 'grammar':
      return greedy(prompt, generated, { grammar: GRAMMAR, ignore_eos: false })
    case 'choices':
      return greedy(prompt, generated, { n_cmpl: 2 })
    case 'oversize':
      return greedy(prompt, generated)
    case 'embedding':
      return { path: '/embedding', body: { content: prompt } }
  }
}

/** The requests: of each kind in turn, with one of a few prefixes that they share. */
export function planLoad(options: LoadOptions): LoadRequest[] {
  const { requests, kinds, slotTokens, seed = 1 } = options
  const prefix = Math.floor(slotTokens / 8)
  const prefixes = Array.from({ length: PREFIXES }, (_, i) => [BOS, ...words(prefix - 1, seed * 1000 + i)])
  return Array.from({ length: requests }, (_, i) => {
    const kind = kinds[i % kinds.length]!
    const promptTokens = kind === 'oversize' ? slotTokens + 1 + i : prefix + 2 + 3 * i
    const shared = prefixes[i % PREFIXES]!
    const prompt = [...shared, ...words(promptTokens - prefix, seed * 1000 + PREFIXES + i)]
    return { kind, promptTokens, ask: askOf(kind, prompt, options) }
  })
}

/** The load of four slots with 512 tokens each: 40 requests, or as many. */
export const fullLoad = (requests = 40): LoadRequest[] => {
  const often: LoadKind[] = ['completion', 'stream', 'completion', 'closed', 'grammar', 'stream']
  const kinds: LoadKind[] = [
    ...often,
    'oversize',
    'choices',
    'completion',
    'embedding',
    ...often,
    'abandoned',
    'stream',
  ]
  return planLoad({ requests, kinds, slotTokens: 512, generated: 16 })
}

/** Sends the requests in their order, a few at a time, and waits until the server has nothing to do. */
export async function runLoad(server: Server, load: readonly LoadRequest[]): Promise<Answer[]> {
  const answers: Answer[] = []
  let next = 0
  const work = async () => {
    for (let i = next++; i < load.length; i = next++) answers[i] = await server.ask(load[i]!.ask)
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, work))
  await server.untilIdle()
  return answers
}

/** A model, its draft, and how a server runs them so that answers do not depend on what else is in a batch. */
export const EXACT = {
  model: 'exact',
  draft: { ...presets.exact, layers: 3 },
  args: [
    ...['-ctk', 'f32', '-ctv', 'f32', '-ctkd', 'f32', '-ctvd', 'f32', '-fa', 'off', '-c', 2048, '-np', 4, '-t', 1],
    ...['--spec-type', 'draft-simple', '--embeddings', '--pooling', 'mean'],
  ],
} as const satisfies ServerOptions
