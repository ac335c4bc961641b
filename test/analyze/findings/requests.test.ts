import { describe, expect, test } from '@jest/globals'
import { analyze, type EventInput, type Finding } from '../../../lib/index.ts'
import type { FunctionEvent, FunctionPurpose, TraceEvent } from '../../../lib/model/events.ts'
import { logOf, logOfRequests, type MadePart, type MadeRequest, requestOf } from '../requests/made-requests.ts'
import { checkedFindings, expectChecks } from './made-run.ts'

/** Findings of requests: one that is clear, and one within the limits, for each rule. */

const MS = 1e6
const ms = (...parts: (readonly [MadePart[0], number, MadePart[2]?])[]): MadePart[] =>
  parts.map(([what, until, of = {}]) => [what, until * MS, of])

async function found(log: EventInput): Promise<readonly Finding[]> {
  const analysis = await analyze(log)
  await expectChecks(analysis, log)
  return analysis.findings
}

const sentences = async (log: EventInput) => (await found(log)).map(({ rule, sentence }) => `${rule}: ${sentence}`)

describe('stalled by a prompt', () => {
  const stalled = (prefillMs: number): MadeRequest[] => {
    const end = 30 + prefillMs
    return [
      {
        startNs: 0,
        parts: ms(
          ['prefill', 10, { tokens: 5 }],
          ['decode', 20, { tokens: 1 }],
          ['decode', 30, { tokens: 1 }],
          ['stalled', end, { others: 1, othersTokens: 2000 }],
          ['decode', end + 40, { tokens: 1 }],
        ),
      },
      {
        startNs: 30 * MS,
        parts: ms(['prefill', end, { tokens: 2000 }], ['decode', end + 10, { tokens: 1 }]),
      },
    ]
  }

  test('a fifth of the latency or more', async () => {
    expect(await sentences(logOfRequests(stalled(130)))).toEqual([
      'request-stalled: task 101 waited 130 ms (65 % of its latency) while 2 000 tokens of the prompt of task 102 were processed',
    ])
  })

  test('less is usual', async () => {
    expect(await sentences(logOfRequests(stalled(10)))).toEqual([])
  })
})

describe('a prompt that is processed again', () => {
  const lost = (position: number, tokens: number, reason?: string): EventInput =>
    logOf((names) => [
      requestOf(
        {
          ...{ startNs: 0, promptTokens: 1000, reusedTokens: position, generatedTokens: 2 },
          lost: { position, tokens, ...(reason !== undefined && { reason: names.id(reason) }) },
          parts: ms(['prefill', 90, { tokens: 1000 - position }], ['decode', 100, { tokens: 1 }]),
        },
        1,
      ),
    ])

  test('from the token that differs', async () => {
    const [first, ...others] = await found(lost(10, 1005))
    expect(first).toMatchObject({
      rule: 'prompt-processed-again',
      sentence:
        '990 of 1 000 tokens of the prompt of task 101 were processed again (90 ms, 90 % of its latency): token 10 differs from that in its slot',
      confidence: 'medium',
      evidence: { position: 10, processed_again: 990, prompt_tokens: 1000 },
    })
    expect(others).toEqual([])
  })

  test("with the server's reason", async () => {
    const [first] = await found(lost(0, 1005, 'forcing full prompt re-processing due to lack of cache data'))
    expect(first).toMatchObject({
      rule: 'prompt-processed-again',
      confidence: 'high',
      evidence: { processed_again: 1000 },
    })
    expect(first!.sentence).toMatch(/: forcing full prompt re-processing due to lack of cache data$/)
  })

  test('another text, a text with the same beginning, or a short rest is none', async () => {
    expect(await found(lost(1, 1005))).toEqual([])
    expect(await found(lost(600, 405))).toEqual([])
    expect(await found(lost(10, 500))).toEqual([])
    expect(await found(lost(980, 400))).toEqual([])
  })
})

const MADE = { name: 0, tid: 1, context: 0, sequence: -1, output: -1, value: -1 } as const
const called = (what: FunctionPurpose, ns: number, name = 0, value = -1): TraceEvent => {
  return { kind: 'function', what, ...MADE, name, value, startNs: 0, endNs: ns }
}
const decode: TraceEvent = {
  ...{ kind: 'token', call: 0, phase: 'decode', tokens: 1, startNs: 0, endNs: 80, tid: 1, inferred: 0 },
}

test('a grammar, and samplers without it', async () => {
  const withCost = (grammar: number, chain: number) =>
    found(
      logOf((names) => [
        decode,
        called('sample', grammar, names.id('grammar')),
        called('accept', chain, names.id('penalties')),
      ]),
    )
  expect(await withCost(20, 0)).toMatchObject([{ rule: 'slow-grammar', evidence: { grammar_share: 0.2 } }])
  expect((await withCost(20, 0))[0]!.sentence).toBe('the grammar takes 20 % of the time of tokens: sample grammar 20 %')
  expect(await withCost(0, 40)).toMatchObject([{ rule: 'slow-samplers', evidence: { samplers_ns: 40 } }])
  expect(await withCost(5, 10)).toEqual([])
})

