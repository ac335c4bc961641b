import { beforeAll, describe, expect, test } from '@jest/globals'
import { presets } from './gguf.mjs'
import { PREPARE_MS, servers, startServer } from './server.ts'

/** Proves the servers and the client that other tests use. */

for (const source of servers()) {
  const problem = source.problem ?? 'real'
  const real = source.problem === undefined ? describe : describe.skip

  real(`${source.name} (${problem})`, () => {
    beforeAll(source.prepare, PREPARE_MS)

    test('answers, drafts, names its errors, and ends', async () => {
      const draft = { ...presets.tinyDense, layers: 6 }
      const args = ['-c', 2048, '-np', 2, '-t', 1, '--spec-type', 'draft-simple']
      const server = await startServer(source, { model: 'tinyDense', draft, args })
      try {
        const body = { prompt: 'w1 w2 w3', n_predict: 12, temperature: 0, ignore_eos: true }
        const path = '/completion'
        const whole = await server.ask({ path, body })
        const streamed = await server.ask({ path, body: { ...body, stream: true, cache_prompt: false } })
        expect([whole.status, whole.timings]).toMatchObject([200, { cache_n: 0, predicted_n: 12 }])
        expect(whole.timings!.draft_n).toBeGreaterThan(0)
        expect([streamed.text, streamed.timings!.prompt_n]).toEqual([whole.text, whole.timings!.prompt_n])
        expect(streamed.documents.length).toBeGreaterThan(10)
        const closed = await server.ask({ path, body: { ...body, n_predict: 500, stream: true }, closeAfter: 3 })
        expect([closed.isClosed, closed.documents.length]).toEqual([true, 3])
        const oversize = await server.ask({ path, body: { ...body, prompt: 'w1 '.repeat(500) } })
        expect([oversize.status, oversize.documents[0]!.error!.type]).toEqual([400, 'exceed_context_size_error'])
        for (const { sentNs, firstNs, lastNs } of [whole, streamed])
          expect([sentNs < firstNs, firstNs <= lastNs]).toEqual([true, true])
        expect(server.output()).toContain('draft acceptance')
        // Its signal handler locks the mutex of its task queue: a busy server, which may hold it, would wait for itself.
        await server.untilIdle()
        expect(await server.stop()).toBe(0)
      } finally {
        await server.remove()
      }
    })
  })
}
