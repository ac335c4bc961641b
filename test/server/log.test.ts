import { readFileSync } from 'node:fs'
import { describe, expect, it } from '@jest/globals'
import { Inferred, type RequestEvent } from '../../lib/core.ts'
import { eventsOf, Names, type TraceEvent } from '../../lib/index.ts'
import type { Timings } from '../llama/client.ts'
import { fixture, readAnswers } from './answers.ts'

/** Must hold: a server's log alone contains what the server answered. The logs and answers are of real servers. */

const eventsIn = async (name: string): Promise<TraceEvent[]> => {
  const events: TraceEvent[] = []
  const input = { name, source: readFileSync(fixture(name)) }
  for await (const batch of eventsOf(input, new Names())) events.push(...batch)
  return events
}

const requestsIn = async (name: string) =>
  (await eventsIn(name)).flatMap((event): RequestEvent[] => (event.kind === 'request' ? [event] : []))

const figures = ({ cache_n, prompt_n, predicted_n, draft_n = 0, draft_n_accepted = 0 }: Timings) => {
  return [cache_n + prompt_n, cache_n, predicted_n, draft_n, draft_n_accepted]
}
const logged = (request: RequestEvent) => {
  const { promptTokens, reusedTokens, generatedTokens, draftedTokens, acceptedTokens } = request
  return [promptTokens, reusedTokens, generatedTokens, draftedTokens, acceptedTokens]
}

/** The request of an answer: times are logged in 10 µs. */
const isOf = (timings: Timings) => (request: RequestEvent) =>
  String(logged(request)) === String(figures(timings)) &&
  Math.abs(request.stated!.promptNs! / 1e6 - timings.prompt_ms) < 0.006 &&
  Math.abs(request.stated!.generationNs! / 1e6 - timings.predicted_ms) < 0.006

const LOGS = ['v0.5.0', 'v0.7.0'].flatMap((version) =>
  ['lv3.log', 'lv4.log', 'lv5.log', 'lv4.jsonl'].map((log) => `${version}-${log}`),
)

describe.each(LOGS)('%s', (name) => {
  const answers = readAnswers(name)
  const kinds = (kind: string) => answers.filter((answer) => answer.kind === kind)

  it('contains each request once, with the tokens and times that the server answered', async () => {
    const requests = await requestsIn(name)
    const left = requests.filter(({ stated }) => stated?.generatedTokens !== undefined)
    for (const { timings } of answers.filter(({ status, isClosed }) => status === 200 && !isClosed)) {
      for (const one of timings) {
        const place = left.findIndex(isOf(one))
        expect([one.prompt_ms, figures(one), place >= 0]).toEqual([one.prompt_ms, figures(one), true])
        left.splice(place, 1)
      }
    }
    // Of closed connections, the server may have answered before it noticed.
    expect(left.length).toBeLessThanOrEqual(kinds('closed').length + kinds('abandoned').length)
    // An answer with two choices is two tasks; an abandoned request may not have been launched.
    const least = answers.length + kinds('choices').length - kinds('abandoned').length
    expect(requests.length).toBeGreaterThanOrEqual(least)
    expect(requests.length).toBeLessThanOrEqual(least + kinds('abandoned').length)
  })

  it('contains the errors of prompts that are too large, and no cancellation of them', async () => {
    const failed = (await requestsIn(name)).filter(({ outcome }) => outcome === 'error')
    const tokens = (of: readonly { readonly promptTokens: number }[]) => of.map(({ promptTokens }) => promptTokens)
    expect(tokens(failed).sort()).toEqual(tokens(kinds('oversize')).sort())
  })

  it('marks what it does not contain', async () => {
    for (const request of await requestsIn(name)) {
      const { parts, stated, inferred, startNs, endNs, firstTokenNs, launchNs } = request
      expect(parts.map((part) => part.call)).toEqual(parts.map(() => -1))
      expect(parts.reduce((sum, part) => sum + part.endNs - part.startNs, 0)).toBe(endNs - startNs)
      const isTimed = stated?.generationNs !== undefined
      expect((inferred & Inferred.Parts) !== 0).toBe(launchNs >= 0)
      expect(inferred & Inferred.Order).toBe(0)
      if (isTimed) expect(firstTokenNs).toBeGreaterThan(launchNs)
      const isUnstated = stated?.promptTokens === undefined && request.promptTokens >= 0
      if (isUnstated) expect(inferred & Inferred.TokenCount).not.toBe(0)
      if (name.includes('lv3') && isTimed) expect(isUnstated).toBe(true)
      if (!isTimed) continue
      expect(parts.map((part) => part.what)).toEqual(expect.arrayContaining(['prefill', 'decode']))
    }
  })
})

it('a log with -lv 5 contains the queue: requests begin in it, and take no longer than their clients measured', async () => {
  const name = 'v0.5.0-lv5.log'
  const requests = await requestsIn(name)
  for (const { kind, promptTokens, sentNs, lastNs } of readAnswers(name)) {
    const own = requests.filter(
      (request) => request.promptTokens === promptTokens && request.startNs < request.launchNs,
    )
    expect([kind, own.length]).toEqual([kind, 1])
    if (kind !== 'closed') expect(own[0]!.endNs - own[0]!.startNs).toBeLessThanOrEqual(lastNs - sentNs)
  }
})
