/**
 * Writes GGUF v3 models with random weights: no download, any size, the same bytes for the same spec. They decode as fast as a real
 * model of that shape and say nothing of sense. Of the `llama` architecture, dense or mixture of experts, of `qwen2`, which adds
 * biases to Q, K and V, or of `t5`, which has an encoder.
 *
 * Plain JavaScript, so that `make-model.mjs` and the README's demo run without a TypeScript step; types in gguf.d.mts.
 */
import { createHash, randomUUID } from 'node:crypto'
import { chmod, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { bitsOf } from '../../scripts/random.mjs'
import { cacheFolder, makeForAll } from '../cache.cjs'

/** Raise it when the bytes of a model change: the cached files carry it in their names. */
const FORMAT = 1
const ALIGNMENT = 32
const POOL_BLOCKS = 65_521 // a prime: no two rows or experts of a tensor come out equal

/** Of T5's positions. */
const RELATIVE_BUCKETS = 32

/** ggml's type number, elements of a block, bytes of a block. */
const TYPES = {
  ...{ F32: [0, 1, 4], F16: [1, 1, 2], Q4_0: [2, 32, 18], Q8_0: [8, 32, 34], TQ2_0: [35, 256, 66] },
  ...{ Q4_K: [12, 256, 144], Q5_K: [13, 256, 176], Q6_K: [14, 256, 210] },
}

export const presets = {
  tinyDense: { layers: 8, width: 512, feedForward: 1408, heads: 8, kvHeads: 4, vocabulary: 2048, context: 2048 },
  tinyMoe: {
    layers: 6,
    width: 512,
    feedForward: 768,
    heads: 8,
    kvHeads: 4,
    vocabulary: 2048,
    context: 2048,
    experts: 8,
    expertsUsed: 2,
  },
  /** In float32: rounding is too small to change what is sampled, however a server batches its requests. */
  exact: {
    ...{ layers: 4, width: 128, feedForward: 256, heads: 4, kvHeads: 2, vocabulary: 1400, context: 4096 },
    weights: 'F32',
  },
  tinyQwen2: {
    ...{ architecture: 'qwen2', layers: 8, width: 512, feedForward: 1408, heads: 8, kvHeads: 4, vocabulary: 2048 },
    context: 2048,
  },
  /** An encoder and a decoder. */
  tinyT5: {
    ...{ architecture: 't5', layers: 4, width: 512, feedForward: 1024, heads: 8, kvHeads: 8, vocabulary: 2048 },
    context: 512,
  },
  big: { layers: 22, width: 2048, feedForward: 5632, heads: 32, kvHeads: 4, vocabulary: 32_000, context: 2048 },
}

const seedOf = (...parts) => createHash('sha256').update(parts.join('\0')).digest().readUInt32LE()

/** A positive normal number as a half float, rounded down. */
const halfOf = (value) => {
  const exponent = Math.floor(Math.log2(value))
  return ((exponent + 15) << 10) | Math.floor((value / 2 ** exponent - 1) * 1024)
}

const u32 = (value) => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}

const u64 = (value) => {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(BigInt(value))
  return bytes
}

const f32 = (value) => {
  const bytes = Buffer.alloc(4)
  bytes.writeFloatLE(value)
  return bytes
}

const text = (value) => Buffer.concat([u64(Buffer.byteLength(value)), Buffer.from(value)])

/** GGUF's value types: number and encoder. */
const VALUES = { u32: [4, u32], i32: [5, u32], f32: [6, f32], text: [8, text] }

const pair = (key, type, value) => Buffer.concat([text(key), u32(VALUES[type][0]), VALUES[type][1](value)])

const list = (key, type, values) =>
  Buffer.concat([text(key), u32(9), u32(VALUES[type][0]), u64(values.length), ...values.map(VALUES[type][1])])

