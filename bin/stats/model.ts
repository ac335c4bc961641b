import type { ContextFunction, ModelFigures, WeightGroup } from '../../lib/cli.ts'
import { count, percent, plural, size, threeDigits } from '../units.ts'
import { type CellsOf, number, type Section, type StatsTable, tableOf, text } from './section.ts'

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

const groupColumns = (model: ModelFigures): CellsOf<WeightGroup>[] => [
  number('tensors', ({ tensors }) => count(tensors)),
  number('parameters', ({ parameters }) => scaled(parameters)),
  number('bytes', (group) => bytes(group.bytes)),
  number('share', (group) => (group.bytes === null || !model.bytes ? '' : percent(group.bytes / model.bytes))),
]

const typeTable = (model: ModelFigures) =>
  tableOf(model.by_type, {}, [text('type', ({ type }) => type), ...groupColumns(model)])

function blockTable(model: ModelFigures): StatsTable {
  const perToken = new Map(model.decode.by_block.map((part) => [part.block, part]))
  return tableOf(model.by_block, {}, [
    text('block', ({ block }) => block),
    ...groupColumns(model),
    number('read per token', ({ block }) =>
      bytes(perToken.get(block)?.weight_bytes ?? (perToken.has(block) ? null : 0)),
    ),
    number('FLOP per token', ({ block }) => scaled(perToken.get(block)?.flop ?? 0)),
  ])
}

function contextTable(model: ModelFigures): StatsTable {
  const orNot = (value: number | null, text: (value: number) => string) => (value === null ? '?' : text(value))
  return tableOf(model.at, {}, [
    text('context', ({ context }) => count(context)),
    number('decode: bytes', ({ decode_bytes }) => bytes(decode_bytes)),
    number('FLOP', ({ decode_flop }) => orNot(decode_flop, scaled)),
    number('FLOP/byte', ({ decode_intensity }) => orNot(decode_intensity, threeDigits)),
    number('prefill: FLOP', ({ prefill_flop }) => orNot(prefill_flop, scaled)),
  ])
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
    ...fact('read by products', recorded === null ? null : bytes(recorded)),
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
