import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { modelSections } from '../../bin/stats/model.ts'
import { toText } from '../../bin/stats/section.ts'
import { modelOf } from '../../lib/analysis.ts'
import {
  type GgufParts,
  type GgufTestValue,
  ggufFile,
  ggufWithFields,
  SMALL_MODEL,
} from '../analyze/model/gguf-file.ts'
import { inParts, isLong, someOf } from '../long.ts'
import { faultsOfTexts, noNumbersIn } from './made.ts'

/** GGUF files whose header is damaged in its structure: an error with its place, or figures that a model can have. */

const NUM_RUNS = isLong ? 20_000 : 100

const { metadata: METADATA, tensors: TENSORS } = SMALL_MODEL

/** Paths of numbers that are none, negative, or parts of what has no parts. */
function oddIn(value: unknown, path = ''): string[] {
  if (typeof value === 'number') {
    const hasParts = /intensity|active_parameters|decode|\.at\./.test(path)
    return value >= 0 && (hasParts || Number.isInteger(value)) ? [] : [`${path}: ${value}`]
  }
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, of]) => oddIn(of, `${path}.${key}`))
}

/** What is wrong with what is made of a file. */
async function faultsOf(source: Uint8Array): Promise<unknown[]> {
  try {
    const { model, undetermined } = await modelOf({ name: 'm.gguf', source })
    const texts = [...toText(modelSections(model), 200), ...undetermined.map(({ why }) => why)]
    const many = undetermined.length > 30 ? [`${undetermined.length} statements`] : []
    return [...faultsOfTexts(texts), ...noNumbersIn(model), ...oddIn(model), ...many]
  } catch (error) {
    const { name, message, stack } = error as Error
    const isClear = /^m\.gguf: gguf: byte \d+ \(0x[\da-f]+\): expected [^\n]+, found [^\n]+$/.test(message)
    return name === 'FormatError' && isClear ? [] : [stack]
  }
}

const expectClean = async (what: unknown, source: Uint8Array) =>
  expect([what, await faultsOf(source)]).toEqual([what, []])

const anyOrder = fc.boolean()
const anyScalar: fc.Arbitrary<GgufTestValue> = fc.oneof(
  fc.constantFrom<GgufTestValue>(
    'text',
    '',
    '__proto__',
    'constructor',
    'a\u202e\0\n',
    true,
    false,
    0,
    1,
    2,
    2 ** 14,
    2 ** 32 - 1,
  ),
  fc.record({ type: fc.constantFrom(6, 12), value: fc.constantFrom(NaN, Infinity, -Infinity, -1, 0.5, 1e30, 3e-45) }),
  fc.record({
    type: fc.constantFrom(10, 11),
    value: fc.constantFrom(0n, 1n, 2n ** 40n, 2n ** 53n, 2n ** 63n, 2n ** 64n - 1n),
  }),
  fc.record({ type: fc.constantFrom(0, 1, 2, 3, 5), value: fc.constantFrom(0, 1, 255, 65535) }),
)
const anyValue: fc.Arbitrary<GgufTestValue> = fc.oneof(
  { weight: 3, arbitrary: anyScalar },
  {
    weight: 1,
    arbitrary: fc.constantFrom<GgufTestValue>(
      { type: 4, values: [] },
      { type: 4, values: [3] },
      { type: 4, values: Array(5000).fill(3) },
      { type: 6, values: [NaN, Infinity, -1] },
      { type: 8, values: ['x'] },
      { type: 7, values: [true, false] },
      { type: 5, values: [2 ** 32 - 1, 0, 4] },
      { type: 9, values: [{ type: 9, values: [{ type: 4, values: [1] }] }] },
    ),
  },
)
const anyTensor = fc.tuple(
  fc.constantFrom(
    'token_embd.weight',
    'blk.0.attn_k.weight',
    'blk.0.ffn_up_exps.weight',
    'output.weight',
    '',
    'blk.99999999999999999999.x',
    '__proto__',
  ),
  fc.constantFrom(0, 2, 12, 4, 31, 99, 2 ** 31),
  fc.array(fc.constantFrom(0, 1, 2, 4, 31, 64, 256, 2 ** 20, 2 ** 40), { maxLength: 5 }),
  fc.constantFrom(0, 1, 31, 32, 3616, 2 ** 40, 2 ** 53 - 1),
)

test('any value of each key, in either byte order', () =>
  fc.assert(
    fc.asyncProperty(
      anyOrder,
      fc.array(fc.tuple(fc.constantFrom(...Object.keys(METADATA)), anyValue), { minLength: 1, maxLength: 3 }),
      async (bigEndian, changes) => {
        const metadata = { ...METADATA, ...Object.fromEntries(changes) }
        await expectClean(changes, ggufFile({ bigEndian, metadata, tensors: TENSORS }))
      },
    ),
    { numRuns: NUM_RUNS },
  ))

test('tensors of any name, type, size and place', () =>
  fc.assert(
    fc.asyncProperty(fc.array(anyTensor, { minLength: 1, maxLength: 4 }), async (others) => {
      const names = new Set<string>(others.map(([name]) => name))
      const tensors = [...TENSORS.filter(([name]) => !names.has(name)), ...others]
      await expectClean(others, ggufFile({ metadata: METADATA, tensors }))
    }),
    { numRuns: NUM_RUNS },
  ))

