import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import type { RequestEvent } from '../../lib/core.ts'
import { eventsOf, Names, type TraceEvent } from '../../lib/index.ts'
import { Requests } from '../../lib/model/requests/requests.ts'
import { inParts, someOf } from '../long.ts'
import { type Asked, inputOf, Server } from './server.ts'

async function requestsOf(events: readonly TraceEvent[], length?: number): Promise<RequestEvent[]> {
  const found: RequestEvent[] = []
  for await (const batch of eventsOf(inputOf(events, length), new Names()))
    for (const event of batch) if (event.kind === 'request') found.push(event)
  return found
}

const ASKED: fc.Arbitrary<Asked> = fc.record({
  prompt: fc.integer({ min: 1, max: 40 }),
  reused: fc.integer({ min: 0, max: 40 }),
  generate: fc.integer({ min: 1, max: 8 }),
  drafts: fc.constantFrom(0, 0, 3),
  slot: fc.integer({ min: 0, max: 2 }),
  afterSteps: fc.integer({ min: 0, max: 4 }),
})
const RUNS = fc.record({
  asked: fc.array(ASKED, { minLength: 1, maxLength: 8 }),
  batch: fc.integer({ min: 13, max: 32 }),
  length: fc.integer({ min: 1, max: 50 }),
})

/** The parts cover the request, one after the other. */
function expectTiled({ parts, startNs, endNs }: RequestEvent): void {
  let atNs = startNs
  for (const part of parts) {
    expect(part.startNs).toBe(atNs)
    expect(part.endNs).toBeGreaterThan(part.startNs)
    atNs = part.endNs
  }
  expect(atNs).toBe(endNs)
}

const tokensIn = ({ parts }: RequestEvent, ...kinds: string[]) =>
  parts.reduce((sum, { what, tokens }) => sum + (kinds.includes(what) ? tokens : 0), 0)

describe('requests of a server that records its tasks', () => {
  inParts(test).each(someOf([true, false], 2, 1))(
    'each is there once, with its figures (functions recorded: %p)',
    async (functions) => {
      const property = fc.asyncProperty(RUNS, async ({ asked, batch, length }) => {
        const server = new Server(3, batch, { tasks: true, functions }).run(asked)
        const found = await requestsOf(server.events, length)
        const answers = [...server.answers].sort((a, b) => a.launchNs - b.launchNs)
        found.sort((a, b) => a.id - b.id)
        expect(found.map(({ task }) => task)).toEqual(answers.map(({ task }) => task))
        found.forEach((request, i) => {
          const answer = answers[i]!
          expectTiled(request)
          const { slot, postNs: startNs, launchNs, sentNs: endNs, reused, generated, drafted, accepted } = answer
          expect(request).toMatchObject({ slot, startNs, launchNs, endNs, outcome: 'complete', type: 'completion' })
          expect(request.inferred).toBe(0)
          if (functions) expect(request.firstTokenNs).toBeGreaterThanOrEqual(answer.firstTokenNs)
          expect(request).toMatchObject({ reusedTokens: reused, promptTokens: reused + answer.processed })
          expect(request).toMatchObject({
            generatedTokens: generated,
            draftedTokens: drafted,
            acceptedTokens: accepted,
          })
          if (!functions) return // one token may be the last of a prompt, or generated
          expect(tokensIn(request, 'prefill')).toBe(answer.processed)
          const steps = request.parts.filter(({ what }) => what === 'verify' || what === 'decode')
          expect(tokensIn(request, 'decode', 'verify')).toBe(steps.length + drafted)
          expect(['call-wait', 'queued']).toContain(request.parts[0]!.what)
        })
      })
      await fc.assert(property, { numRuns: 100 })
    },
  )

  const timeIn = ({ parts }: RequestEvent, ...kinds: string[]) =>
    parts.reduce((sum, { what, startNs, endNs }) => sum + (kinds.includes(what) ? endNs - startNs : 0), 0)

  test('in the queue, it waits for the running call until the server looks, then for a slot', async () => {
    const property = fc.asyncProperty(RUNS, async ({ asked, batch, length }) => {
      const server = new Server(3, batch, { tasks: true, functions: true, defers: true }).run(asked)
      const areDeferred = server.answers.some(({ deferNs }) => deferNs !== undefined)
      const found = await requestsOf(server.events, length)
      for (const { task, postNs, deferNs, launchNs } of server.answers) {
        const request = found.find((one) => one.task === task)!
        expect(timeIn(request, 'deferred')).toBe(deferNs === undefined ? 0 : launchNs - deferNs)
        expect(timeIn(request, 'call-wait', 'queued')).toBe((deferNs ?? launchNs) - postNs)
        if (deferNs !== undefined) expect(request.parts[0]!.what).toBe('call-wait')
        if (!areDeferred) expect(timeIn(request, 'deferred')).toBe(0)
      }
    })
    await fc.assert(property, { numRuns: 100 })
  })

  test('where no deferral is recorded, it waits for a call if its slot was free, else for an unknown reason', async () => {
    const one = { prompt: 60, reused: 0, generate: 2, drafts: 0, slot: 0, afterSteps: 0 }
    const kindsOf = async (slot: number) => {
      const server = new Server(2, 32).run([one, { ...one, slot, afterSteps: 2 }])
      return (await requestsOf(server.events)).map(({ parts }) => parts[0]!.what)
    }
    expect(await kindsOf(1)).toEqual(['call-wait', 'call-wait'])
    expect(await kindsOf(0)).toEqual(['call-wait', 'queued'])
  })

  test('a stall names the calls of others; a call beside others has their tokens', async () => {
    const long = { prompt: 60, reused: 0, generate: 2, drafts: 0, slot: 1, afterSteps: 3 }
    const short = { prompt: 4, reused: 0, generate: 12, drafts: 0, slot: 0, afterSteps: 0 }
    const server = new Server(2, 32).run([short, long])
    const [first, second] = (await requestsOf(server.events)).sort((a, b) => a.id - b.id) as [
      RequestEvent,
      RequestEvent,
    ]
    const beside = first.parts.filter(({ what, others }) => what === 'decode' && others > 0)
    expect(beside.map(({ tokens, othersTokens }) => [tokens, othersTokens])).toContainEqual([1, 31])
    expect(second.parts.filter(({ what }) => what === 'prefill').map(({ tokens }) => tokens)).toEqual([31, 29])
  })
})

