import { expect, test } from '@jest/globals'
import { logOf, type MadeCall, span } from '../analyze/calls/made-run.ts'
import { drawn } from '../printing-sink.ts'

/** Calls that begin texts have an argument, by which views leave out the pause before them. */

const calls: readonly MadeCall[] = [
  { startNs: 0, endNs: 8, spans: [span(0)], phase: 'decode' }, // a benchmark's
  { startNs: 10, endNs: 18, spans: [span(0, 5)], phase: 'prefill' },
  { startNs: 20, endNs: 28, spans: [span(5)], phase: 'decode' },
  { startNs: 2000, endNs: 2008, spans: [span(4)], phase: 'decode', cuts: [{ sequence: 0, from: 4 }] },
  { startNs: 2010, endNs: 2018, spans: [span(5)], phase: 'decode' },
  { startNs: 2020, endNs: 2028, spans: [span(5)], phase: 'decode', cuts: [{ sequence: 0, from: 5 }], result: 1 },
  { startNs: 2030, endNs: 2038, spans: [span(6), span(0, 7, 1)], phase: 'mixed', tokens: 8 },
  { startNs: 4000, endNs: 4008, spans: [span(6), span(7, 3, 1)], phase: 'mixed', cuts: [{ sequence: -1, from: 6 }] },
]

const begin = async (tokens?: readonly [number, number]) => {
  const lines = await drawn(logOf(calls), tokens && { tokens }, { rows: /^Tokens/, args: ['call', 'begins'] })
  return lines.flatMap((line) => /\{call: (\d+), begins: a text\}/.exec(line)?.[1] ?? [])
}

test('calls whose texts begin, at the start or by cuts; but none that failed', async () => {
  expect(await begin()).toEqual(['0', '3', '7'])
})

test('the calls before one are known where they are not drawn', async () => {
  expect(await begin([2, 4])).toEqual(['3'])
  expect(await begin([6, 7])).toEqual(['7'])
})
