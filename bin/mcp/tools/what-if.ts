import { DISTURBANCES, type WhatIf } from '../../../lib/cli.ts'
import { callOf, withMost } from '../answer.ts'
import { FROM, LOGS, list, object, oneOf, paths, placesOf, runOn, type Tool, text, whole } from '../tool.ts'

interface Arguments {
  readonly logs: readonly string[]
  readonly context?: number
  readonly without?: readonly string[]
  readonly threads?: number
  readonly with?: readonly string[]
  readonly type?: string
  readonly batch?: number
  readonly experts?: number
  readonly from?: number
}

/** The tool `what_if`. */
export const whatIfTool: Tool<Arguments> = {
  name: 'what_if',
  title: 'Prediction of a changed run',
  description:
    'Predicts the run with another context, number of threads, type of weights, batch or number of experts, or without what disturbed it, from its own calls, with an interval of 90 %; says where it cannot.',
  input: {
    logs: LOGS,
    context: whole('A prompt of so many tokens, and decoding after it', 1),
    without: {
      ...list('What to take out'),
      items: oneOf(DISTURBANCES, 'A disturbance'),
      maxItems: DISTURBANCES.length,
    },
    threads: whole('With so many threads', 1),
    with: paths('Runs of the same program with other numbers of threads, for `threads`: a log, or an Analysis, each'),
    type: text('With weights of this type of ggml, such as q8_0', 20),
    batch: whole('With so many sequences that are decoded at once', 1),
    experts: whole('With so many experts for each token, of a model with experts', 1),
    from: FROM,
  },
  required: ['logs'],
  evidence: {
    is_unchanged: { type: 'boolean', description: 'The changes do nothing in this run' },
    decode_tokens_per_s: object('now, expected, low, high, and why it cannot be said'),
    tpot_ns: object('The same of the time of a token'),
    ttft_ns: object('The same of the time to the first token'),
    basis: list('What the prediction rests on'),
    parts_count: { type: 'integer', description: 'Number of groups of operators' },
    from: { type: 'integer', description: 'The number of the first group, from 0' },
    parts: list('Time of a call by group of operators, now and then, most change first'),
  },
  isReadOnly: true,
  async run(args, session, call) {
    const { logs, context, without = [], threads, with: others = [], type, batch, experts, from = 0 } = args
    const places = await placesOf(logs, session)
    const otherPlaces = await placesOf(others, session)
    const options = [
      ...(context === undefined ? [] : ['--context', `${context}`]),
      ...(without.length === 0 ? [] : ['--without', without.join(',')]),
      ...(threads === undefined ? [] : ['--threads', `${threads}`]),
      ...(type === undefined ? [] : ['--type', type]),
      ...(batch === undefined ? [] : ['--batch', `${batch}`]),
      ...(experts === undefined ? [] : ['--experts', `${experts}`]),
      ...(others.length === 0 ? [] : ['--with', ...otherPlaces.map(({ path }) => path)]),
    ]
    const command = ['what-if', ...places.map(({ path }) => path), ...options, '--json']
    const { sentence, schema, changes, parts, ...figures } = JSON.parse(
      (await runOn([...places, ...otherPlaces], command, session, call)).stdout,
    ) as WhatIf
    return withMost(parts.slice(from), (shown) => {
      const count = Math.max(parts.length - from - shown.length, 0)
      const next = callOf('what_if', { ...args, from: from + shown.length }, 'the next groups')
      return {
        verdict: sentence,
        evidence: { ...figures, parts_count: parts.length, from, parts: shown },
        check: [callOf('stats', { logs, section: 'calls' }, 'the figures of the run as it was')],
        next: [callOf('why', { logs }, 'what made the run slow'), ...(count > 0 ? [next] : [])],
        left: count > 0 ? { what: 'groups', count, next } : null,
      }
    })
  },
}
