import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { modelOf } from '../../lib/analysis.ts'
import { isGguf, readGguf } from '../../lib/read/gguf/gguf.ts'
import { type GgufParts, ggufFile } from '../analyze/model/gguf-file.ts'
import { layoutOf, presets } from '../llama/gguf.mjs'
import { noNumbersIn } from './made.ts'

async function* chunks(bytes: Uint8Array, sizes: readonly number[] = []) {
  let at = 0
  for (const size of sizes) {
    yield bytes.subarray(at, at + size)
    at += size
  }
  yield bytes.subarray(at)
}

const PARTS: GgufParts = {
  metadata: {
    'general.architecture': 'llama',
    'general.name': 'ä model',
    'llama.block_count': 2,
    'llama.flag': true,
    'llama.per_layer': { type: 4, values: [7, 0] },
    'llama.flags': { type: 7, values: [true, false] },
    'tokenizer.ggml.tokens': { type: 8, values: ['a', 'bc', ''] },
    'tokenizer.ggml.scores': { type: 6, values: Array.from({ length: 5000 }, (_, i) => i) },
  },
  tensors: [
    ['token_embd.weight', 2, [64, 100], 0],
    ['blk.0.attn_norm.weight', 0, [64], 3616],
    ['blk.0.attn_q.weight', 12, [256, 64], 3904],
  ],
}

const expected = {
  version: 3,
  metadata: new Map<string, unknown>([
    ['general.architecture', 'llama'],
    ['general.name', 'ä model'],
    ['llama.block_count', 2],
    ['llama.flag', true],
    ['llama.per_layer', [7, 0]],
    ['llama.flags', [true, false]],
    ['tokenizer.ggml.tokens', { length: 3 }],
    ['tokenizer.ggml.scores', { length: 5000 }],
  ]),
  tensors: [
    { name: 'token_embd.weight', type: 'q4_0', ne: [64, 100], bytes: 200 * 18 },
    { name: 'blk.0.attn_norm.weight', type: 'f32', ne: [64], bytes: 256 },
    { name: 'blk.0.attn_q.weight', type: 'q4_K', ne: [256, 64], bytes: 64 * 144 },
  ],
  unknownTypes: [],
}

test('metadata and tensor table, of each version and byte order', async () => {
  const file = (parts: GgufParts) => readGguf(chunks(ggufFile({ ...PARTS, ...parts })))
  expect(await file({})).toEqual(expected)
  expect(await file({ version: 2 })).toEqual({ ...expected, version: 2 })
  expect(await file({ bigEndian: true })).toEqual(expected)
})

test('however the file is cut into chunks', async () => {
  const bytes = ggufFile(PARTS)
  await fc.assert(
    fc.asyncProperty(fc.array(fc.integer({ min: 0, max: 3000 }), { maxLength: 40 }), async (sizes) => {
      expect(await readGguf(chunks(bytes, sizes))).toEqual(expected)
    }),
    { numRuns: 50 },
  )
})

test('a file that is cut anywhere is an error at that place', async () => {
  const bytes = ggufFile({ ...PARTS, metadata: { 'general.architecture': 'llama' } })
  for (let length = 4; length < bytes.length; length++) {
    await expect(readGguf(chunks(bytes.subarray(0, length)))).rejects.toThrow(
      /^gguf: byte \d+ .*: expected .* more bytes/,
    )
  }
})

test('damaged counts are errors, not endless work', async () => {
  const bytes = ggufFile(PARTS)
  for (let at = 4; at < 60; at++) {
    const damaged = bytes.slice()
    damaged[at]! ^= 0xff
    await readGguf(chunks(damaged)).catch((error) => expect(String(error)).toMatch(/FormatError: gguf: byte/))
  }
  await expect(readGguf(chunks(new TextEncoder().encode('GGUF....')))).rejects.toThrow('expected version 1, 2 or 3')
})

/** Numbers that no model has; 1e30 is a FLOAT32. */
const IMPOSSIBLE = [2 ** 32 - 1, 1e30, Number.NaN]

test('a number that no model has is not used', async () => {
  const sound = {
    'llama.block_count': 2,
    'llama.nextn_predict_layers': 0,
    'llama.embedding_length': 64,
    'llama.attention.head_count': 4,
    'llama.attention.head_count_kv': 2,
    'llama.attention.key_length': 16,
    'llama.attention.sliding_window': 8,
    'llama.attention.sliding_window_pattern': 2,
    'llama.expert_count': 4,
    'llama.expert_used_count': 2,
    'llama.vocab_size': 100,
    'llama.context_length': 128,
  }
  const tensors: GgufParts['tensors'] = [
    ['token_embd.weight', 0, [64, 100], 0],
    ['blk.0.attn_k.weight', 0, [64, 64], 25600],
    ['blk.1.attn_k.weight', 0, [64, 64], 41984],
  ]
  for (const key of Object.keys(sound)) {
    for (const number of IMPOSSIBLE) {
      const value = number < 2 ** 32 ? number : { type: 6, values: [number] }
      const metadata = { 'general.architecture': 'llama', ...sound, [key]: value }
      const { model } = await modelOf({ name: 'm.gguf', source: ggufFile({ metadata, tensors }) })
      expect(noNumbersIn(model)).toEqual([])
    }
  }
  const huge = ggufFile({ tensors: [['a.weight', 0, [2 ** 40, 2 ** 40], 0]] })
  await expect(readGguf(chunks(huge))).rejects.toThrow('at most 2^53 elements')
})

test('only the header is read, and the source is closed', async () => {
  const { head, tensors, parameters } = layoutOf(presets.big)
  let [read, closed] = [0, false]
  async function* file() {
    try {
      for (; ; read += 1 << 16) {
        yield read < head.length ? head.slice(read, read + (1 << 16)) : new Uint8Array(1 << 16)
      }
    } finally {
      closed = true
    }
  }
  const header = await readGguf(file())
  expect(closed).toBe(true)
  expect(read).toBeLessThanOrEqual(head.length + (1 << 16))
  expect(header.tensors.map(({ name, bytes }) => [name, bytes])).toEqual(tensors.map(({ name, size }) => [name, size]))
  const { model } = await modelOf({ name: 'big.gguf', source: head })
  expect(model.parameters).toBe(parameters)
})

test('of a type that is not known, the size is the distance to the next tensor', async () => {
  const tensors = [
    ['a.weight', 99, [64], 0],
    ['b.weight', 0, [8], 96],
  ] as const
  const { tensors: found, unknownTypes } = await readGguf(chunks(ggufFile({ tensors })))
  expect(found.map(({ type, bytes }) => [type, bytes])).toEqual([
    ['type_99', 96],
    ['f32', 32],
  ])
  expect(unknownTypes).toEqual([99])
})

test('is recognised by its first bytes', () => {
  expect([isGguf(ggufFile({})), isGguf(new Uint8Array(4)), isGguf(new Uint8Array(0))]).toEqual([true, false, false])
})
