import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { cudaEnvironment, ensureLlama, hasLlama } from '../llama/testbed.ts'
import { endingOf, type Run, runnerOf, TIMEOUT_MS, WAYS } from '../native/endings.ts'
import { newLog, RECORDER, readLog, useRecorder } from '../native/recording.ts'
import { BED, buildBed } from './recording.ts'

/** A program that computes with CUDA ends as it does without the recorder, whatever is wrong with its device. */

const NEVER = Number.POSITIVE_INFINITY

/** Faults of the bed, how many calls end before the program ends by them, and the reason that the log contains. */
const FAULTS: readonly (readonly [fault: string, lastCall: number, reason?: RegExp])[] = [
  ['', NEVER],
  ['no-device', NEVER],
  ['no-driver', NEVER, /CUPTI cannot be used/],
  ['busy-cupti', NEVER, /another profiler uses CUPTI/],
  ['out-of-order', NEVER],
  ['zero-times', NEVER],
  ['lost-buffers', NEVER],
  ['launch-error', 1],
  ['device-lost', 0],
]

/** All ways without a fault; with each fault one of three, others with the next fault. */
const waysWith = (fault: string) => {
  const nth = FAULTS.findIndex(([name]) => name === fault)
  return WAYS.filter((_, i) => nth === 0 || (i + nth) % 3 === 0)
}

/** Faults of CUPTI, which only the recorder loads. */
const ONLY_TRACED = ['busy-cupti', 'out-of-order', 'zero-times', 'lost-buffers']

const llama = hasLlama() ? describe : describe.skip

llama('endings of a program that computes with CUDA, on a GPU that does not exist (needs cc, c++ and make)', () => {
  useRecorder()
  let run: Run
  const environmentOf = (fault: string) => ({ ...cudaEnvironment(BED), BED_FAULT: fault, GGML_NO_BACKTRACE: '1' })
  const plains = new Map<string, ReturnType<Run>>()
  const runPlain = (way: string, fault: string) => {
    const [key, host] = [`${way} ${fault}`, environmentOf(fault)]
    const plain = plains.get(key) ?? run(way, host)
    plains.set(key, plain)
    return plain
  }

  beforeAll(async () => {
    await ensureLlama({ cuda: true })
    buildBed()
    run = await runnerOf('exact')
  })

  describe.each(FAULTS)('%s', (fault, lastCall, reason) => {
    test.each(waysWith(fault))(
      '%s',
      async (way, calls) => {
        const log = newLog()
        mkdirSync(dirname(log), { recursive: true })
        const plain = await runPlain(way, ONLY_TRACED.includes(fault) ? '' : fault)
        const traced = await run(way, { ...environmentOf(fault), LD_PRELOAD: RECORDER, GGML2PERFETTO_OUT: log })
        expect(endingOf(traced)).toEqual(endingOf(plain))
        const { of, attributes } = await readLog(log)
        expect(of('token').length).toBe(Math.min(calls, lastCall))
        if (reason) expect(attributes['gpu.missing']).toMatch(reason)
      },
      2 * TIMEOUT_MS,
    )
  })
})