describe('requests of a program without tasks', () => {
  test('are the uses of sequences, marked as inferred', async () => {
    const property = fc.asyncProperty(RUNS, async ({ asked, batch, length }) => {
      const plain = asked.map(({ reused, prompt, ...one }) => ({
        ...one,
        drafts: 0,
        prompt: prompt + 2,
        reused: Math.min(reused, prompt),
      }))
      const server = new Server(3, batch, { tasks: false, functions: true }).run(plain)
      const found = await requestsOf(server.events, length)
      expect(found).toHaveLength(server.answers.length)
      for (const request of found) {
        expectTiled(request)
        expect(request).toMatchObject({ inferred: 16, task: -1, outcome: 'complete' })
      }
      const figures = (of: { slot: number; reused: number; generated: number }[]) =>
        of.map(({ slot, reused, generated }) => [slot, reused, generated].join(' ')).sort()
      const inferred = found.map((one) => ({
        slot: one.slot,
        reused: one.reusedTokens,
        generated: one.generatedTokens,
      }))
      expect(figures(inferred)).toEqual(figures(server.answers))
    })
    await fc.assert(property, { numRuns: 100 })
  })

  test('are none where nothing is sampled and no sequence is cut', async () => {
    const server = new Server(1, 32, { tasks: false, functions: false }).run([
      { prompt: 30, reused: 0, generate: 20, drafts: 0, slot: 0, afterSteps: 0 },
    ])
    expect(await requestsOf(server.events.filter(({ kind }) => kind !== 'sequence'))).toEqual([])
  })
})

test('two threads, each with its context: a token is of the context that it is sampled from', async () => {
  const call = (
    at: number,
    tid: number,
    context: number,
    number: number,
    tokens: number,
    position: number,
  ): TraceEvent => ({
    ...{ kind: 'token', call: number, phase: tokens > 1 ? 'prefill' : 'decode', tokens, tid, inferred: 0 },
    ...{ startNs: at, endNs: at + 10 },
    batch: {
      ...{ function: 'llama_decode', areAllOutput: false, isLeftOut: false, result: 0, context },
      spans: [{ sequence: 0, position, tokens }],
    },
  })
  const sample = (at: number, tid: number, context: number, output: number): TraceEvent => ({
    ...{ kind: 'function', what: 'sample', name: 0, startNs: at, endNs: at + 5, tid },
    ...{ context, sequence: -1, output, value: -1 },
  })
  const found = await requestsOf([
    call(100, 1, 0xa0, 0, 4, 0),
    call(102, 2, 0xb0, 1, 8, 0),
    sample(120, 1, 0xa0, 3),
    sample(122, 2, 0xb0, 7),
    call(130, 1, 0xa0, 2, 1, 4),
    sample(145, 1, 0xa0, 0),
  ])
  const counts = found.map(({ context, promptTokens, generatedTokens }) => [context, promptTokens, generatedTokens])
  expect(counts.sort((a, b) => a[0]! - b[0]!)).toEqual([
    [0xa0, 4, 2],
    [0xb0, 8, 1],
  ])
})

test('what makes none evident makes none: such inputs are not searched for requests', () => {
  const property = fc.property(RUNS, ({ asked, batch }) => {
    const { events } = new Server(3, batch, { tasks: false, functions: true }).run(asked)
    const requests = new Requests()
    const made = events.flatMap((event) => {
      const isEvident = event.kind === 'function' && ['sample', 'get-embeddings'].includes(event.what)
      return (event.kind === 'token' || event.kind === 'function') && !isEvident ? requests.take(event) : []
    })
    expect([...made, ...requests.finish()]).toEqual([])
  })
  fc.assert(property, { numRuns: 50 })
})
