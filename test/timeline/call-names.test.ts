import { expect, test } from '@jest/globals'
import { UNKNOWN } from '../../lib/core.ts'
import type { EventInput, TraceEvent } from '../../lib/index.ts'
import { drawn } from '../printing-sink.ts'

const MS = 1e6

test('calls are named with their time, and with what was unusual in it', async () => {
  const call = (index: number, waitingNs: number, majorFaults: number): TraceEvent => ({
    ...UNKNOWN.token,
    ...{
      call: index,
      phase: 'decode',
      tokens: 1,
      tid: 1,
      startNs: 200 * MS * index,
      endNs: 200 * MS * index + 128 * MS,
    },
    resources: { minorFaults: 9, majorFaults, bytesRead: 0, processCpuNs: 0, cpuNs: 32 * MS, waitingNs },
  })
  const input: EventInput = {
    name: 'calls',
    events: () => [
      [
        { kind: 'input', format: 'test', clock: 'MONOTONIC', originNs: 5n, attributes: {} },
        ...[call(0, 96 * MS, 0), call(1, 12 * MS, 1), call(2, 0, 12), call(3, -1, 0), call(4, 13 * MS, 2)],
      ],
    ],
  }
  const lines = await drawn(input, {}, { rows: /^Tokens/ })
  expect(lines.map((line) => line.replace(/.*\d+–\d+ /, ''))).toEqual([
    'decode 1 · 128 ms · 75 % preempted',
    'decode 2 · 128 ms · 1 major fault',
    'decode 3 · 128 ms · 12 major faults',
    'decode 4 · 128 ms',
    'decode 5 · 128 ms · 10 % preempted · 2 major faults',
  ])
})
