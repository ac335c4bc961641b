import { statSync } from 'node:fs'
import { constants } from 'node:os'
import { afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import type { Ask } from '../llama/client.ts'
import { bundledServer, PREPARE_MS, type Server, startServer } from '../llama/server.ts'
import { buildRecorder, RECORDER, type Recording, readLog } from './recording.ts'
import '../live.ts'

/** Recordings of a server that runs for long: less of what happens in calls, but whole requests. */

const real = bundledServer.problem === undefined ? describe : describe.skip

const completion = (prompt: string, n_predict: number): Ask => ({
  path: '/completion',
  body: { prompt, n_predict, temperature: 0, ignore_eos: true, cache_prompt: false },
})

/** Of each request that the server answered: how it ended, and its tokens. */
const requestsOf = ({ of }: Recording) =>
  of('request').map(({ outcome, promptTokens, generatedTokens }) => [outcome, promptTokens, generatedTokens])

real(`a ${bundledServer.name} (${bundledServer.problem ?? 'real'})`, () => {
  let server: Server
  beforeAll(buildRecorder)
  beforeAll(bundledServer.prepare, PREPARE_MS)
  afterEach(() => server?.remove())

  const start = async (env: Readonly<Record<string, string>>) => {
    const args = ['-c', 1024, '-np', 2, '-t', 1]
    server = await startServer(bundledServer, { model: 'tinyMoe', args, recorder: RECORDER, env })
  }
  /** Two requests at a time; their tokens as the server states them. */
  const load = async (rounds: number) => {
    const stated: unknown[] = []
    for (let round = 0; round < rounds; round++) {
      const asks = [completion('w1 w2 w3', 8), completion('w4 w5 w6 w7', 10)]
      for (const { timings } of await Promise.all(asks.map(server.ask)))
        stated.push(['complete', timings!.prompt_n, timings!.predicted_n])
    }
    return stated
  }
  const read = async () => {
    expect(await server.stop()).toBe(0)
    const recording = await readLog(server.log)
    expect(recording.issues).toEqual([])
    return recording
  }

  test('every fifth call in detail: all requests', async () => {
    await start({ GGML2PERFETTO_EVERY: '5' })
    const stated = await load(3)
    const recording = await read()
    expect(requestsOf(recording).sort()).toEqual(stated.sort())
    const calls = new Set(recording.of('operator').map(({ call }) => call))
    expect(calls.size).toBeGreaterThan(3)
    expect([...calls].filter((call) => call >= 0 && call % 5 !== 0)).toEqual([])
  })

  test('paused, then resumed by a signal: all requests, and operators from then on', async () => {
    const { SIGUSR2 } = constants.signals
    await start({ GGML2PERFETTO_PAUSED: '1', GGML2PERFETTO_TOGGLE: `${SIGUSR2}` })
    const paused = await load(2)
    process.kill(server.pid, 'SIGUSR2')
    const resumed = await load(2)
    const recording = await read()
    expect(requestsOf(recording).sort()).toEqual([...paused, ...resumed].sort())
    const first = Math.min(...recording.of('operator').map(({ startNs }) => startNs))
    const [before, after] = [recording.of('request').slice(0, 4), recording.of('request').slice(4)]
    expect(Math.max(...before.map(({ endNs }) => endNs))).toBeLessThan(first)
    expect(Math.min(...after.map(({ firstTokenNs }) => firstTokenNs))).toBeGreaterThan(first)
  })

  test('a ring: its last part, in which requests are whole', async () => {
    const most = 5 << 17
    await start({ GGML2PERFETTO_RING: '1', GGML2PERFETTO_MAX_BYTES: `${most}` })
    const stated = await load(12)
    const recording = await read()
    // The segments that the server's threads write come on top.
    expect(statSync(server.log).size).toBeLessThan(3 * most)
    const kept = requestsOf(recording)
    expect(kept.length).toBeLessThan(stated.length)
    expect(kept.length).toBeGreaterThan(3)
    // The first ones may have begun before the log does: one in each slot.
    expect(kept.slice(2).filter((request) => !stated.some((other) => `${other}` === `${request}`))).toEqual([])
  })
})
