import type { Analysis } from '../../lib/cli.ts'
import { count, percent, plural, size, threeDigits } from '../units.ts'
import { type Column, firstRows, more, type Section, type StatsTable } from './section.ts'

type Memory = NonNullable<Analysis['memory']>
type Buffer = Memory['buffers'][number]
type Faults = NonNullable<Memory['page_faults']>[number]
type Fact = readonly [string, string]

/** Rows of a table; tensors of a peak, parts of weights, caches and types of buffers that are named. */
const ROWS_MAX = 8
const NAMED_MAX = 4
const CACHES_MAX = 4
const TYPES_MAX = 2

const USAGES = { weights: 'weights', 'kv-cache': 'KV cache', compute: 'compute buffer', other: 'buffer' } as const

const text = (title: string): Column => ({ title, isText: true })
const numbers = (...titles: readonly string[]): Column[] => titles.map((title) => ({ title }))
const known = <T>(value: T | null | undefined, textOf: (value: T) => string) =>
  value === null || value === undefined ? '' : textOf(value)

/** What the buffers contain, what is read, and what was allocated. */
export function memorySection({ memory }: Analysis): Section | undefined {
  if (!memory) return undefined
  const { buffers, kv_caches, allocations, weights_read, page_faults } = memory
  const facts: Fact[] = [
    ...buffers.flatMap(peakOf),
    ...kv_caches.slice(0, CACHES_MAX).flatMap(cacheFacts),
    ...(allocations ? [['allocated', allocatedText(allocations)] as const] : []),
  ]
  const tables = [
    bufferTable(memory),
    ...buffers.flatMap(liveTable).slice(0, 1),
    weightsTable(weights_read),
    ...faultTables(page_faults ?? []),
  ]
  const shown = tables.filter(({ rows }) => rows.length > 0)
  return facts.length + shown.length === 0 ? undefined : { title: 'memory', facts, tables: shown }
}

const titleOf = ({ usage, name }: Buffer) => (name === '' ? USAGES[usage] : `${USAGES[usage]} (${name})`)

function bufferTable({ buffers, further_buffers }: Memory): StatsTable {
  const { shown, rest } = firstRows(buffers, ROWS_MAX)
  const rows = shown.map((figures) => [
    titleOf(figures),
    known(figures.size_bytes, size),
    count(figures.tensors),
    known(figures.tensor_bytes, size),
    known(figures.arena?.peak_live_bytes, size),
    known(figures.arena?.peak_share, percent),
    known(figures.arena?.mean_live_bytes, size),
    known(figures.arena?.last_live_bytes, size),
    known(figures.arena?.reuse, (reuse) => `${threeDigits(reuse)} ×`),
    known(figures.arena?.writes_per_offset, threeDigits),
  ])
  const left = rest.length + further_buffers
  const titles = ['size', 'tensors', 'their bytes', 'peak live', 'share', 'mean live', 'at the end', 'reuse']
  const columns = [text('buffer'), ...numbers(...titles), { title: 'writes per offset', rank: 2 }]
  if (left > 0) rows.push(columns.map((_, i) => (i === 0 ? `${count(left)} more` : '')))
  return { columns, rows }
}

/** When the buffer has most live bytes. */
function peakOf(figures: Buffer): Fact[] {
  if (!figures.arena) return []
  const { call, phase, tensor, op } = figures.arena.peak
  const where = call < 0 ? 'in no call' : `in call ${call}`
  return [[`peak of the ${titleOf(figures)}`, `${where} (${phase})${tensor === '' ? '' : `, at ${tensor} ${op}`}`]]
}

