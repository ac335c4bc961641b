import { gzipSync } from 'node:zlib'
import { afterAll, describe, expect, test } from '@jest/globals'
import { attempt, importFaults, type Outcome, sameInPieces, spread } from './hostile.ts'
import { converted, LARGE_FIXTURES, plainBytes, randomOf, SMALL_FIXTURES, storedBytes } from './support.ts'

/**
 * Damaged logs, of every format: cut anywhere, with any byte changed. Each ends in a sound trace that shows its issues,
 * or in a message; never in another error, never in no answer.
 */

/** How many of a fixture's salvaged traces are loaded into trace_processor. */
const LOADED = 1
/** Every so many cases, the damaged log is fed in pieces, too. */
const PIECES_EVERY = 37
const SAMPLES = 200
/**
 * Places of a small fixture that are tried, and how many of them lie in its head, where the tables are and most is refused.
 * Fixtures of a format are alike, and each is tried at others of its bytes; scripts/fuzz.mjs has the time for all.
 */
const PLACES = 80
const HEAD_PLACES = 30
const HEAD_BYTES = 400
const WHOLE_SAMPLES = 15
const GZIP_SAMPLES = 20

let cases = 0
let loaded = 0
afterAll(() => {
  if (process.env['COUNT_CASES']) console.log(`${cases} damaged logs, ${loaded} of them loaded`)
})

/** Tries damaged logs one after the other. */
class Trial {
  readonly traces: Uint8Array[] = []
  refusals = 0
  private tried = 0

  constructor(private readonly fixture: string) {}

  async try(bytes: Uint8Array, damage: string): Promise<Outcome> {
    cases++
    const what = `${this.fixture}, ${damage}`
    const outcome = await attempt(bytes, what, {}, () => plainBytes(this.fixture))
    // How much comes out of a gzip stream before its break depends on how it was fed.
    const isBroken = outcome.trace
      ? outcome.summary.issues.some(({ title }) => title === 'broken gzip stream')
      : outcome.refusal.includes('gzip')
    if (++this.tried % PIECES_EVERY === 0 && !isBroken) {
      await sameInPieces(bytes, 1 + (this.tried % 1500), outcome, what)
    }
    if (!outcome.trace) this.refusals++
    else if (this.tried % 41 === 0 || this.traces.length < LOADED) this.traces.push(outcome.trace)
    return outcome
  }

  /** Loads some of the traces. */
  async load(most = LOADED): Promise<void> {
    for (const trace of spread(this.traces, most)) {
      expect(await importFaults(trace)).toEqual([])
      loaded++
    }
  }
}

/** Size of the records of a TensorTrace fixture, which is in its name where it is not 1 024; 0 for other formats. */
const recordBytesOf = (fixture: string) =>
  fixture.startsWith('tensor-trace/') ? Number(/-(\d{2,3})\.bin/.exec(fixture)?.[1] ?? 1024) : 0

const flipped = (bytes: Uint8Array, at: number, bits: number) => {
  const damaged = bytes.slice()
  damaged[at]! ^= bits
  return damaged
}

/** Lengths that a log is cut to, which are places of its bytes, too: all of a short one, others for each fixture. */
const placesOf = (fixture: string, bytes: Uint8Array) => {
  const first = SMALL_FIXTURES.indexOf(fixture) % Math.max(1, Math.floor(bytes.length / PLACES))
  const all = Array.from({ length: bytes.length }, (_, place) => place)
  return new Set([...spread(all.slice(0, HEAD_BYTES), HEAD_PLACES), ...spread(all.slice(first), PLACES - HEAD_PLACES)])
}

const isIssueFree = (outcome: Outcome) => outcome.trace !== undefined && outcome.summary.issues.length === 0

