import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { SummaryPass } from '../../lib/analyze/summary/summary.ts'
import { type GgtraceSequence, type GgtraceToken, GgtraceWriter } from '../../lib/core.ts'
import { Names, type Summary, summarize } from '../../lib/index.ts'
import { type CallBatch, Inferred, type TokenEvent } from '../../lib/model/events.ts'

/** TPOT and tok/s: of the same calls, and never at odds. */

const MS = 1e6

const spansOf = (sequences: number, position: number, tokens = 1) =>
  Array.from({ length: sequences }, (_, sequence) => ({ sequence, position, tokens }))

const batchOf = (spans: CallBatch['spans'], context = 0): CallBatch => {
  return { function: 'llama_decode', areAllOutput: false, isLeftOut: false, result: 0, context, spans }
}

/** A log of calls, each written by the thread that it names. */
function logOf(
  calls: readonly (Omit<GgtraceToken, 'call'> & { readonly thread?: number })[],
  changes: readonly GgtraceSequence[] = [],
) {
  const writer = new GgtraceWriter({ originNs: 1n, blockBytes: 4096 })
  const threads = new Map<number, ReturnType<GgtraceWriter['thread']>>()
  for (const [call, { thread = 0, ...token }] of calls.entries()) {
    if (!threads.has(thread)) threads.set(thread, writer.thread(700 + thread))
    const isSince = ({ atNs }: GgtraceSequence) => atNs < token.startNs && atNs >= (calls[call - 1]?.startNs ?? 0)
    for (const change of changes.filter(isSince)) threads.get(thread)!.sequence(change)
    threads.get(thread)!.token({ ...token, call })
  }
  writer.end(calls.at(-1)?.endNs ?? 0)
  return { name: 'log', source: writer.take() }
}

const expectLittle = ({ calls: { tpot_ns, decode_tokens_per_s, ...calls } }: Summary, sequences: number) => {
  expect((decode_tokens_per_s! * tpot_ns!) / 1e9).toBeCloseTo(sequences, 9)
  expect(calls.sequences).toBeCloseTo(sequences, 9)
}

describe('several sequences in each call', () => {
  const steps = fc.array(fc.record({ gap: fc.nat(5 * MS), took: fc.integer({ min: 1, max: 50 * MS }) }), {
    minLength: 1,
  })

  test('tok/s × TPOT is their number', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 40 }),
        steps,
        fc.nat(100 * MS),
        async (sequences, decodes, prefill) => {
          let now = prefill + 1
          const calls: Omit<GgtraceToken, 'call'>[] = [
            { startNs: 0, endNs: now, tokens: 7 * sequences, spans: spansOf(sequences, 0, 7) },
          ]
          for (const [i, { gap, took }] of decodes.entries()) {
            const [startNs, endNs] = [now + gap, now + gap + took]
            calls.push({ startNs, endNs, tokens: sequences, spans: spansOf(sequences, 7 + i) })
            now = endNs
          }
          const summary = await summarize(logOf(calls))
          expectLittle(summary, sequences)
          // From the end of the prefill to the end of the last token, a token at a time.
          expect(summary.calls.tpot_ns).toBeCloseTo((now - prefill - 1) / decodes.length, 3)
          expect(summary.decoding).toMatchObject({ calls: decodes.length, tokens: sequences * decodes.length })
          expect(summary.decoding!.is_assumed).toBe(false)
        },
      ),
      { numRuns: 100 },
    )
  })

  test('of changing number: TPOT is the mean over tokens, each by its own time', async () => {
    const summary = await summarize(
      logOf([
        { startNs: 0, endNs: 10 * MS, tokens: 8, spans: spansOf(4, 0, 2) },
        { startNs: 10 * MS, endNs: 30 * MS, tokens: 4, spans: spansOf(4, 2) },
        { startNs: 30 * MS, endNs: 40 * MS, tokens: 1, spans: spansOf(1, 3) },
      ]),
    )
    expect(summary.calls.tpot_ns).toBe((4 * 20 * MS + 10 * MS) / 5)
    expect(summary.calls.decode_tokens_per_s).toBeCloseTo(5 / 0.03, 9)
    expectLittle(summary, (4 * 20 + 10) / 30)
  })

  test('that the log does not record: each token is taken for that of another one, which is said', async () => {
    const decode = (i: number) => ({ startNs: (10 + 40 * i) * MS, endNs: (50 + 40 * i) * MS, tokens: 4 })
    const events = [0, 1, 2].map((i): TokenEvent => ({ ...plain, call: i, phase: 'decode', ...decode(i) }))
    expect(timesOf(events)).toMatchObject({
      tpot_ns: 40 * MS,
      decode_tokens_per_s: 100,
      sequences: 4,
      is_assumed: true,
    })
    const unknown = events.map((event) => ({ ...event, tokens: -1 }))
    expect(timesOf(unknown)).toMatchObject({
      tpot_ns: 40 * MS,
      decode_tokens_per_s: 25,
      sequences: 1,
      is_assumed: true,
    })
  })

  test('that the log records in part: those of the other tokens are assumed', () => {
    const batch = batchOf(spansOf(3, 5))
    const events = [0, 1].map(
      (i): TokenEvent => ({
        ...plain,
        ...{ call: i, phase: 'decode', tokens: 5, startNs: i * MS, endNs: (i + 1) * MS, batch },
      }),
    )
    expect(timesOf(events)).toMatchObject({ sequences: 5, is_assumed: true })
  })
})

