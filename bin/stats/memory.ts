import type { Analysis } from '../../lib/cli.ts'
import { count, percent, plural, size, threeDigits } from '../units.ts'
import {
  type CellsOf,
  firstRows,
  known,
  more,
  number,
  type Section,
  type StatsTable,
  tableOf,
  text,
} from './section.ts'

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
  return tableOf(buffers, { max: ROWS_MAX, further: further_buffers }, [
    text('buffer', titleOf),
    number('size', ({ size_bytes }) => known(size_bytes, size)),
    number('tensors', ({ tensors }) => count(tensors)),
    number('their bytes', ({ tensor_bytes }) => known(tensor_bytes, size)),
    number('peak live', ({ arena }) => known(arena?.peak_live_bytes, size)),
    number('share', ({ arena }) => known(arena?.peak_share, percent)),
    number('mean live', ({ arena }) => known(arena?.mean_live_bytes, size)),
    number('at the end', ({ arena }) => known(arena?.last_live_bytes, size)),
    number('reuse', ({ arena }) => known(arena?.reuse, (reuse) => `${threeDigits(reuse)} ×`)),
    number('writes per offset', ({ arena }) => known(arena?.writes_per_offset, threeDigits), 2),
  ])
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
  const rest = (rest: typeof live) => {
    const bytes = rest.reduce((sum, { bytes }) => sum + bytes, further_bytes)
    return [`${count(rest.length + further_tensors)} more`, '', size(bytes)]
  }
  return [
    tableOf(live, { max: NAMED_MAX, further: further_tensors, rest }, [
      text(`live at the peak of the ${titleOf(figures)}`, ({ tensor }) => tensor || '(unnamed)'),
      text('op', ({ op }) => op),
      number('bytes', ({ bytes }) => size(bytes)),
      number('offset', ({ offset }) => count(offset)),
      text('last reader', ({ last_reader }) => last_reader),
    ]),
  ]
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
  const shares = (parts: readonly { readonly bytes: number }[], all: number, name: (i: number) => string) =>
    firstRows(parts, NAMED_MAX)
      .shown.map(({ bytes }, i) => `${name(i)} ${percent(bytes / all)}`)
      .join(', ')
  const shown = read.filter(({ bytes }) => bytes !== null)
  return tableOf(shown, {}, [
    text('weights read', ({ phase }) => phase),
    number(
      'per token',
      ({ bytes_per_token, bytes_are_max }) => `${bytes_are_max ? '≤ ' : ''}${known(bytes_per_token, size)}`,
    ),
    number('per call', ({ bytes_per_call }) => known(bytes_per_call, size)),
    text('by block', ({ bytes, by_block }) => shares(by_block, bytes!, (i) => by_block[i]!.block)),
    text('by type', ({ bytes, by_type }) => shares(by_type, bytes!, (i) => by_type[i]!.type || '?'), 1),
  ])
}

function faultTables(phases: readonly Faults[]): StatsTable[] {
  const figures: readonly CellsOf<Faults['further']>[] = [
    number('major', ({ major_faults }) => known(major_faults, count)),
    number('minor', ({ minor_faults }) => known(minor_faults, count)),
    number('major and minor', ({ page_faults }) => known(page_faults, count)),
    number('read from disks', ({ read_bytes }) => known(read_bytes, size)),
  ]
  const roles = phases.flatMap(({ phase, by_role }) => by_role.map((faults) => ({ phase, ...faults })))
  return [
    tableOf(phases, {}, [text('page faults', ({ phase }) => phase), ...figures]),
    tableOf(roles.slice(0, ROWS_MAX), {}, [
      text('page faults by operator', ({ role, op }) => `${role} ${op}`.trim() || '(unnamed)'),
      text('phase', ({ phase }) => phase),
      ...figures,
    ]),
  ]
}
