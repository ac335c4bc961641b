/**
 * Writes a model with random weights for whisper.cpp, in its own format (whisper.cpp: whisper_model_load), and a second of noise as a
 * WAV file: node test/llama/whisper-model.mjs MODEL WAV
 */
import { writeFile } from 'node:fs/promises'

const hyper = {
  vocabulary: 51864,
  audioContext: 1500,
  audioState: 64,
  audioHeads: 2,
  audioLayers: 4,
  textContext: 64,
  textState: 64,
  textHeads: 2,
  textLayers: 3,
  mels: 80,
  type: 0, // F32
}
const FFT_BINS = 201

/** A simple generator: the same weights everywhere. */
let state = 1
const random = () => {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0
  return state / 2 ** 32 - 0.5
}

const i32 = (...numbers) => Buffer.from(Int32Array.from(numbers).buffer)
const f32 = (count, make) => Buffer.from(Float32Array.from({ length: count }, make).buffer)

const tensor = (name, ne, make = () => random() * 0.2) => [
  i32(ne.length, name.length, 0, ...ne),
  Buffer.from(name),
  f32(
    ne.reduce((product, n) => product * n, 1),
    make,
  ),
]
const norm = (name, n) => [...tensor(`${name}.weight`, [n], () => 1), ...tensor(`${name}.bias`, [n], () => 0)]
const linear = (name, from, to, hasBias = true) => [
  ...tensor(`${name}.weight`, [from, to]),
  ...(hasBias ? tensor(`${name}.bias`, [to]) : []),
]
const attention = (name, n) => [
  ...linear(`${name}.query`, n, n),
  ...linear(`${name}.key`, n, n, false),
  ...linear(`${name}.value`, n, n),
  ...linear(`${name}.out`, n, n),
]
const block = (name, n, crosses) => [
  ...norm(`${name}.mlp_ln`, n),
  ...linear(`${name}.mlp.0`, n, 4 * n),
  ...linear(`${name}.mlp.2`, 4 * n, n),
  ...norm(`${name}.attn_ln`, n),
  ...attention(`${name}.attn`, n),
  ...(crosses ? [...norm(`${name}.cross_attn_ln`, n), ...attention(`${name}.cross_attn`, n)] : []),
]
const each = (count, make) => Array.from({ length: count }, (_, i) => make(i)).flat()

const model = () => {
  const { vocabulary, audioContext, audioState, audioLayers, textContext, textState, textLayers, mels } = hyper
  const words = each(vocabulary, (i) => {
    const word = Buffer.from(i === 220 ? ' ' : ` w${i}`)
    return [i32(word.length), word]
  })
  return Buffer.concat([
    i32(0x67676d6c, ...Object.values(hyper)),
    i32(mels, FFT_BINS),
    f32(mels * FFT_BINS, () => random() * 0.1 + 0.05),
    i32(vocabulary),
    ...words,
    ...tensor('encoder.positional_embedding', [audioState, audioContext]),
    ...tensor('encoder.conv1.weight', [3, mels, audioState]),
    ...tensor('encoder.conv1.bias', [1, audioState]),
    ...tensor('encoder.conv2.weight', [3, audioState, audioState]),
    ...tensor('encoder.conv2.bias', [1, audioState]),
    ...norm('encoder.ln_post', audioState),
    ...each(audioLayers, (i) => block(`encoder.blocks.${i}`, audioState, false)),
    ...tensor('decoder.positional_embedding', [textState, textContext]),
    ...tensor('decoder.token_embedding.weight', [textState, vocabulary]),
    ...norm('decoder.ln', textState),
    ...each(textLayers, (i) => block(`decoder.blocks.${i}`, textState, true)),
  ])
}

const RATE = 16_000

const wav = () => {
  const header = Buffer.alloc(44)
  header.write('RIFF', 0)
  header.writeUInt32LE(36 + 2 * RATE, 4)
  header.write('WAVEfmt ', 8)
  header.writeUInt32LE(16, 16)
  header.writeUInt16LE(1, 20) // PCM
  header.writeUInt16LE(1, 22) // channels
  header.writeUInt32LE(RATE, 24)
  header.writeUInt32LE(2 * RATE, 28)
  header.writeUInt16LE(2, 32)
  header.writeUInt16LE(16, 34)
  header.write('data', 36)
  header.writeUInt32LE(2 * RATE, 40)
  return Buffer.concat([header, Buffer.from(Int16Array.from({ length: RATE }, () => random() * 20_000).buffer)])
}

const [modelPath, wavPath] = process.argv.slice(2)
await writeFile(modelPath, model())
await writeFile(wavPath, wav())