test('a sequence of which a decode call takes in several tokens makes as many', () => {
  const batch = batchOf(spansOf(2, 5, 3))
  const events = [0, 1, 2].map(
    (i): TokenEvent => ({
      ...plain,
      ...{ call: i, phase: 'decode', tokens: 6, startNs: i * 30 * MS, endNs: (i + 1) * 30 * MS, batch },
    }),
  )
  expect(timesOf(events)).toMatchObject({
    calls: 2,
    tokens: 12,
    tpot_ns: 10 * MS,
    decode_tokens_per_s: 200,
    sequences: 2,
  })
})

describe('calls before the first verification of drafts', () => {
  const of = (call: number, context: number, phase: TokenEvent['phase'], position: number, tokens: number) => {
    const batch = { ...batchOf([{ sequence: 0, position, tokens }], context), areAllOutput: tokens > 1 }
    const times = { startNs: call * MS, endNs: (call + 1) * MS }
    return { ...plain, call, phase, tokens, batch, ...times } satisfies TokenEvent
  }

  test('a prompt right before it counts for TTFT', () => {
    const prompt = { ...of(0, 1, 'prefill', 0, 4), batch: batchOf(spansOf(1, 0, 4), 1) }
    expect(timesOf([prompt, of(1, 1, 'decode', 4, 3), of(2, 1, 'decode', 6, 1)]).ttft_ns).toBe(MS)
  })

  test('mixed calls of the draft make no tokens', () => {
    const mixed = of(2, 2, 'mixed', 8, 1)
    const events = [of(0, 2, 'decode', 4, 1), of(1, 1, 'decode', 4, 3), mixed, of(3, 1, 'decode', 6, 1)]
    expect(timesOf(events)).toMatchObject({ calls: 1, tokens: 1 })
  })
})

