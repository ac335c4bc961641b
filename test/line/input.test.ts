import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { ByteCursor } from '../../lib/input/byte-cursor.ts'
import { CsvRow } from '../../lib/input/csv-row.ts'
import { gunzip, peek } from '../../lib/input/gunzip.ts'
import { LineCursor } from '../../lib/input/line-cursor.ts'
import { ReorderWindow } from '../../lib/input/reorder.ts'
import { Replay } from '../../lib/input/replay.ts'

/** The stitching of chunks against models that hold everything. */

async function* from<T>(items: readonly T[]): AsyncGenerator<T> {
  yield* items
}

const encode = (text: string) => new TextEncoder().encode(text)
const decode = (bytes: Uint8Array) => new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)

/** `bytes` in chunks of the sizes given, over and over; some of them may be empty. */
function chunked(bytes: Uint8Array, sizes: readonly number[]): Uint8Array[] {
  const chunks: Uint8Array[] = []
  for (let start = 0, i = 0; start < bytes.length; i++) {
    const size = sizes[i % sizes.length]!
    chunks.push(bytes.slice(start, start + size))
    start += size
  }
  return chunks
}

const sizes = fc.array(fc.nat(40), { minLength: 1 }).filter((all) => all.some((size) => size > 0))

describe('ByteCursor', () => {
  test('shows what is left, at its offset, however much is taken from each window', async () => {
    const bytes = fc.uint8Array({ maxLength: 600 })
    await fc.assert(
      fc.asyncProperty(bytes, sizes, fc.array(fc.nat(50), { minLength: 1 }), async (input, chunkSizes, takes) => {
        const cursor = new ByteCursor(from(chunked(input, chunkSizes)))
        let [taken, given, i] = [0, 0, 0]
        for (const chunk of chunked(input, chunkSizes)) {
          expect(await cursor.fill()).toBe(true)
          given += chunk.length
          expect(cursor.offset).toBe(taken)
          expect([...cursor.bytes.subarray(cursor.start, cursor.end)]).toEqual([...input.subarray(taken, given)])
          const take = Math.min(takes[i++ % takes.length]!, cursor.available)
          cursor.skip(take)
          taken += take
        }
        expect(await cursor.fill()).toBe(false)
        expect(cursor.available).toBe(input.length - taken)
      }),
    )
  })

  test('close ends the source', async () => {
    let closed = false
    const source = async function* () {
      try {
        for (;;) yield new Uint8Array(1)
      } finally {
        closed = true
      }
    }
    const cursor = new ByteCursor(source())
    await cursor.fill()
    await cursor.close()
    expect(closed).toBe(true)
  })
})

describe('LineCursor', () => {
  test('gives the lines of a text, where they were, with either kind of line break', async () => {
    const line = fc.string({ unit: fc.constantFrom('a', ',', '"', 'ß', '😀', '\r'), maxLength: 30 })
    const ended = fc.boolean()
    await fc.assert(
      fc.asyncProperty(fc.array(line), ended, sizes, async (lines, hasEnd, chunkSizes) => {
        const text = lines.join('\n') + (hasEnd && lines.length > 0 ? '\n' : '')
        const cursor = new LineCursor(from(chunked(encode(text), chunkSizes)), 'test')
        const found: [string, number, number][] = []
        const drain = () => {
          while (cursor.next()) {
            found.push([decode(cursor.bytes.subarray(cursor.start, cursor.end)), cursor.offset, cursor.line])
          }
        }
        while (await cursor.fill()) drain()
        drain()
        const whole = text.split('\n')
        if (whole.at(-1) === '') whole.pop()
        let offset = 0
        const expected = whole.map((content, i) => {
          const at = offset
          offset += encode(content).length + 1
          return [content.replace(/\r$/, ''), at, i + 1]
        })
        expect(found).toEqual(expected)
        if (text !== '') expect(cursor.isTorn).toBe(!text.endsWith('\n'))
      }),
    )
  })

  test.each([1 << 20, (1 << 20) + 1])('a line of %i bytes', async (length) => {
    const text = encode(`first\n${'x'.repeat(length)}\n`)
    for (const size of [text.length, 65_536, length + 6]) {
      const read = async () => {
        const cursor = new LineCursor(from(chunked(text, [size])), 'test')
        let longest = 0
        while (await cursor.fill()) while (cursor.next()) longest = Math.max(longest, cursor.end - cursor.start)
        return longest
      }
      if (length === 1 << 20) expect(await read()).toBe(length)
      else await expect(read()).rejects.toMatchObject({ name: 'FormatError', at: { byte: 6, line: 2 } })
    }
  })
})

