import { describe, expect, test } from '@jest/globals'
import { isOwnError } from '../../../lib/index.ts'
import { spread } from '../../line/hostile.ts'
import { cut, eventsIn, plainBytes, randomOf } from '../../line/support.ts'

/**
 * Damaged recordings of the scheduler: cut anywhere, with bytes changed, with sizes and counts that cannot be. Each ends
 * in events with sound times, or in a message; never in another error, in no answer, or in more than was there.
 */

const FIXTURES = [
  'trace-dat/local-v6.dat.gz',
  'trace-dat/boot-v7.dat.gz',
  'trace-dat/boot-v7-zlib.dat.gz',
  'trace-dat/local-v7-zstd.dat.gz',
  'trace-dat/instance-v6.dat.gz',
  'perf-data/own-switches.data.gz',
  'perf-data/zstd.data.gz',
  'perf-data/pipe.data.gz',
  'memory-samples/nano.data.gz',
]
const PREFIXES = 16
const FLIPS = 40
const SIZES = 10

/** How many events come out, or -1 for a message. */
async function tried(bytes: Uint8Array, what: string, pieces?: number): Promise<number> {
  try {
    const { events } = await eventsIn(pieces === undefined ? bytes : cut(bytes, pieces))
    const unsound = events.find((event) => 'atNs' in event && !Number.isSafeInteger(event.atNs))
    if (unsound) throw new Error(`an unsound time: ${JSON.stringify(unsound)}`)
    if (events[0]?.kind !== 'input') throw new Error('the first event is not the input')
    return events.length
  } catch (error) {
    const { message } = error as Error
    if (!isOwnError(error) || /undefined|NaN|\[object/.test(message))
      throw new Error(`${what}: ${(error as Error).stack}`)
    return -1
  }
}

const places = (bytes: Uint8Array) => Array.from({ length: bytes.length }, (_, at) => at)
/** Tables and heads are near the start, records near the end. */
const chosen = (bytes: Uint8Array, count: number) => [
  ...spread(places(bytes), count),
  ...spread(places(bytes.subarray(0, 600)), count / 2),
  ...spread(places(bytes).slice(-1500), count / 2),
]

describe.each(FIXTURES)('%s', (fixture) => {
  const bytes = plainBytes(fixture)
  const check = async (damaged: Uint8Array, what: string, whole: number, pieces?: number) => {
    const events = await tried(damaged, `${fixture}, ${what}`, pieces)
    if (events > 2 * whole + 100) throw new Error(`${fixture}, ${what}: ${events} events of ${whole}`)
    return events
  }

  test('prefixes', async () => {
    const whole = await tried(bytes, 'whole')
    for (const length of chosen(bytes, PREFIXES)) {
      if (length === 0) continue
      const pieces = length % 3 === 0 ? 1 + (length % 5000) : undefined
      await check(bytes.subarray(0, length), `cut to ${length} bytes`, whole, pieces)
    }
    expect(await tried(bytes.subarray(0, 12), 'cut to 12 bytes')).toBe(-1)
  })

  test('bytes changed', async () => {
    const whole = await tried(bytes, 'whole')
    const random = randomOf(bytes.length)
    let salvaged = 0
    for (const at of chosen(bytes, FLIPS)) {
      const damaged = bytes.slice()
      const bits = at % 2 === 0 ? 0xff : 1 << Math.floor(random() * 8)
      damaged[at]! ^= bits
      if ((await check(damaged, `byte ${at} xor ${bits}`, whole)) > 0) salvaged++
    }
    expect(salvaged).toBeGreaterThan(FLIPS / 2)
  })

  test('sizes, counts and places that cannot be', async () => {
    const whole = await tried(bytes, 'whole')
    for (const at of chosen(bytes, SIZES)) {
      for (const [i, width] of [1, 2, 4, 8].entries()) {
        const damaged = bytes.slice()
        const value = [0, 0xff, 0x7f, 0x01][(at + i) % 4]!
        damaged.fill(value, at & ~1, (at & ~1) + width)
        await check(damaged, `${width} bytes at ${at & ~1} filled with ${value}`, whole)
      }
    }
  })
})