describe('which calls are timed', () => {
  const call = (startMs: number, endMs: number, tokens = 1, more: Partial<GgtraceToken> = {}) => ({
    startNs: startMs * MS,
    endNs: endMs * MS,
    tokens,
    spans: spansOf(1, tokens === 1 ? 8 : 0, tokens),
    ...more,
  })

  test('a decode call without a call before it is in neither TPOT nor tok/s', async () => {
    expect((await summarize(logOf([call(0, 100)]))).decoding).toBeNull()
    const summary = await summarize(logOf([call(0, 100), call(101, 110)]))
    expect(timesIn(summary)).toMatchObject({ calls: 1, tokens: 1, tpot_ns: 10 * MS, decode_tokens_per_s: 100 })
    expect(summary.calls.by_phase.decode).toEqual({ calls: 2, tokens: 2 })
  })

  test('a prefill between decode calls is in no time; a token counts from its end', async () => {
    const summary = await summarize(
      logOf([call(0, 20, 5), call(21, 30), call(5000, 6000, 50), call(6001, 6010), call(6011, 6020)]),
    )
    expect(timesIn(summary)).toMatchObject({ calls: 3, time_ns: 30 * MS, tpot_ns: 10 * MS, decode_tokens_per_s: 100 })
  })

  test('warm-ups are not, and no time begins at them', async () => {
    const warmUp = { ...call(0, 900, 2), kind: 'warm-up' } as const
    const writer = new GgtraceWriter({ originNs: 1n, blockBytes: 4096 })
    const host = writer.thread(7)
    host.token({ ...warmUp, call: -1 })
    for (const [i, token] of [call(1000, 1010), call(1010, 1020)].entries()) host.token({ ...token, call: i })
    writer.end(1020 * MS)
    const summary = await summarize({ name: 'log', source: writer.take() })
    expect(timesIn(summary)).toMatchObject({ calls: 1, tpot_ns: 10 * MS })
  })

  test('neither one whose end is not known, nor the one after it', () => {
    const events = [0, 1, 2, 3].map(
      (i): TokenEvent => ({
        ...plain,
        ...{ call: i, phase: 'decode', tokens: 1, startNs: i * MS, endNs: (i + 1) * MS },
        inferred: i === 1 ? Inferred.NoEnd : 0,
      }),
    )
    expect(timesOf(events)).toMatchObject({ calls: 1, time_ns: MS })
  })
})

describe('several contexts', () => {
  const [a, b] = [0x1000, 0x2000]
  const calls = Array.from({ length: 20 }, (_, i) => {
    const [context, step] = [i % 2 === 0 ? a : b, i >> 1]
    const startNs = (step * 10 + (context === b ? 3 : 0)) * MS
    return { startNs, endNs: startNs + 10 * MS, tokens: 1, spans: spansOf(1, 1 + step), context, thread: i % 2 }
  })

  test('that decode at once: TPOT is that of a sequence, tok/s that of all', async () => {
    const summary = await summarize(logOf(calls))
    expect(summary.calls.tpot_ns).toBe(10 * MS)
    // From the end of the first call to the end of the last, 93 ms, 18 tokens.
    expect(timesIn(summary)).toMatchObject({ calls: 18, time_ns: 93 * MS, decode_tokens_per_s: 18 / 0.093 })
    expectLittle(summary, 180 / 93)
  })

  test('a union of their times, in whatever order they end, is what a simple computation has', () => {
    const interval = fc.record({
      context: fc.integer({ min: 1, max: 5 }),
      gap: fc.nat(30),
      took: fc.integer({ min: 1, max: 40 }),
    })
    fc.assert(
      fc.property(fc.array(interval, { minLength: 8, maxLength: 60 }), (list) => {
        const ends = new Map<number, number>()
        const busy = new Set<number>()
        const events = list.map(({ context, gap, took }, call): TokenEvent => {
          const before = ends.get(context)
          const startNs = (before ?? 0) + gap
          const endNs = startNs + took
          ends.set(context, endNs)
          if (before !== undefined) for (let ns = before; ns < endNs; ns++) busy.add(ns)
          const batch = batchOf(spansOf(1, 1), context)
          return { ...plain, call, phase: 'decode', tokens: 1, startNs, endNs, batch }
        })
        expect(timesOf(events).time_ns).toBe(busy.size === 0 ? undefined : busy.size)
      }),
    )
  })
})

