import { readFileSync } from 'node:fs'
import { deflateRawSync, deflateSync, gunzipSync, gzipSync } from 'node:zlib'
import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { decompressed } from '../../lib/input/gunzip.ts'
import { inflateZlib, inflateZstd } from '../../lib/input/inflate.ts'

/** Lines, so that a part of them is known by its beginning. */
const PLAIN = new TextEncoder().encode(
  Array.from({ length: 2000 }, (_, i) => `line ${i} ${(i * 2654435761) % 9973}\n`).join(''),
)

const PACKED = {
  gzip: gzipSync(PLAIN, { level: 6 }),
  deflate: deflateSync(PLAIN),
  'deflate-raw': deflateRawSync(PLAIN),
} as const

type Format = keyof typeof PACKED

/** What comes out of an input in pieces that end at these places, with the error. */
async function all(packed: Uint8Array, format: Format, cuts: readonly number[]) {
  const ends = [...new Set([...cuts.map((at) => at % packed.length), packed.length])].sort((a, b) => a - b)
  async function* pieces() {
    let from = 0
    for (const end of ends) {
      yield packed.slice(from, end)
      from = end
    }
  }
  const out: Uint8Array[] = []
  let broken: { detail: string; bytes: number } | undefined
  for await (const piece of decompressed(pieces(), format, (detail, bytes) => (broken = { detail, bytes })))
    out.push(piece)
  return { plain: Buffer.concat(out), broken }
}

const anyFormat = fc.constantFrom(...(Object.keys(PACKED) as Format[]))
const anyCuts = fc.array(fc.nat(1 << 20), { maxLength: 20 })

describe('a compressed stream in any pieces', () => {
  test('that is intact comes out whole', () =>
    fc.assert(
      fc.asyncProperty(anyFormat, anyCuts, async (format, cuts) => {
        const { plain, broken } = await all(PACKED[format], format, cuts)
        expect([broken, plain.equals(PLAIN)]).toEqual([undefined, true])
      }),
      { numRuns: 8 },
    ))

  test('that is cut gives what the bytes before the cut contain', () =>
    fc.assert(
      fc.asyncProperty(anyFormat, anyCuts, fc.nat(1 << 20), async (format, cuts, at) => {
        const length = 20 + (at % (PACKED[format].length - 20))
        const { plain, broken } = await all(PACKED[format].subarray(0, length), format, cuts)
        expect(plain.equals(PLAIN.subarray(0, plain.length))).toBe(true)
        // The last byte may be half of a symbol.
        const { plain: least } = await all(PACKED[format].subarray(0, length - 2), format, [])
        expect(plain.length).toBeGreaterThanOrEqual(least.length)
        expect(broken?.bytes).toBe(plain.length)
      }),
      { numRuns: 8 },
    ))

  test('that lacks its last byte gives all', async () => {
    for (const cuts of [[], [100, 5000, 9000]]) {
      const { plain, broken } = await all(PACKED.gzip.subarray(0, -1), 'gzip', cuts)
      expect([plain.equals(PLAIN), broken?.bytes]).toEqual([true, PLAIN.length])
    }
  })

  test('with junk behind it gives all', () =>
    fc.assert(
      fc.asyncProperty(anyCuts, fc.uint8Array({ minLength: 1, maxLength: 300 }), async (cuts, junk) => {
        const { plain } = await all(new Uint8Array(Buffer.concat([PACKED.gzip, junk])), 'gzip', cuts)
        expect(plain.subarray(0, PLAIN.length).equals(PLAIN)).toBe(true)
      }),
      { numRuns: 8 },
    ))

  test('with damage in it gives the same in any pieces', () =>
    fc.assert(
      fc.asyncProperty(
        anyFormat,
        anyCuts,
        fc.nat(1 << 20),
        fc.integer({ min: 1, max: 255 }),
        async (format, cuts, at, by) => {
          const packed = new Uint8Array(PACKED[format])
          packed[at % packed.length]! ^= by
          const [pieces, whole] = [await all(packed, format, cuts), await all(packed, format, [])]
          expect(pieces).toEqual(whole)
        },
      ),
      { numRuns: 8 },
    ))
})

/** Zstandard's frames in a recording of trace-cmd, each after its sizes. */
function framesOf(path: string): { packed: Uint8Array; bytes: number }[] {
  const file = gunzipSync(readFileSync(path))
  const frames = []
  for (let at = file.indexOf('28b52ffd', 8, 'hex'); at >= 0; at = file.indexOf('28b52ffd', at + 4, 'hex')) {
    const [size, bytes] = [file.readUInt32LE(at - 8), file.readUInt32LE(at - 4)]
    if (at + size <= file.length) frames.push({ packed: new Uint8Array(file.subarray(at, at + size)), bytes })
  }
  return frames
}

describe('one piece', () => {
  const frames = framesOf('test/fixtures/trace-dat/local-v7-zstd.dat.gz').filter(({ bytes }) => bytes < 1 << 22)

  test('that is intact comes out whole', async () => {
    expect(frames.length).toBeGreaterThan(3)
    for (const { packed, bytes } of frames)
      expect(await inflateZstd(packed, bytes)).toEqual({ plain: expect.objectContaining({ length: bytes }) })
    expect(await inflateZlib(PACKED.deflate, PLAIN.length)).toEqual({ plain: PLAIN })
  })

  test('that is cut, or has other bytes in it, gives a beginning and why', async () => {
    for (const { packed, bytes } of frames) {
      const whole = (await inflateZstd(packed, bytes)).plain
      for (const part of [0.2, 0.5, 0.9]) {
        const { plain, broken } = await inflateZstd(packed.subarray(0, Math.floor(packed.length * part)), bytes)
        expect(broken).toBeDefined()
        expect(Buffer.from(plain).equals(whole.subarray(0, plain.length))).toBe(true)
      }
    }
    const { plain, broken } = await inflateZlib(PACKED.deflate.subarray(0, 9000), PLAIN.length)
    expect(broken).toBeDefined()
    expect(plain.length).toBeGreaterThan(5000)
    expect(plain).toEqual(PLAIN.subarray(0, plain.length))
  })

  test('whose header asks for gigabytes takes no such memory', async () => {
    const { packed, bytes } = frames[0]!
    const hostile = new Uint8Array(packed)
    hostile.set([0xa0, 0xff, 0xff, 0xff, 0x7f], 4) // one segment of 2 GiB
    const before = process.memoryUsage().arrayBuffers
    const { broken } = await inflateZstd(hostile, bytes)
    expect(broken).toBeDefined()
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(64 << 20)
  })
})
