import { describe, expect, it } from '@jest/globals'
import { Inferred } from '../../lib/core.ts'
import { analyze, type LogInput, summarize } from '../../lib/index.ts'
import { isPlaced, timesOf } from '../../lib/model/times.ts'
import { inputOf } from '../../lib/node.ts'
import { plainBytes } from '../line/support.ts'

/** What the times of an input are, and what follows for durations. */

const text = (fixture: string) => new TextDecoder().decode(plainBytes(fixture))
const inputFrom = (contents: string): LogInput => inputOf(new TextEncoder().encode(contents))

/** Inputs whose times can be left out, as programs do with other options. */
const WITHOUT: readonly (readonly [format: string, times: 'durations' | 'order', contents: string])[] = [
  ['llama-server', 'order', text('server/v0.7.0-lv4.log').replace(/^\d+\.\d\d\.\d{3}\.\d{3} [IWED] /gm, '')],
  ['onednn', 'durations', text('onednn/v3.7.log').replace(/^(onednn_verbose,(?:v1,)?)\d+\.\d+,/gm, '$1')],
  ['llama-bench', 'durations', text('llama-bench/tests.jsonl').replace(/"test_time": "[^"]*"/g, '"test_time": ""')],
]

describe('an input without times', () => {
  it.each(WITHOUT)('%s: its times are %s, and its run has no duration', async (format, times, contents) => {
    const [summary, analysis] = [await summarize(inputFrom(contents)), await analyze(inputFrom(contents))]
    expect([summary.format, summary.times, summary.duration_ns]).toEqual([format, times, null])
    expect(analysis.inputs).toMatchObject([{ format, times, duration_ns: null }])
    expect(analysis.run.duration_ns).toBeNull()
    expect(analysis.undetermined).toContainEqual(expect.objectContaining({ what: 'run.duration_ns' }))
  })

  it('is one without a clock, whatever it states', () => {
    expect(timesOf({ clock: 'none', times: 'recorded' })).toBe('order')
    expect(timesOf({ clock: 'unknown' })).toBe('recorded')
  })
})

describe('an input with times', () => {
  it.each(['server/v0.7.0-lv4.log', 'onednn/v3.7.log', 'llama-bench/tests.jsonl'])(
    '%s has a duration',
    async (name) => {
      const { times, duration_ns } = await summarize(inputFrom(text(name)))
      expect([times, duration_ns! > 0]).toEqual(['recorded', true])
    },
  )

  it('that are all the same has none', async () => {
    const same = text('server/v0.7.0-lv4.log').replace(/^\d+\.\d\d\.\d{3}\.\d{3} /gm, '0.01.000.000 ')
    expect((await summarize(inputFrom(same))).duration_ns).toBeNull()
  })
})

describe('an event', () => {
  it('has a place unless that is inferred', () => {
    const inferred = [0, Inferred.Laid, Inferred.Order, Inferred.NoEnd, Inferred.TokenCount]
    expect(inferred.map(isPlaced)).toEqual([true, false, false, true, true])
  })
})