/** Counts, lengths, types, dimensions and places of damaged files. */
const NUMBERS = [0n, 1n, 2n, 7n, 33n, 255n, 2n ** 16n, 2n ** 20n, 2n ** 24n, 2n ** 31n, 2n ** 32n - 1n]
const LONG = [2n ** 32n, 2n ** 40n, 2n ** 53n - 1n, 2n ** 53n, 2n ** 62n, 2n ** 63n, 2n ** 64n - 1n]

inParts(test).each([false, true])('any number in the header; big-endian: %j', async (bigEndian) => {
  const { bytes, fields } = ggufWithFields({ bigEndian, metadata: METADATA, tensors: TENSORS })
  for (const { at, size } of someOf(fields, 8, Number(bigEndian))) {
    for (const number of size === 4 ? NUMBERS : [...NUMBERS, ...LONG]) {
      const other = bytes.slice()
      const view = new DataView(other.buffer)
      if (size === 4) view.setUint32(at, Number(number), !bigEndian)
      else view.setBigUint64(at, number, !bigEndian)
      await expectClean([at, number], other)
    }
  }
})

inParts(test).each([false, true])('cut anywhere, or another byte; big-endian: %j', async (bigEndian) => {
  const whole = ggufFile({ bigEndian, metadata: METADATA, tensors: TENSORS })
  const places = Array.from({ length: whole.length - 4 }, (_, i) => 4 + i)
  for (const at of someOf(places, 16, Number(bigEndian))) {
    expect(await modelOf({ name: 'm', source: whole.subarray(0, at) }).catch(({ name }) => name)).toBe('FormatError')
    const other = whole.slice()
    other[at]! ^= 0xff
    await expectClean(at, other)
  }
})

describe('is refused, as by ggml', () => {
  test.each<[string, GgufParts, RegExp]>([
    [
      'a key that is there twice',
      { further: [['llama.block_count', 3]] },
      /expected keys that differ, found "llama\.block_count" twice/,
    ],
    ['a tensor that is there twice', { tensors: [...TENSORS, TENSORS[0]!] }, /found "token_embd\.weight" twice/],
    [
      'a row that is no multiple of its blocks',
      { tensors: [['x', 2, [33, 5]]] },
      /expected rows of blocks of 32 elements, as q4_0 has, found rows of 33/,
    ],
    ['more than four dimensions', { tensors: [['x', 0, [1, 1, 1, 1, 1]]] }, /at most 4 dimensions, found 5/],
  ])('%s', async (_, parts, message) => {
    const source = ggufFile({ metadata: METADATA, tensors: TENSORS, ...parts })
    await expect(modelOf({ name: 'm', source })).rejects.toThrow(message)
  })
})

describe('is not counted, which is stated', () => {
  const whysOf = async (parts: GgufParts) =>
    (await modelOf({ name: 'm', source: ggufFile({ metadata: METADATA, tensors: TENSORS, ...parts }) })).undetermined
      .map(({ why }) => why)
      .join('\n')

  test('layers without a number of heads', async () => {
    const metadata = { ...METADATA, 'llama.attention.head_count': { type: 5, values: [4] } }
    expect(await whysOf({ metadata })).toContain('the heads of 1 layer with attention, which are not counted')
  })

  test('values that no model has', async () => {
    const metadata = { ...METADATA, 'llama.context_length': { type: 6, value: NaN } }
    expect(await whysOf({ metadata })).toContain('a value of "llama.context_length" that no model has')
  })

  test('types that are not known, however many', async () => {
    const tensors = Array.from({ length: 5000 }, (_, i) => [`t${i}`, 1000 + i, [32], 32 * i] as const)
    expect((await whysOf({ tensors })).split('\n').length).toBeLessThan(20)
    expect(await whysOf({ tensors })).toContain('type 1003 of ggml, as 4996 others, is not known')
  })
})

test('huge arrays, and many of them, take little memory and no endless work', async () => {
  async function* endless(head: Uint8Array) {
    yield head
    for (;;) yield new Uint8Array(1 << 20)
  }
  const { bytes, fields } = ggufWithFields({ metadata: { x: { type: 0, values: [] } } })
  const view = new DataView(bytes.buffer)
  view.setBigUint64(fields.at(-1)!.at, 2n ** 50n, true)
  await expect(modelOf({ name: 'm', source: endless(bytes) })).rejects.toThrow(
    /a length of an array up to \d+, found 1125899906842624/,
  )

  const before = process.memoryUsage().rss
  const KEYS = 10_000
  async function* many() {
    const head = ggufFile({}).slice(0, 24)
    new DataView(head.buffer).setBigUint64(16, BigInt(KEYS), true)
    yield head
    for (let i = 0; i < KEYS; i++) {
      const one = ggufFile({ metadata: { [`key ${i}`]: { type: 0, values: [] } } }).slice(24)
      new DataView(one.buffer).setBigUint64(one.length - 8, 4096n, true)
      yield Buffer.concat([one, new Uint8Array(4096)])
    }
  }
  await modelOf({ name: 'm', source: many() })
  expect(process.memoryUsage().rss - before).toBeLessThan(200 << 20)
})
