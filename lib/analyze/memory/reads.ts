import type { ModelBlock } from '../../model/blocks.ts'
import { DefaultMap } from '../../model/default-map.ts'
import type { Phase } from '../../model/events.ts'
import { plus } from '../graph/work.ts'
import type { WorkSum } from '../model/call-work.ts'
import type { OperatorRow } from '../operators/figures.ts'
import type { FaultCounts, PageFaults, RoleFaults, WeightsRead } from './figures.ts'

/** Roles whose page faults are listed. */
const ROLES_MAX = 8

/** Weights read by the operators of phases. */
export function weightsRead(rows: readonly OperatorRow[], phases: readonly WorkSum[]): WeightsRead[] {
  return phases.map(({ what, count: calls, tokens }) => {
    const operatorRows = rows.filter((row) => row.phase === what)
    const bytes = operatorRows.reduce((sum, { weight_bytes }) => plus(sum, weight_bytes), 0)
    const isKnown = bytes > 0 // operators of a model read weights: none of them is known as one
    return {
      phase: what as Phase,
      calls,
      tokens: tokens < 0 ? null : tokens,
      bytes: isKnown ? bytes : null,
      bytes_per_call: isKnown ? bytes / calls : null,
      bytes_per_token: isKnown && tokens > 0 ? bytes / tokens : null,
      bytes_are_max: operatorRows.some(({ bytes_are_max }) => bytes_are_max),
      by_type: sumsBy(operatorRows, 'type'),
      by_block: sumsBy(operatorRows, 'block') as { block: ModelBlock; bytes: number }[],
    }
  })
}

/** Bytes of the weights with the same value of a key, most first; rows whose bytes are not known are left out. */
function sumsBy<K extends 'type' | 'block'>(
  rows: readonly OperatorRow[],
  key: K,
): ({ bytes: number } & Record<K, string>)[] {
  const sums = new DefaultMap<string, { bytes: number }>(() => ({ bytes: 0 }))
  for (const row of rows) if (row.weight_bytes > 0) sums.of(row[key]).bytes += row.weight_bytes
  return [...sums]
    .map(([value, { bytes }]) => ({ [key]: value, bytes }) as { bytes: number } & Record<K, string>)
    .sort((a, b) => b.bytes - a.bytes)
}

/** Names of counters in rows of operators. */
const KEYS = {
  minor_faults: 'minor_faults',
  major_faults: 'major_faults',
  page_faults: 'page_faults',
  read_bytes: 'bytes_read',
} as const satisfies Record<keyof FaultCounts, string>
type Key = keyof typeof KEYS
const FIELDS = Object.keys(KEYS) as Key[]

/** Page faults of operators, by phase and role; null where the log has no such counter. */
export function pageFaultsOf(rows: readonly OperatorRow[]): PageFaults[] | null {
  const counted = FIELDS.filter((field) => rows.some(({ counters }) => counters[KEYS[field]] !== undefined))
  // Bytes read from disks alone do not say how many faults there were.
  if (counted.every((field) => field === 'read_bytes')) return null
  return [...new Set(rows.map(({ phase }) => phase))].map((phase) => {
    const roles = new DefaultMap<string, RoleFaults[]>(() => [])
    for (const row of rows)
      if (row.phase === phase)
        roles.of(JSON.stringify([row.role, row.op])).push({ role: row.role, op: row.op, ...countsOf(row, counted) })
    const sums = [...roles.values()]
      .map((role): RoleFaults => ({ role: role[0]!.role, op: role[0]!.op, ...sumOf(role, counted) }))
      .filter((faults) => FIELDS.some((field) => (faults[field] ?? 0) > 0))
      .sort((a, b) => weight(b) - weight(a))
    const rest = sums.slice(ROLES_MAX)
    return { phase, ...sumOf(sums, counted), by_role: sums.slice(0, ROLES_MAX), further: sumOf(rest, counted) }
  })
}

/** A major fault waits for a disk, 1 000 times as long as a minor one takes. */
const weight = ({ major_faults, minor_faults, page_faults }: FaultCounts) =>
  1000 * (major_faults ?? 0) + (minor_faults ?? page_faults ?? 0)

const countsOf = ({ counters }: OperatorRow, counted: readonly Key[]) =>
  eachField((field) => (counted.includes(field) ? (counters[KEYS[field]] ?? 0) : null))

const sumOf = (all: readonly FaultCounts[], counted: readonly Key[]) =>
  eachField((field) => (counted.includes(field) ? all.reduce((sum, counts) => sum + (counts[field] ?? 0), 0) : null))

const eachField = (figureOf: (field: Key) => number | null): FaultCounts => ({
  minor_faults: figureOf('minor_faults'),
  major_faults: figureOf('major_faults'),
  page_faults: figureOf('page_faults'),
  read_bytes: figureOf('read_bytes'),
})