/** What lives then. */
function liveTable(figures: Buffer): StatsTable[] {
  if (!figures.arena) return []
  const { live, further_tensors, further_bytes } = figures.arena.peak
  const { shown, rest } = firstRows(live, NAMED_MAX)
  const rows = shown.map((tensor) => [
    tensor.tensor || '(unnamed)',
    tensor.op,
    size(tensor.bytes),
    count(tensor.offset),
    tensor.last_reader,
  ])
  const left = rest.length + further_tensors
  const leftBytes = rest.reduce((sum, { bytes }) => sum + bytes, further_bytes)
  if (left > 0) rows.push([`${count(left)} more`, '', size(leftBytes), '', ''])
  const titles = [text(`live at the peak of the ${titleOf(figures)}`), text('op'), ...numbers('bytes', 'offset')]
  return [{ columns: [...titles, text('last reader')], rows }]
}

function cacheFacts(figures: Memory['kv_caches'][number]): Fact[] {
  const { capacity_cells: cells, bytes_per_token, peak_cells, peak_bytes, peak_share, by_phase } = figures
  const used = cells === null ? plural(peak_cells, 'cell') : `${count(peak_cells)} of ${plural(cells, 'cell')}`
  const bytes = [known(peak_bytes, size), known(peak_share, percent)].filter(Boolean).join(', ')
  const perToken = bytes_per_token === null ? '' : `${size(bytes_per_token)} a token; `
  const growth = by_phase.map(
    ({ phase, growth_cells, used_cells }) =>
      `${phase} ${threeDigits(growth_cells)} cell${growth_cells === 1 ? '' : 's'} a call, to ${count(used_cells)}`,
  )
  return [
    ['KV cache (inferred)', `${perToken}at the most ${used}${bytes === '' ? '' : ` (${bytes})`}`],
    ['its growth', growth.join('; ')],
  ]
}

function allocatedText({ peak_bytes, by_type }: NonNullable<Memory['allocations']>): string {
  const { shown, rest } = firstRows(by_type, TYPES_MAX)
  const types = shown.map(
    ({ name, peak_bytes, earlier_bytes }) =>
      `${name || '(unnamed)'} ${size(peak_bytes)}${earlier_bytes > 0 ? ` (${size(earlier_bytes)} before the log begins)` : ''}`,
  )
  return `${size(peak_bytes)} at the most: ${[...types, ...(rest.length > 0 ? [more(rest)] : [])].join(', ')}`
}

function weightsTable(read: Memory['weights_read']): StatsTable {
  const shown = read.filter(({ bytes }) => bytes !== null)
  const shares = (parts: readonly { readonly bytes: number }[], all: number, name: (i: number) => string) =>
    firstRows(parts, NAMED_MAX)
      .shown.map(({ bytes }, i) => `${name(i)} ${percent(bytes / all)}`)
      .join(', ')
  const rows = shown.map(({ phase, bytes, bytes_per_token, bytes_per_call, bytes_are_max, by_type, by_block }) => [
    phase,
    `${bytes_are_max ? '≤ ' : ''}${known(bytes_per_token, size)}`,
    known(bytes_per_call, size),
    shares(by_block, bytes!, (i) => by_block[i]!.block),
    shares(by_type, bytes!, (i) => by_type[i]!.type || '?'),
  ])
  return {
    columns: [
      text('weights read'),
      ...numbers('per token', 'per call'),
      text('by block'),
      { ...text('by type'), rank: 1 },
    ],
    rows,
  }
}

function faultTables(phases: readonly Faults[]): StatsTable[] {
  const titles = ['major', 'minor', 'major and minor', 'read from disks']
  const cells = ({ major_faults, minor_faults, page_faults, read_bytes }: Faults['further']) => [
    ...[major_faults, minor_faults, page_faults].map((value) => known(value, count)),
    known(read_bytes, size),
  ]
  const roles = phases.flatMap(({ phase, by_role }) =>
    by_role.map((faults) => [`${faults.role} ${faults.op}`.trim() || '(unnamed)', phase, ...cells(faults)]),
  )
  return [
    {
      columns: [text('page faults'), ...numbers(...titles)],
      rows: phases.map((phase) => [phase.phase, ...cells(phase)]),
    },
    {
      columns: [text('page faults by operator'), text('phase'), ...numbers(...titles)],
      rows: roles.slice(0, ROWS_MAX),
    },
  ]
}
