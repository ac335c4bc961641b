import type * as of from './of.ts'
import { at, counter, group, track } from './place.ts'

/** The rows of requests: a part of the layout, after the row Phase. */
export const REQUESTS = {
  requests: group('run', {
    rank: at(0, 8),
    name: 'Requests',
    description:
      'What was done for each request: from the time when it was posted to its last result. Without records of tasks, ' +
      'a request is the use of a sequence, from a prompt to the last token before the next prompt (inferred).',
  }),
  queueLength: counter('requests', {
    rank: 0,
    name: 'queue length',
    description: 'Requests that were posted and that no slot worked on yet.',
    unit: 'count',
  }),
  slotsBusy: counter('requests', {
    rank: 1,
    name: 'slots busy',
    description:
      'Slots that worked on a request, or sequences that did; of what clients measure, requests without an answer yet.',
    unit: 'count',
  }),
  queue: track('requests', {
    rank: 2,
    rows: 62,
    name: 'Queue',
    description: 'Requests before a slot began to work on them; the rest of each is in the row of its slot.',
  }),
  inFlight: track('requests', {
    rank: 2 ** 24,
    rows: 2 ** 24,
    name: 'In flight',
    description:
      'Requests of which no slot is known, as a client measured them, or as spans of a server describe them; those at the same time are in ' +
      'further rows. Below each its parts (inferred): until the first token, and from there to the last one.',
  }),
  slot: track<{ readonly slot: number }>('requests', {
    rank: ({ slot }) => 64 + 8 * slot,
    rows: 7,
    name: ({ slot }) => `slot ${slot}`,
    description: ({ slot }) =>
      `Requests that slot ${slot} (sequence ${slot} of the llama_context) worked on, one after the other, and below each the ` +
      'parts of its time: calls with its tokens, sampling, drafts; stalled = calls and samplers of other requests ran while it ' +
      'waited; other = the remainder.',
  }),
  cachedTokens: counter<{ readonly context: number; readonly sequence: number }>('requests', {
    rank: ({ context, sequence }) => 64 + 8 * sequence + 7 + 1024 * context,
    name: ({ context, sequence }) =>
      `${context > 0 ? `context ${context + 1}, ` : ''}sequence ${sequence}: tokens in the KV cache`,
    description: ({ sequence }) =>
      `Tokens of sequence ${sequence} in the memory of its llama_context: from the positions in calls, and from what was removed.`,
    unit: 'count',
    axis: () => 'tokens',
  }),
} as const

/** The row of tests: a part of the layout, after the requests. */
export const BENCHMARKS = {
  benchmarks: track('run', {
    rank: at(0, 9),
    rows: 3,
    name: 'Benchmark',
    description:
      'Tests that a program measured itself, such as those of llama-bench, with their repetitions. Only durations are recorded: ' +
      'repetitions are laid end to end from the start of their test (inferred).',
  }),
} as const

/** The rows of functions around calls: a part of the layout, after the workers. */
export const FUNCTIONS = {
  functions: group('run', {
    rank: at(3, 12),
    name: 'Functions',
    description: 'What the program called around its llama_decode calls: samplers, text, waiting, loading, states.',
  }),
  threadFunctions: track<of.Nth & { readonly tid: number }>('functions', {
    rank: ({ nth }) => nth,
    name: ({ tid }) => `thread ${tid}`,
    description: ({ tid }) => `Functions that thread ${tid} called, nested as it called them.`,
  }),
} as const