describe('cut short', () => {
  test.each(SMALL_FIXTURES)('%s', async (fixture) => {
    const bytes = plainBytes(fixture)
    const trial = new Trial(fixture)
    for (const length of placesOf(fixture, bytes)) {
      const outcome = await trial.try(bytes.subarray(0, length), `cut to ${length} bytes`)
      // A text may lose its last line break; a record that is cut never goes unnoticed.
      const record = recordBytesOf(fixture)
      // Half a record of 128 bytes is a whole one of 64.
      const isTorn = record > 0 && length % record !== 0 && length !== 64 && bytes[length - (length % record)] !== 0
      if (isTorn && isIssueFree(outcome)) throw new Error(`${length} bytes: the torn record is not told`)
    }
    expect(trial.refusals).toBeGreaterThan(1) // some formats refuse but the first few bytes
    await trial.load()
  })
})

describe('with a byte changed', () => {
  test.each(SMALL_FIXTURES)('%s', async (fixture) => {
    const bytes = plainBytes(fixture)
    const random = randomOf(bytes.length)
    const trial = new Trial(fixture)
    for (const at of placesOf(fixture, bytes)) {
      await trial.try(flipped(bytes, at, 0xff), `byte ${at} inverted`)
      const bit = 1 << Math.floor(random() * 8)
      await trial.try(flipped(bytes, at, bit), `byte ${at} xor ${bit}`)
    }
    expect(trial.traces.length).toBeGreaterThan(LOADED)
    await trial.load()
  })
})

describe('samples of the recordings', () => {
  /** Half of the first of nine calls; whole recordings would take minutes. */
  const START_BYTES = { 'tensor-trace': 80 * 1024, 'profinfer-csv': 32 * 1024 }

  async function sample(fixture: string, bytes: Uint8Array, count: number): Promise<Trial> {
    const random = randomOf(count)
    const trial = new Trial(fixture)
    for (let i = 0; i < count; i++) {
      const at = Math.floor(random() * bytes.length)
      const bits = i % 2 === 0 ? 0xff : 1 << Math.floor(random() * 8)
      if (i % 4 === 3) await trial.try(bytes.subarray(0, at), `cut to ${at} bytes`)
      else await trial.try(flipped(bytes, at, bits), `byte ${at} xor ${bits}`)
    }
    return trial
  }

  test.each(LARGE_FIXTURES)(`%s: ${SAMPLES} of its start`, async (fixture) => {
    const format = fixture.split('/')[0] as keyof typeof START_BYTES
    await (await sample(fixture, plainBytes(fixture).subarray(0, START_BYTES[format]), SAMPLES)).load()
  })

  test.each(LARGE_FIXTURES)(`%s: ${WHOLE_SAMPLES} of the whole`, async (fixture) => {
    await (await sample(fixture, plainBytes(fixture), WHOLE_SAMPLES)).load()
  })

  test.each(LARGE_FIXTURES)(`%s: ${GZIP_SAMPLES} of its compressed bytes`, async (fixture) => {
    await (await sample(fixture, storedBytes(fixture), GZIP_SAMPLES)).load()
  })

  test('a small compressed log, cut anywhere or with any byte changed', async () => {
    const fixture = 'tensor-trace/tiny-v3.bin'
    const bytes = new Uint8Array(gzipSync(plainBytes(fixture), { level: 9 }))
    const intact = Buffer.from(await converted(bytes))
    const trial = new Trial(fixture)
    for (let at = 0; at < bytes.length; at++) {
      const cut = await trial.try(bytes.subarray(0, at), `cut to ${at} bytes`)
      if (isIssueFree(cut)) throw new Error(`cut to ${at} bytes: the loss is not told`)
      const changed = await trial.try(flipped(bytes, at, 0xff), `byte ${at} inverted`)
      const isSame = changed.trace !== undefined && intact.equals(changed.trace)
      // Of the ten bytes ahead, flags may name parts that are not there, and time and system mean nothing to us.
      if (isIssueFree(changed) && !isSame) throw new Error(`byte ${at} inverted: unnoticed, though CRC-32 tells`)
    }
    await trial.load()
  })
})