/** What llama.cpp's SentencePiece vocabulary wants: three special tokens, the 256 bytes, then words. */
const vocabularyOf = (count) => {
  const bytes = Array.from({ length: 256 }, (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`)
  const special = ['<unk>', '<s>', '</s>']
  const words = Array.from({ length: count - special.length - bytes.length }, (_, index) => `\u2581w${index}`)
  return [
    list('tokenizer.ggml.tokens', 'text', [...special, ...bytes, ...words]),
    list('tokenizer.ggml.scores', 'f32', [...[...special, ...bytes].map(() => 0), ...words.map((_, index) => -index)]),
    list('tokenizer.ggml.token_type', 'i32', [2, 3, 3, ...bytes.map(() => 6), ...words.map(() => 1)]),
  ]
}

const metadataOf = (spec, { architecture = 'llama' } = spec) => [
  pair('general.architecture', 'text', architecture),
  pair('general.name', 'text', spec.name ?? 'random'),
  pair('general.file_type', 'u32', { F32: 0, F16: 1 }[spec.weights] ?? 2), // all F32, mostly F16, mostly Q4_0
  pair('general.quantization_version', 'u32', 2),
  pair('general.alignment', 'u32', ALIGNMENT),
  pair(`${architecture}.block_count`, 'u32', spec.layers),
  pair(`${architecture}.context_length`, 'u32', spec.context),
  pair(`${architecture}.embedding_length`, 'u32', spec.width),
  pair(`${architecture}.feed_forward_length`, 'u32', spec.feedForward),
  pair(`${architecture}.attention.head_count`, 'u32', spec.heads),
  pair(`${architecture}.attention.head_count_kv`, 'u32', spec.kvHeads),
  pair(`${architecture}.attention.layer_norm_rms_epsilon`, 'f32', 1e-5),
  pair(`${architecture}.rope.dimension_count`, 'u32', spec.width / spec.heads),
  pair(`${architecture}.rope.freq_base`, 'f32', 10_000),
  pair(`${architecture}.vocab_size`, 'u32', spec.vocabulary),
  ...(spec.experts
    ? [
        pair(`${architecture}.expert_count`, 'u32', spec.experts),
        pair(`${architecture}.expert_used_count`, 'u32', spec.expertsUsed),
      ]
    : []),
  ...(architecture === 't5'
    ? [
        pair('t5.attention.layer_norm_epsilon', 'f32', 1e-6),
        pair('t5.attention.relative_buckets_count', 'u32', RELATIVE_BUCKETS),
        pair('t5.decoder_start_token_id', 'u32', 1),
      ]
    : []),
  pair('tokenizer.ggml.model', 'text', 'llama'),
  ...vocabularyOf(spec.vocabulary),
  pair('tokenizer.ggml.bos_token_id', 'u32', 1),
  pair('tokenizer.ggml.eos_token_id', 'u32', 2),
  pair('tokenizer.ggml.unknown_token_id', 'u32', 0),
]

/** Of a T5: its encoder, then its decoder, whose attention has a second part for the encoder's output. */
const shapesOfT5 = ({ layers, width, feedForward, heads, vocabulary, weights = 'Q4_0' }) => {
  const attention = (name) => [
    [`${name}_norm.weight`, 'F32', [width]],
    ...['q', 'k', 'v', 'o'].map((part) => [`${name}_${part}.weight`, weights, [width, width]]),
  ]
  const layer = (block, isFirst, parts) => [
    ...parts.flatMap((part) => attention(`${block}.${part}`)),
    ...(isFirst ? [[`${block}.attn_rel_b.weight`, 'F32', [heads, RELATIVE_BUCKETS]]] : []),
    [`${block}.ffn_norm.weight`, 'F32', [width]],
    [`${block}.ffn_up.weight`, weights, [width, feedForward]],
    [`${block}.ffn_down.weight`, weights, [feedForward, width]],
  ]
  const stack = (name, parts) => [
    ...Array.from({ length: layers }, (_, i) => layer(`${name}.blk.${i}`, i === 0, parts)).flat(),
    [`${name}.output_norm.weight`, 'F32', [width]],
  ]
  return [
    ['token_embd.weight', weights, [width, vocabulary]],
    ...stack('enc', ['attn']),
    ...stack('dec', ['attn', 'cross_attn']),
    ['output.weight', weights, [width, vocabulary]],
  ]
}

/** Name, type and shape of every tensor; the first number of a shape counts the elements of a row. */
const shapesOf = (spec) => {
  if (spec.architecture === 't5') return shapesOfT5(spec)
  const { width, feedForward, experts, weights = 'Q4_0' } = spec
  const kvWidth = (width / spec.heads) * spec.kvHeads
  const layer = (number) => {
    const of = (name, type, ...shape) => {
      return [`blk.${number}.${name}.weight`, spec.types?.[name] ?? type, shape]
    }
    return [
      of('attn_norm', 'F32', width),
      of('attn_q', weights, width, width),
      of('attn_k', weights, width, kvWidth),
      of('attn_v', weights, width, kvWidth),
      ...(spec.architecture === 'qwen2'
        ? [
            [`blk.${number}.attn_q.bias`, 'F32', [width]],
            [`blk.${number}.attn_k.bias`, 'F32', [kvWidth]],
            [`blk.${number}.attn_v.bias`, 'F32', [kvWidth]],
          ]
        : []),
      of('attn_output', weights, width, width),
      of('ffn_norm', 'F32', width),
      ...(experts
        ? [
            of('ffn_gate_inp', 'F32', width, experts),
            of('ffn_gate_exps', weights, width, feedForward, experts),
            of('ffn_up_exps', weights, width, feedForward, experts),
            of('ffn_down_exps', weights, feedForward, width, experts),
          ]
        : [
            of('ffn_gate', weights, width, feedForward),
            of('ffn_up', weights, width, feedForward),
            of('ffn_down', weights, feedForward, width),
          ]),
    ]
  }
  return [
    ['token_embd.weight', weights, [width, spec.vocabulary]],
    ...Array.from({ length: spec.layers }, (_, number) => layer(number)).flat(),
    ['output_norm.weight', 'F32', [width]],
    ['output.weight', weights, [width, spec.vocabulary]],
  ]
}

const padded = (bytes) => Math.ceil(bytes / ALIGNMENT) * ALIGNMENT

/** The head of the file and where each tensor lies, counted from the start of the file. */
export const layoutOf = (spec) => {
  const metadata = metadataOf(spec)
  const infos = []
  let offset = 0
  const tensors = shapesOf(spec).map(([name, type, shape]) => {
    const [number, elements, bytes] = TYPES[type]
    const count = shape.reduce((product, length) => product * length, 1)
    const tensor = { name, type, shape, offset, size: (count / elements) * bytes }
    infos.push(text(name), u32(shape.length), ...shape.map(u64), u32(number), u64(offset))
    offset += padded(tensor.size)
    return tensor
  })
  const head = [Buffer.from('GGUF'), u32(3), u64(tensors.length), u64(metadata.length), ...metadata, ...infos]
  const length = head.reduce((sum, part) => sum + part.length, 0)
  const start = padded(length)
  return {
    head: Buffer.concat([...head, Buffer.alloc(start - length)]),
    tensors: tensors.map((tensor) => ({ ...tensor, offset: start + tensor.offset })),
    parameters: tensors.reduce((sum, { shape }) => sum + shape.reduce((product, length) => product * length, 1), 0),
    size: start + offset,
  }
}

/** Eight random weights of -7…7: a nibble of 0 would be -8, and a mean below zero makes all tokens decode alike. */
const nibbles = (word) => {
  const zeros = ~(word | (word >>> 1) | (word >>> 2) | (word >>> 3)) & 0x11111111
  return (word | (zeros << 3)) >>> 0
}

/** The spread of the weights of a block, before its scale. */
const SPREAD = { Q4_0: 4.2, Q8_0: 74, TQ2_0: 0.9, Q4_K: 250, Q5_K: 500, Q6_K: 1350 }
/** Half floats of a block: its scale, and what its minimum is multiplied by, as a part of that, which makes the mean about zero. */
const HALVES = {
  TQ2_0: [[64, 1]],
  Q6_K: [[208, 1]],
  Q4_K: [
    [0, 1],
    [2, 7.5],
  ],
  Q5_K: [
    [0, 1],
    [2, 15.5],
  ],
}

/** Random half floats for rows of this length. */
const halvesFor = (rowLength, seed) => {
  const random = bitsOf(seedOf('pool', rowLength, seed))
  const pool = Buffer.alloc(POOL_BLOCKS * TYPES.F16[2])
  const largest = Math.sqrt(3 / rowLength)
  for (let at = 0; at < pool.length; at += 2) {
    const word = random()
    const size = Math.max(2 ** -14, (largest * (word >>> 1)) / 2 ** 31) // a normal number
    pool.writeUInt16LE(halfOf(size) | ((word & 1) << 15), at)
  }
  return pool
}

/** Random blocks for rows of this length, scaled so that products of rows have a spread of about one. */
const poolFor = (type, rowLength, seed) => {
  if (type === 'F16') return halvesFor(rowLength, seed)
  const random = bitsOf(seedOf('pool', rowLength, seed))
  const [, , bytes] = TYPES[type]
  const pool = Buffer.alloc(POOL_BLOCKS * bytes)
  const scale = 1 / (SPREAD[type] * Math.sqrt(rowLength))
  const weights = type === 'Q4_0' ? () => nibbles(random()) : random
  for (let at = 0; at < pool.length; at += bytes) {
    const halves = HALVES[type] ?? [[0, 1]]
    const ofWeights = halves[0][0] === 0 ? 2 * halves.length : 0
    const own = Math.max(scale * (0.5 + random() / 2 ** 32), 2 ** -14) // a normal number
    for (let word = 0; word < bytes - 2 * halves.length; word += 4) pool.writeUInt32LE(weights(), at + ofWeights + word)
    for (const [place, factor] of halves) pool.writeUInt16LE(halfOf(own * factor), at + place)
  }
  return pool
}

const isMatrix = (shape) => shape.length > 1

const floatsOf = ({ name, size, shape }, seed) => {
  const bytes = Buffer.alloc(size)
  const random = bitsOf(seedOf(name, seed))
  const isNorm = name.endsWith('_norm.weight')
  // Products of rows have a spread of about one. A router's need some units, or all experts would weigh about the same.
  const largest = isMatrix(shape) && !name.includes('ffn_gate_inp') ? Math.sqrt(3) : 4
  for (let at = 0; at < size; at += 4)
    bytes.writeFloatLE(isNorm ? 1 : ((random() / 2 ** 31 - 1) * largest) / Math.sqrt(shape[0]), at)
  return bytes
}

/** The bytes of one tensor, in chunks: the pool over and over, from a place that the tensor's name decides. */
function* chunksOf(tensor, pool, seed) {
  if (tensor.type === 'F32') return yield floatsOf(tensor, seed)
  let from = (seedOf('start', tensor.name, seed) % POOL_BLOCKS) * (pool.length / POOL_BLOCKS)
  for (let left = tensor.size; left > 0; ) {
    const length = Math.min(left, pool.length - from)
    yield pool.subarray(from, from + length)
    from = 0
    left -= length
  }
}

function* bytesOf(spec, { head, tensors }) {
  const seed = spec.seed ?? 1
  const pools = new Map()
  yield head
  for (const tensor of tensors) {
    const rowLength = tensor.shape[0]
    const key = `${tensor.type} ${rowLength}`
    if (tensor.type !== 'F32' && !pools.has(key)) pools.set(key, poolFor(tensor.type, rowLength, seed))
    yield* chunksOf(tensor, pools.get(key), seed)
    yield Buffer.alloc(padded(tensor.size) - tensor.size)
  }
}

const checked = (spec) => {
  const wrong = (what) => {
    throw new Error(`not a model: ${what}`)
  }
  for (const key of ['width', 'feedForward']) if (spec[key] % 32) wrong(`${key} ${spec[key]} is no multiple of 32`)
  if (spec.width % spec.heads || (spec.width / spec.heads) % 2) wrong(`${spec.heads} heads do not divide ${spec.width}`)
  if (spec.heads % spec.kvHeads) wrong(`${spec.kvHeads} kvHeads do not divide ${spec.heads} heads`)
  if (spec.vocabulary < 260) wrong(`vocabulary ${spec.vocabulary} is under 260`)
  if (spec.experts && !(spec.expertsUsed >= 1 && spec.expertsUsed <= spec.experts)) wrong(`expertsUsed`)
  return spec
}

const specOf = (preset) => {
  if (typeof preset !== 'string') return checked(preset)
  if (presets[preset]) return checked({ name: preset, ...presets[preset] })
  throw new Error(`no preset '${preset}': ${Object.keys(presets).join(', ')}`)
}

/** Writes the model; the file appears under its name when it is whole. */
export const writeModel = async (preset, path) => {
  const spec = specOf(preset)
  const layout = layoutOf(spec)
  const temporary = `${path}.${randomUUID()}.tmp`
  makeForAll(dirname(path))
  try {
    await writeFile(temporary, bytesOf(spec, layout))
    await chmod(temporary, 0o644) // for other users, whatever the umask is
    await rename(temporary, path)
  } finally {
    await rm(temporary, { force: true })
  }
  const { tensors, parameters, size } = layout
  return { path, spec, tensors, parameters, size }
}

/** The model from the cache in the temporary folder, written there first where it is missing. */
export const cachedModel = async (preset, folder = cacheFolder('models')) => {
  const spec = specOf(preset)
  const hash = createHash('sha256')
    .update(JSON.stringify([FORMAT, spec]))
    .digest('hex')
    .slice(0, 16)
  const path = join(folder, `${hash}.gguf`)
  const { tensors, parameters, size } = layoutOf(spec)
  const found = await stat(path).catch(() => undefined)
  if (found?.size === size) return { path, spec, tensors, parameters, size }
  return await writeModel(spec, path)
}