describe('CsvRow', () => {
  const split = (text: string) => {
    const row = new CsvRow()
    const bytes = encode(`before${text}after`)
    row.split(bytes, 6, bytes.length - 5)
    return row
  }
  const written = (field: string) => (/[",]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field)
  const field = fc.string({ unit: fc.constantFrom('a', 'Q', '7', '.', ',', '"', ' ', '-', 'ß', '😀'), maxLength: 12 })

  test('gives back what was written, quoted where it must be', () => {
    fc.assert(
      fc.property(fc.array(field, { minLength: 1, maxLength: 90 }), fc.nat(), (fields, nth) => {
        const text = fields.map(written).join(',')
        const row = split(text)
        expect(row.count).toBe(fields.length)
        expect(fields.map((_, i) => row.text(i))).toEqual(fields)
        expect(fields.map((_, i) => row.isEmpty(i))).toEqual(fields.map((value) => value === ''))
        const first = nth % fields.length
        expect(row.tail(first)).toBe(fields.slice(first).map(written).join(','))
        expect([row.text(-1), row.text(fields.length), row.isEmpty(-1)]).toEqual(['', '', true])
      }),
    )
  })

  test('any text is split into one field more than it has commas outside of quotes', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('a', ',', '"'), maxLength: 30 }), (text) => {
        const row = split(text)
        expect(row.count).toBe(1 + commasOutside(text))
      }),
      { numRuns: 1000 },
    )
  })

  test('reads numbers as JavaScript does, and exact differences of long ones', () => {
    fc.assert(
      fc.property(fc.maxSafeNat(), fc.bigInt(0n, 2n ** 64n), fc.maxSafeInteger(), (small, origin, delta) => {
        const stamp = origin + BigInt(delta)
        const row = split(`${small},${small}.0,-${small},${small / 1024},${stamp},${stamp}.0,,x7`)
        expect([0, 1, 2, 3].map((i) => row.number(i))).toEqual([
          small,
          small,
          -small || (small === 0 ? -0 : 0),
          small / 1024,
        ])
        expect([row.number(6), row.number(7), row.number(99)]).toEqual([NaN, NaN, NaN])
        const [high, low] = [Number(origin / 1_000_000_000n), Number(origin % 1_000_000_000n)]
        if (stamp < 0n) return expect(row.difference(4, high, low)).toBeNaN()
        expect(row.integer(4)).toBe(stamp)
        expect(row.difference(4, high, low)).toBe(delta)
        expect(row.difference(5, high, low)).toBe(delta)
        expect(row.difference(6, high, low)).toBeNaN()
        expect(row.integer(7)).toBeUndefined()
      }),
    )
  })
})

/** A quote opens only at the start of a field; within, two of them stand for one. */
function commasOutside(text: string): number {
  let [commas, isQuoted] = [0, false]
  for (let i = 0; i < text.length; i++) {
    const isStart = i === 0 || (text[i - 1] === ',' && !isQuoted)
    if (isQuoted && text[i] === '"' && text[i + 1] === '"') i++
    else if (text[i] === '"' && (isQuoted || isStart)) isQuoted = !isQuoted
    else if (text[i] === ',' && !isQuoted) commas++
  }
  return commas
}