describe('kinds of calls', () => {
  const at = (startMs: number, endMs: number, more: Partial<GgtraceToken> & { readonly tokens: number }) => ({
    startNs: startMs * MS,
    endNs: endMs * MS,
    ...more,
  })
  const span = (sequence: number, position: number, tokens = 1) => ({ sequence, position, tokens })
  const phasesOf = async (calls: Parameters<typeof logOf>[0]) =>
    Object.entries((await summarize(logOf(calls))).calls.by_phase).map(([phase, { calls }]) => [phase, calls])

  test('by their batch', async () => {
    const one = (more: Partial<GgtraceToken> & { readonly tokens: number }) => phasesOf([at(0, 1, more)])
    expect(await one({ tokens: 5, spans: [span(0, 0, 5)] })).toEqual([['prefill', 1]])
    expect(await one({ tokens: 5, spans: [span(0, 0, 5)], areAllOutput: true })).toEqual([['prefill', 1]]) // perplexity
    expect(await one({ tokens: 5, spans: [span(0, 9, 5)] })).toEqual([['prefill', 1]]) // more of a prompt
    expect(await one({ tokens: 5, spans: [span(0, 9, 5)], areAllOutput: true })).toEqual([['decode', 1]])
    expect(await one({ tokens: 6, spans: [span(0, 9), span(1, 0, 5)] })).toEqual([['mixed', 1]])
    expect(await one({ tokens: 6, spans: [span(0, 0), span(1, 0, 5)] })).toEqual([['prefill', 1]]) // a prompt of one token
    expect(await one({ tokens: 6, spans: [span(0, 9), span(0, 11), span(1, 0, 4)] })).toEqual([['prefill', 1]]) // a gap
    expect(await one({ tokens: 6, spans: [span(0, 0, 6)], isForEmbeddings: true })).toEqual([['encode', 1]])
    expect(await one({ tokens: 6, kind: 'encode' })).toEqual([['encode', 1]])
    expect(await one({ tokens: 0, kind: 'compute' })).toEqual([['compute', 1]])
    expect(await one({ tokens: 1, isByGraph: true })).toEqual([['decode', 1]])
  })

  test('a mixed batch decodes those sequences that have one token', async () => {
    const summary = await summarize(
      logOf([
        at(0, 10, { tokens: 4, spans: [span(0, 0, 4)] }),
        at(10, 40, { tokens: 9, spans: [span(0, 4), span(1, 0, 8)] }),
        at(40, 50, { tokens: 2, spans: [span(0, 5), span(1, 8)] }),
      ]),
    )
    expect(timesIn(summary)).toMatchObject({ calls: 2, tokens: 3, tpot_ns: (50 * MS) / 3, is_assumed: false })
    expect(summary.calls.ttft_ns).toBe(10 * MS)
  })

  /** A prompt of 8 tokens; the draft model drafts 3 tokens a time, of which 2, 0 and 3 are accepted. */
  const [target, draft] = [0x1000, 0x2000]
  const speculation = [
    at(0, 10, { tokens: 8, spans: [span(0, 0, 8)], context: target }),
    at(10, 12, { tokens: 8, spans: [span(0, 0, 8)], context: draft }),
    ...[8, 11, 12].flatMap((position, i) => {
      const [from, drafts] = [12 + 16 * i, [0, 1, 2]]
      return [
        ...drafts.map((k) =>
          at(from + 2 * k, from + 2 * k + 2, { tokens: 1, spans: [span(0, position + k)], context: draft }),
        ),
        at(from + 6, from + 16, { tokens: 4, spans: [span(0, position, 4)], areAllOutput: true, context: target }),
      ]
    }),
    at(60, 65, { tokens: 1, spans: [span(0, 16)], context: target }),
  ]

  test('speculative decoding: tokens are those that were accepted, and drafts none', async () => {
    const summary = await summarize(logOf(speculation))
    const { calls, contexts } = summary
    // 3 + 1 + 4 by verifying, and one alone; from the end of both prefills to that of the last call.
    expect(timesIn(summary)).toMatchObject({
      calls: 4,
      tokens: 9,
      time_ns: 53 * MS,
      tpot_ns: (53 * MS) / 9,
      is_assumed: false,
    })
    expect(calls.ttft_ns).toBe(12 * MS)
    expect(calls.by_phase.decode!.calls).toBe(13)
    expect(contexts).toMatchObject([
      { context: target, role: 'target', calls: 5, ttft_ns: 10 * MS, decoding: { calls: 4, tokens: 9 } },
      { context: draft, role: 'draft', calls: 10, ttft_ns: 2 * MS, decoding: { calls: 9, tokens: 9 } },
    ])
  })

  test('of the last verification, all tokens are taken for accepted, which is said', async () => {
    const summary = await summarize(logOf(speculation.slice(0, -1)))
    expect(timesIn(summary)).toMatchObject({ calls: 3, tokens: 8, is_assumed: true })
  })

  test('a context that another thread or another place of the text uses is no draft', async () => {
    const drafts = (thread: number, position: number) =>
      [0, 1, 2].flatMap((i) => [
        { ...at(20 * i, 20 * i + 4, { tokens: 1, spans: [span(0, position + 4 * i)], context: draft }), thread },
        at(20 * i + 5, 20 * i + 15, { tokens: 4, spans: [span(0, 8 + 4 * i, 4)], areAllOutput: true, context: target }),
      ])
    const rolesOf = async (thread: number, position: number) =>
      (await summarize(logOf(drafts(thread, position)))).contexts.map(({ role }) => role)
    expect(await rolesOf(0, 8)).toEqual(['draft', 'target'])
    expect(await rolesOf(1, 8)).toEqual([null, null])
    expect(await rolesOf(0, 500)).toEqual([null, null])
  })

  test('a prompt of one token that the cache contains waited for nothing: the time before it is of no token', async () => {
    const texts = [
      at(0, 10, { tokens: 30, spans: [span(0, 0, 30)] }),
      at(10, 20, { tokens: 1, spans: [span(0, 30)] }),
      at(5000, 5008, { tokens: 1, spans: [span(0, 29)] }),
      at(5010, 5020, { tokens: 1, spans: [span(0, 30)] }),
    ]
    const removal = { what: 'remove', atNs: 4999 * MS, sequence: 0, from: 29 } as const
    const timesOf = async (...log: Parameters<typeof logOf>) => timesIn(await summarize(logOf(...log)))
    expect(await timesOf(texts, [removal])).toMatchObject({ calls: 3, tokens: 3, time_ns: 30 * MS })
    // Without it, positions that go back are not known to be a text of its own; with another one, neither.
    for (const changes of [[], [{ ...removal, sequence: 1 }], [{ ...removal, end: 30 }], [{ ...removal, from: 30 }]])
      expect(await timesOf(texts, changes)).toMatchObject({ calls: 3, time_ns: 5010 * MS })
    // One of two texts continues: it waited for its next token.
    const two = texts.map(({ tokens, spans, ...rest }, i) => ({
      ...rest,
      tokens: tokens! + 1,
      spans: [...spans!, span(1, 7 + i)],
    }))
    expect(await timesOf(two, [removal])).toMatchObject({ calls: 3, time_ns: 5010 * MS })
  })

  test('a mixed call that failed is part of the time of the next token', async () => {
    const summary = await summarize(
      logOf([
        at(0, 10, { tokens: 4, spans: [span(0, 0, 4)] }),
        at(10, 30, { tokens: 9, spans: [span(0, 4), span(1, 0, 8)], result: 1 }),
        at(30, 40, { tokens: 1, spans: [span(0, 4)] }),
      ]),
    )
    expect(timesIn(summary)).toMatchObject({ calls: 1, tokens: 1, tpot_ns: 30 * MS })
  })

  test('contexts that answer each for itself have no roles', async () => {
    const calls = [0, 1, 2, 3].map((i) =>
      at(10 * i, 10 * i + 9, { tokens: 1, spans: [span(0, i)], context: i % 2 ? target : draft }),
    )
    const { contexts, decoding } = await summarize(logOf(calls))
    expect(contexts.map(({ role }) => role)).toEqual([null, null])
    expect(decoding).toMatchObject({ calls: 2 })
  })
})

test('calls of changing threads, whose blocks come in any order, are timed as they were made', async () => {
  const calls = Array.from({ length: 300 }, (_, i) => {
    const tokens = i % 50 === 0 ? 20 : 1
    return { startNs: i * 10 * MS, endNs: (i * 10 + 9) * MS, tokens, spans: spansOf(1, i, tokens), thread: i % 7 }
  })
  expect(timesIn(await summarize(logOf(calls)))).toMatchObject({
    calls: 294,
    tpot_ns: 10 * MS,
    decode_tokens_per_s: 100,
    ttft_ns: 9 * MS,
  })
})

/** The figures of all calls, with what they are made from. */
const timesIn = ({ calls: { ttft_ns, tpot_ns, decode_tokens_per_s, sequences }, decoding }: Summary) => {
  return { ttft_ns, tpot_ns, decode_tokens_per_s, sequences, ...decoding }
}

const plain = { kind: 'token', tid: 1, inferred: 0 } as const

function summaryOf(events: readonly TokenEvent[]): Summary {
  const summary = new SummaryPass(new Names())
  summary.take(events)
  return summary.finish()
}

const timesOf = (events: readonly TokenEvent[]) => timesIn(summaryOf(events))
