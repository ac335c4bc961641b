import { describe, expect, test } from '@jest/globals'
import { attempt, importFaults, spread } from '../line/hostile.ts'
import { plainBytes, randomOf } from '../line/support.ts'

/**
 * Damaged recordings of the scheduler, of every format, through the whole line: each ends in a trace whose CPU slices and thread
 * states fit together, or in a message. What readers make of more of them: test/read/sched/hostile.long.test.ts, sched-text-hostile.long.test.ts.
 */

const FIXTURES = [
  'ftrace/trace-tgid.txt',
  'ftrace/trace-fields.txt',
  'ftrace/report-raw.txt',
  'perf-script/mono.txt',
  'perf-script/task-events.txt',
  'bpftrace/sched.jsonl',
  'trace-dat/local-v6.dat.gz',
  'trace-dat/boot-v7.dat.gz',
  'trace-dat/boot-v7-zlib.dat.gz',
  'trace-dat/local-v7-zstd.dat.gz',
  'trace-dat/instance-v6.dat.gz',
  'perf-data/mono.data.gz',
  'perf-data/zstd.data.gz',
  'perf-data/pipe.data.gz',
  'perf-data/switches.data.gz',
]
const CASES = 24
/** Traces of a recording that are loaded. */
const LOADED = 6

describe('damaged', () => {
  test.each(FIXTURES)('%s', async (fixture) => {
    const bytes = plainBytes(fixture)
    const random = randomOf(bytes.length)
    const cases = Array.from({ length: CASES }, (_, i) => {
      // Formats and tables come first, and are larger than what they are tables of.
      const at = Math.floor((i % 3 === 0 ? random() : 1 - random() ** 4) * bytes.length)
      const damaged = i % 4 === 3 ? bytes.subarray(0, at) : bytes.slice()
      if (i % 4 !== 3) damaged.fill(i % 2 === 0 ? 0xff : Math.floor(random() * 256), at, at + 1 + (i % 8))
      return { i, at, damaged }
    })
    const traces: Uint8Array[] = []
    for (const { i, at, damaged } of cases) {
      const outcome = await attempt(damaged, `${fixture}, case ${i} at ${at}`, { allThreads: i % 2 === 0 })
      if (outcome.trace) traces.push(outcome.trace)
    }
    expect(traces.length).toBeGreaterThan(CASES / 3)
    for (const trace of spread(traces, LOADED)) expect(await importFaults(trace)).toEqual([])
  })
})
