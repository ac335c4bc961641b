import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import protobuf from 'protobufjs'
import { IidSet, Iids } from '../../lib/write/perfetto/iids.ts'
import { ProtoWriter } from '../../lib/write/perfetto/proto-writer.ts'

/** Our protobuf writer against protobufjs, byte for byte and read back. */

type Field = { readonly field: number } & (
  | { readonly kind: 'varint' | 'int64' | 'fixed64' | 'double'; readonly value: number }
  | { readonly kind: 'bigVarint'; readonly value: bigint }
  | { readonly kind: 'string'; readonly value: string }
  | { readonly kind: 'raw' | 'message'; readonly value: readonly Field[] }
)

const number = fc.oneof(fc.integer({ min: 1, max: 15 }), fc.integer({ min: 1, max: 2 ** 28 - 1 }))
const wellFormed = fc.string({ unit: 'binary' })
const text = fc.oneof(
  fc.string({ unit: 'grapheme-ascii', maxLength: 200 }),
  wellFormed,
  fc.integer({ min: 40, max: 300 }).map((length) => 'x'.repeat(length)),
  fc.integer({ min: 40, max: 300 }).map((length) => 'ß😀'.repeat(length)),
)

const { tree } = fc.letrec<{ tree: Field }>((tie) => {
  const of = <K extends string, V>(kind: K, value: fc.Arbitrary<V>) =>
    fc.record({ field: number, kind: fc.constant(kind), value })
  const nested = fc.array(tie('tree') as fc.Arbitrary<Field>, { maxLength: 6 })
  return {
    tree: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      of('varint', fc.oneof(fc.nat(300), fc.maxSafeNat(), fc.constantFrom(2 ** 32 - 1, 2 ** 32, 2 ** 53 - 1))),
      of('int64', fc.maxSafeInteger()),
      of('fixed64', fc.maxSafeNat()),
      of('double', fc.double()),
      of('bigVarint', fc.bigInt(-(2n ** 63n), 2n ** 64n - 1n)),
      of('string', text),
      of('raw', nested),
      of('message', nested),
    ) as fc.Arbitrary<Field>,
  }
})

function write(writer: ProtoWriter, fields: readonly Field[]): void {
  for (const item of fields) {
    switch (item.kind) {
      case 'message': {
        const mark = writer.begin(item.field)
        write(writer, item.value)
        writer.end(mark)
        break
      }
      case 'raw': {
        const other = new ProtoWriter()
        write(other, item.value)
        writer.raw(other.take())
        break
      }
      case 'bigVarint':
        writer.bigVarint(item.field, item.value)
        break
      case 'string':
        writer.string(item.field, item.value)
        break
      default:
        writer[item.kind](item.field, item.value)
    }
  }
}

function writeByReference(writer: protobuf.Writer, fields: readonly Field[]): protobuf.Writer {
  for (const item of fields) {
    const tag = (type: number) => writer.uint32(((item.field << 3) | type) >>> 0)
    if (typeof item.value === 'object') {
      if (item.kind === 'raw') writeByReference(writer, item.value)
      else writeByReference(tag(2).fork(), item.value).ldelim()
    } else if (item.kind === 'string') tag(2).string(item.value)
    else if (item.kind === 'double') tag(1).double(item.value)
    else if (item.kind === 'fixed64') tag(1).fixed64(item.value)
    else tag(0).int64(`${BigInt.asIntN(64, BigInt(item.value))}`)
  }
  return writer
}

describe('ProtoWriter', () => {
  test('writes what protobufjs writes', () => {
    const writer = new ProtoWriter() // one for all runs: what was taken leaves nothing behind
    fc.assert(
      fc.property(fc.array(tree, { maxLength: 20 }), (fields) => {
        write(writer, fields)
        const reference = writeByReference(protobuf.Writer.create(), fields).finish()
        expect(writer.size).toBe(reference.length)
        expect(Buffer.compare(writer.take(), reference)).toBe(0)
        expect(writer.size).toBe(0)
      }),
      { numRuns: 500 },
    )
  })

  test.each([0, 1, 127, 128, 16_383, 16_384, 65_535, 65_536, 2_097_151, 2_097_152, 5_000_000])(
    'a message and texts of %i bytes',
    (length) => {
      const writer = new ProtoWriter()
      const outer = writer.begin(1)
      writer.string(2, 'x'.repeat(length))
      writer.string(3, `ß${'y'.repeat(length)}`)
      writer.end(outer)
      const reader = protobuf.Reader.create(writer.take())
      expect(reader.uint32()).toBe(10)
      expect(reader.uint32()).toBe(reader.len - reader.pos)
      expect([reader.uint32(), reader.string().length]).toEqual([18, length])
      expect([reader.uint32(), reader.string().length]).toEqual([26, length + 1])
      expect(reader.pos).toBe(reader.len)
    },
  )

  test('a text of every UTF-16 unit comes back; halves of pairs become replacement characters', () => {
    const all = Array.from({ length: 0x10000 }, (_, unit) => String.fromCharCode(unit)).join('-')
    const writer = new ProtoWriter()
    writer.string(1, all)
    const reader = protobuf.Reader.create(writer.take())
    reader.uint32()
    expect(reader.string()).toBe(Buffer.from(all).toString())
  })

  test.each([-1, 0.5, 2 ** 53, NaN, Infinity])('refuses %d as a varint', (value) => {
    expect(() => new ProtoWriter().varint(1, value)).toThrow(RangeError)
  })
})

describe('interned ids', () => {
  test('follow first use, and a set remembers', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(2000)), (names) => {
        const iids = new Iids()
        const distinct = [...new Set(names)]
        expect(names.map((name) => iids.of(name))).toEqual(names.map((name) => distinct.indexOf(name) + 1))
        const known = new IidSet()
        const model = new Set<number>()
        for (const name of names) {
          expect(known.has(name)).toBe(model.has(name))
          expect(known.add(name)).toBe(!model.has(name))
          model.add(name)
        }
      }),
    )
  })
})