describe('ReorderWindow', () => {
  test('is a stable sort, as long as nothing is later than the window is long', () => {
    const record = fc.record({ atNs: fc.nat(1000), late: fc.nat(12) })
    fc.assert(
      fc.property(fc.array(record, { maxLength: 300 }), fc.integer({ min: 12, max: 40 }), (records, size) => {
        // Sorted, then each record is moved back by at most twelve places.
        const sorted = records.toSorted((a, b) => a.atNs - b.atNs).map((item, i) => ({ ...item, id: i }))
        const arriving = sorted.map((item, i) => ({ item, place: i + item.late })).sort((a, b) => a.place - b.place)
        const input = arriving.map(({ item }) => item)
        const window = new ReorderWindow<(typeof input)[0]>(size)
        const out = input.flatMap((item) => window.push(item) ?? [])
        expect(window.waiting).toHaveLength(Math.min(size, input.length))
        for (let next = window.shift(); next; next = window.shift()) out.push(next)
        const stable = input.toSorted((a, b) => a.atNs - b.atNs)
        expect(out.map(({ id }) => id)).toEqual(stable.map(({ id }) => id))
      }),
    )
  })

  test('holds back as many as it should, and no record is lost when some are too late', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(100)), fc.integer({ min: 1, max: 8 }), (times, size) => {
        const window = new ReorderWindow<{ atNs: number }>(size)
        const out: number[] = []
        times.forEach((atNs, i) => {
          const released = window.push({ atNs })
          expect(released === undefined).toBe(i < size)
          if (released) out.push(released.atNs)
        })
        for (let next = window.shift(); next; next = window.shift()) out.push(next.atNs)
        expect(out.toSorted((a, b) => a - b)).toEqual(times.toSorted((a, b) => a - b))
      }),
    )
  })
})

describe('Replay', () => {
  const chunks = (closed: string[]) => {
    const source = from(['a', 'b', 'c'])
    const replay = new Replay<string>({
      [Symbol.asyncIterator]: () => ({
        next: () => source.next(),
        return: async () => {
          closed.push('source')
          return { done: true as const, value: undefined }
        },
      }),
    })
    const look = async (count: number) => {
      const seen: string[] = []
      await replay.look((chunk) => seen.push(chunk) === count)
      return seen.join('')
    }
    return { replay, look }
  }

  test('a look starts from what is not read yet, and takes nothing away', async () => {
    const { replay, look } = chunks([])
    expect(await look(1)).toBe('a')
    expect(await look(2)).toBe('ab')
    expect((await replay.next()).value).toBe('a')
    expect(await look(9)).toBe('bc')
    expect(await look(1)).toBe('b')
    const rest: string[] = []
    for await (const chunk of replay) rest.push(chunk)
    expect(rest).toEqual(['b', 'c'])
    expect(await look(1)).toBe('')
  })

  test('closes its source, be it read or not', async () => {
    const closed: string[] = []
    const { replay, look } = chunks(closed)
    await look(2)
    await replay.return()
    expect(closed).toEqual(['source'])
    const begun = chunks(closed)
    for await (const _ of begun.replay) break
    expect(closed).toEqual(['source', 'source'])
  })
})

describe('gunzip and peek', () => {
  test('a look at the head changes nothing', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), sizes, fc.nat(250), async (input, chunkSizes, wanted) => {
        const { head, rest } = await peek(from(chunked(input, chunkSizes)), wanted)
        expect([...head]).toEqual([...input.subarray(0, wanted)])
        const again: number[] = []
        for await (const chunk of rest) again.push(...chunk)
        expect(again).toEqual([...input])
      }),
    )
  })

  test('what is not gzip passes as it is, and an error of the source is its own', async () => {
    const plain = Uint8Array.of(0x1f, 0x8c, 1, 2)
    const out: number[] = []
    for await (const chunk of gunzip(from([plain]), () => undefined)) out.push(...chunk)
    expect(out).toEqual([...plain])
    const failing = async function* () {
      yield Uint8Array.of(0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3)
      throw new Error('the disk is gone')
    }
    const details: string[] = []
    const read = async () => {
      for await (const _ of gunzip(failing(), (detail) => details.push(detail)));
    }
    await expect(read()).rejects.toThrow('the disk is gone')
    expect(details).toEqual([])
  })
})
