/** Draws what a trial compares: a run, and the same with a change. The same seed draws the same. */
import { randomOf } from '../random.mjs'

/** Shapes of models. All have widths of whole blocks of 256, for types such as q4_K. */
const MODELS = {
  '15M': { layers: 6, width: 256, feedForward: 1024, heads: 4, kvHeads: 4, vocabulary: 16_384 },
  '40M': { layers: 8, width: 512, feedForward: 1536, heads: 8, kvHeads: 4, vocabulary: 8192 },
  '110M': { layers: 12, width: 768, feedForward: 2048, heads: 12, kvHeads: 4, vocabulary: 16_384 },
  '300M': { layers: 12, width: 1280, feedForward: 3584, heads: 20, kvHeads: 4, vocabulary: 16_384 },
  '1.1B': { layers: 22, width: 2048, feedForward: 5632, heads: 32, kvHeads: 4, vocabulary: 32_000 },
}
/** With experts, of which a token uses some. */
const MODELS_OF_EXPERTS = {
  '40M of experts': { layers: 6, width: 512, feedForward: 512, heads: 8, kvHeads: 4, vocabulary: 8192, experts: 8 },
  '130M of experts': { layers: 8, width: 768, feedForward: 768, heads: 12, kvHeads: 4, vocabulary: 8192, experts: 8 },
}
const TYPES = ['Q4_0', 'Q4_K', 'Q5_K', 'Q6_K', 'Q8_0', 'F16']
/** ggml's names. */
export const nameOf = (type) => type.toLowerCase().replace('_k', '_K')

const KINDS = ['threads', 'type', 'context', 'batch', 'hog', 'experts', 'threads and type', 'threads and batch']

/** The nth trial of a seed. */
export function draw(seed, number) {
  const random = randomOf(seed * 1000 + number)
  const one = (list) => list[Math.floor(random() * list.length)]
  const kind = KINDS[number % KINDS.length]
  const size = one(Object.keys(kind === 'experts' ? MODELS_OF_EXPERTS : MODELS))
  const type = one(TYPES)
  const threads = one([1, 2])
  const isBatch = kind.includes('batch')
  const before = {
    ...{ size, type, threads, parallel: isBatch ? one([1, 1, 2, 4]) : 1 },
    prompt: isBatch ? one([32, 64]) : one([64, 128, 256]),
    decode: kind === 'context' ? 128 : 48,
    hog: kind === 'hog',
    ...(kind === 'experts' ? { experts: one([1, 2, 4]) } : {}),
  }
  const after = { ...before, hog: false }
  const changes = {}
  if (kind.includes('threads')) changes.threads = after.threads = 3 - threads
  if (kind.includes('type')) {
    after.type = one(TYPES.filter((other) => other !== type))
    changes.type = nameOf(after.type)
  }
  if (kind === 'context') changes.context = after.prompt = before.prompt * one([2, 4, 8])
  if (isBatch) changes.batch = after.parallel = one([1, 2, 4, 8, 16].filter((count) => count !== before.parallel))
  if (kind === 'experts') changes.experts = after.experts = one([1, 2, 4].filter((count) => count !== before.experts))
  if (kind === 'hog') changes.without = ['preempted']
  return { seed, number, kind, before, after, changes }
}

/** The model of a side, as test/llama/gguf.mjs makes it. */
export const modelOf = ({ size, type, experts }) => ({
  ...{ name: size, ...(MODELS[size] ?? MODELS_OF_EXPERTS[size]), context: 8192, weights: type },
  ...(experts === undefined ? {} : { expertsUsed: experts }),
})

/** Such as `40M Q4_0, 1 thread, prompt 64, 4 sequences`. */
export const sideText = ({ size, type, threads, prompt, parallel, hog, experts }) =>
  [
    `${size} ${type}`,
    `${threads} thread${threads === 1 ? '' : 's'}`,
    `prompt ${prompt}`,
    ...(parallel > 1 ? [`${parallel} sequences`] : []),
    ...(experts === undefined ? [] : [`${experts} experts of a token`]),
    ...(hog ? ['a hog'] : []),
  ].join(', ')
