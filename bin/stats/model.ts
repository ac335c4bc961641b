import type { ContextFunction, ModelFigures, WeightGroup } from '../../lib/cli.ts'
import { count, percent, plural, size, threeDigits } from '../units.ts'
import type { Section, StatsTable } from './section.ts'

type Fact = readonly [string, string]

const UNITS = ['', ' k', ' M', ' G', ' T', ' P']

/** `1.1 G`: a number of parameters or FLOP with three digits. */
export function scaled(value: number): string {
  const power = value < 1000 ? 0 : Math.min(Math.floor(Math.log10(value) / 3), UNITS.length - 1)
  return `${threeDigits(value / 1000 ** power)}${UNITS[power]}`
}

const bytes = (value: number | null) => (value === null ? '?' : size(value))

/** The model by itself: what it contains, and what a token costs. With tables where it was given, not only recorded. */
export function modelSections(model: ModelFigures): Section[] {
  const isGiven = model.source !== 'graph'
  const tables = isGiven ? [typeTable(model), blockTable(model)] : []
  return [
    { title: `model: ${titleOf(model)}`, facts: factsOf(model), tables },
    {
      title: 'a token of decode, n positions in the context',
      facts: costs(model),
      tables: isGiven ? [contextTable(model)] : [],
    },
  ]
}

const columns = (...titles: readonly string[]) => titles.map((title, i) => ({ title, isText: i === 0 }))

function groupCells(model: ModelFigures, { tensors, parameters, bytes: own }: WeightGroup): string[] {
  return [
    count(tensors),
    scaled(parameters),
    bytes(own),
    own === null || !model.bytes ? '' : percent(own / model.bytes),
  ]
}

function typeTable(model: ModelFigures): StatsTable {
  const rows = model.by_type.map((group) => [group.type, ...groupCells(model, group)])
  return { columns: columns('type', 'tensors', 'parameters', 'bytes', 'share'), rows }
}

function blockTable(model: ModelFigures): StatsTable {
  const perToken = new Map(model.decode.by_block.map((part) => [part.block, part]))
  const rows = model.by_block.map((group) => {
    const used = perToken.get(group.block)
    const read = used ? bytes(used.weight_bytes) : size(0)
    return [group.block, ...groupCells(model, group), read, scaled(used?.flop ?? 0)]
  })
  const titles = ['block', 'tensors', 'parameters', 'bytes', 'share', 'read per token', 'FLOP per token']
  return { columns: columns(...titles), rows }
}

function contextTable(model: ModelFigures): StatsTable {
  const known = (value: number | null, text: (value: number) => string) => (value === null ? '?' : text(value))
  const rows = model.at.map((at) => [
    count(at.context),
    bytes(at.decode_bytes),
    known(at.decode_flop, scaled),
    known(at.decode_intensity, threeDigits),
    known(at.prefill_flop, scaled),
  ])
  return { columns: columns('context', 'decode: bytes', 'FLOP', 'FLOP/byte', 'prefill: FLOP'), rows }
}

const ORIGINS = { gguf: 'GGUF', config: 'config.json', graph: 'recorded graph' } as const

function titleOf({ name, architecture, source }: ModelFigures): string {
  const names = [name, architecture].filter((text) => text !== null && text !== '')
  return [...names, `from its ${ORIGINS[source]}`].join(', ')
}

function factsOf(model: ModelFigures): Fact[] {
  const { parameters, active_parameters, layers, width, vocabulary, context_length, experts, experts_used } = model
  const heads = model.attention.map(
    ({ layers, heads, kv_heads, key_length, value_length, window }) =>
      `${plural(layers, 'layer')} of ${plural(heads, 'head')}, ${kv_heads} for keys and values, of ` +
      `${key_length === value_length ? key_length : `${key_length} and ${value_length}`} elements` +
      `${window > 0 ? `, the last ${plural(window, 'position')}` : ''}`,
  )
  const known = (value: number | null) => (value === null ? '?' : count(value))
  return [
    ['parameters', `${scaled(parameters)}, ${scaled(active_parameters)} for a token`],
    ['bytes', bytes(model.bytes)],
    ['layers', `${known(layers)}, embeddings of ${known(width)} ${width === 1 ? 'element' : 'elements'}`],
    ...heads.map((line): Fact => ['attention', line]),
    ...fact('experts', experts ? `${known(experts_used)} of ${known(experts)} for a token` : null),
    ['vocabulary', known(vocabulary)],
    ...fact('context', context_length === null ? null : count(context_length)),
  ]
}

/** A fact that is known, or none. */
const fact = (key: string, value: string | null): Fact[] => (value === null ? [] : [[key, value]])

function costs({ decode, activations, recorded_matmul_weight_bytes: recorded }: ModelFigures): Fact[] {
  const { weight_bytes, kv_cache, kv_read_bytes, kv_written_bytes, flop, is_head_tied } = decode
  const types = kv_cache && (kv_cache.k === kv_cache.v ? kv_cache.k : `${kv_cache.k} and ${kv_cache.v}`)
  const cache = `${types}${kv_cache?.is_assumed ? ', assumed' : ''}`
  return [
    ['weights read', `${bytes(weight_bytes)}${is_head_tied ? ', the embedding table as LM head included' : ''}`],
    ...fact('by products in the log', recorded === null ? null : bytes(recorded)),
    ...fact('KV cache read', kv_read_bytes && `${formula(kv_read_bytes, size)} (${cache})`),
    ...fact('KV cache written', kv_written_bytes === null ? null : size(kv_written_bytes)),
    ...fact('FLOP', flop && formula(flop, scaled)),
    ...fact('results of operators', activations && activationText(activations)),
  ]
}

function activationText({ bytes, peak_bytes }: NonNullable<ModelFigures['activations']>): string {
  return `${size(bytes)}${peak_bytes === null ? '' : `, at most ${size(peak_bytes)} at once`}`
}

/** `2.1 G + 1.2 k · n`. */
function formula({ constant, per_position, windows }: ContextFunction, unit: (value: number) => string): string {
  const parts = [
    ...(constant > 0 ? [unit(constant)] : []),
    ...(per_position > 0 ? [`${unit(per_position)} · n`] : []),
    ...windows.map(({ window, per_position }) => `${unit(per_position)} · min(n, ${window})`),
  ]
  return parts.join(' + ') || '0'
}
