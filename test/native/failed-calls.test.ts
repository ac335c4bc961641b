import { describe, expect, test } from '@jest/globals'
import { convert, summarize } from '../../lib/index.ts'
import { inputOf, openTrace } from '../../lib/node.ts'
import { hasLlama, model } from '../llama/testbed.ts'
import { NANO, readLog, recordHosts, useRecorder } from './recording.ts'

/** A real program that decodes on when its context is full. */
const llama = hasLlama() ? describe : describe.skip

llama('a context that is overrun (needs linux-x64 and cc)', () => {
  useRecorder()

  test('calls that found no slot are counted by their result, and are in no rate', async () => {
    const { path } = await model(NANO)
    const { log, result } = await recordHosts(['load', 0, path, 'open', 0, 1, 'overrun', 0, 700, 'close', 0])
    // A prompt of 2 tokens and 510 more fill the context of 512.
    expect([result.calls.length, result.failed.length]).toEqual([511, 189])
    const { calls, failures, issues } = await summarize(inputOf(log))
    expect(calls).toMatchObject({
      by_phase: { prefill: { calls: 1, tokens: 2 }, decode: { calls: 510, tokens: 510 } },
      failed: 189,
    })
    expect(failures).toEqual([{ result: 1, meaning: 'no slot in the KV cache', calls: 189 }])
    expect(issues).toMatchObject([{ code: 'call-failed', count: 189 }])
    const recording = await readLog(log)
    const originNs = Number(recording.of('input')[0]!.originNs)
    const made = recording.of('token').filter(({ batch }) => batch!.result === 0)
    // Each is within what the program measured around it, however long it was preempted there.
    for (const [i, { startNs, endNs }] of made.entries()) {
      expect(originNs + startNs).toBeGreaterThanOrEqual(result.calls[i]!.start)
      expect(originNs + endNs).toBeLessThanOrEqual(result.calls[i]!.end)
    }
    expect(calls.tpot_ns).toBeCloseTo((made.at(-1)!.endNs - made[0]!.endNs) / 510, 0)
    expect(recording.of('token').flatMap(({ batch }) => (batch!.result === 0 ? [] : [batch!.result]))).toEqual(
      result.failed.map((call) => call.result),
    )
    const trace = await openTrace(convert(inputOf(log)))
    const slices = trace.query(`select count(*), sum(name glob 'decode [0-9]*'), sum(name glob 'decode failed (1: *'),
      sum(name glob '*failed*' and extract_arg(arg_set_id, 'debug.tok_per_s') is not null)
      from slice where category = 'token'`)
    expect(slices.rows).toEqual([[700, 510, 189, 0]])
    const rates = `select count(*) from counter c join track t on c.track_id = t.id where t.name = 'tok/s' and value > 0`
    expect(trace.query(rates).rows).toEqual([[511]])
    trace.close()
  })
})