describe('waiting in the queue', () => {
  const queued = (...waits: (readonly [MadePart[0], number])[]) =>
    logOfRequests([{ startNs: 0, parts: ms(...waits, ['decode', 100, { tokens: 1 }]) }])

  test.each([
    ['deferred', '35 % for a free one of 1 slot', 'More slots'],
    ['call-wait', '35 % for the end of a call, with a slot free', 'More slots change nothing'],
    ['queued', '35 % for an unknown reason', 'What it waits for is recorded by'],
  ] as const)('%s: the sentence and the advice are those of its cause', async (what, why, advice) => {
    const [finding, ...others] = await found(queued([what, 35]))
    expect(others).toEqual([])
    expect(finding).toMatchObject({ rule: 'queue-time', advice: expect.stringContaining(advice) })
    expect(finding!.sentence).toBe(`requests wait 35 % of their latency in the queue, at most 35 ms: ${why}`)
    expect(await sentences(queued([what, 5]))).toEqual([])
  })

  test('of several causes, the advice is on the one that takes most', async () => {
    const of = (deferred: number) => found(queued(['call-wait', 30], ['deferred', 30 + deferred]))
    expect((await of(10))[0]!.sentence).toContain('30 % for the end of a call, with a slot free, 10 % for a free one')
    expect((await of(10))[0]!.advice).toContain('More slots change nothing')
    expect((await of(40))[0]!.advice).not.toContain('More slots change nothing')
  })
})

test('drafts that cost more than they save', async () => {
  const run = (accepted: number) => {
    const parts: MadePart[] = []
    for (let at = 0; at < 10 * 50; at += 50)
      parts.push(...ms(['draft', at + 20, { tokens: 3 }], ['verify', at + 50, { tokens: 4, accepted }]))
    parts.push(...ms(['decode', 520, { tokens: 1 }], ['decode', 540, { tokens: 1 }], ['decode', 560, { tokens: 1 }]))
    return logOfRequests([{ startNs: 0, parts }])
  }
  expect(await sentences(run(1))).toEqual([
    'speculation-slower: a token takes 25 ms with drafts and 20 ms without: 33 % of drafted tokens are accepted',
  ])
  expect(await sentences(run(3))).toEqual([])
})

test('a client that reads its answer slowly, and one for which the server computes long', async () => {
  const request = () => requestOf({ startNs: 0, parts: ms(['decode', 100, { tokens: 1 }]) }, 1)
  // Each on a thread of the server.
  const wait = (ns: number, i: number): TraceEvent => ({ ...called('wait-to-send', ns), tid: 10 + i }) as FunctionEvent
  const waits = (...times: number[]) => logOf(() => [request(), ...times.map(wait)])
  const [finding] = await checkedFindings(waits(50 * MS, 30 * MS))
  expect(finding).toMatchObject({ rule: 'slow-client', evidence: { send_wait_ns: 80 * MS, longest_ns: 50 * MS } })
  expect(finding!.sentence).toBe(
    'answers wait 80 ms until clients read them, at most 50 ms at a time; the server took 100 ms for them',
  )
  expect(await sentences(waits(3 * MS))).toEqual([])
  // A slow sender without a request, such as a download.
  expect(await sentences(logOf(() => [called('wait-to-send', 80 * MS)]))).toEqual([])
})

test('states that are saved, stages of loading, cancelled work', async () => {
  const request = (outcome: 'complete' | 'cancelled') =>
    requestOf({ startNs: 0, outcome, parts: ms(['decode', 100, { tokens: 1 }]) }, 1)
  expect(await sentences(logOf(() => [request('complete'), called('save-state', 8 * MS, 0, 1000)]))).toEqual([
    'state-saves: states of slots were saved and restored 1 time: 8 ms, 8 % of the latency of requests',
  ])
  expect(await sentences(logOf(() => [request('complete'), called('save-state', 2 * MS)]))).toEqual([])
  expect(await sentences(logOf(() => [called('copy-weights', 3e9, 0, 3e8)]))).toEqual([
    'slow-load: loading takes 3 s, 100 % of it for a reason that was not recorded (most in copy-weights at 100 MB/s)',
  ])
  expect(await sentences(logOf(() => [called('copy-weights', 3e9, 0, 3e9)]))).toEqual([])
  expect(await sentences(logOf(() => [called('reserve', 1e9)]))).toEqual([])
  expect(await sentences(logOf(() => [request('cancelled')]))).toEqual([
    'cancelled-work: 100 % of the work was for requests that were not answered (1 cancelled of 1 request): 100 ms',
  ])
})
