import { DefaultMap } from '../../model/default-map.ts'
import { isQuantised } from '../../model/ggml-types.ts'
import type { OperatorRow } from '../analysis.ts'
import { plus } from '../graph/work.ts'
import type { CallWorkResult, WorkSum } from './call-work.ts'
import type { PeakFigures, Roofline } from './roofline-types.ts'

/** An intensity within this factor of the ridge is limited by both. */
const NEAR = 1.5

/** What a measured speed is compared with; null: not known. */
interface Roof {
  readonly flopPerS: number | null
  readonly bytesPerS: number | null
}

/** Work and time of a {@link Roofline}. */
export interface Measured {
  readonly scope: Roofline['scope']
  readonly what: string
  readonly phase: Roofline['phase']
  readonly count: number
  readonly timeNs: number
  readonly flop: number
  /** -1: not known. */
  readonly bytes: number
  readonly bytesAreMax?: boolean
  readonly note?: string | undefined
}

/** Rooflines of phases, NVTX ranges and operators (roles); those whose work or time is not known are left out. */
export function rooflinesOf(
  rows: readonly OperatorRow[],
  work: CallWorkResult,
  peaks: PeakFigures | undefined,
): Roofline[] {
  const isWhole = ({ flop, timeNs }: WorkSum | Measured) => flop >= 0 && timeNs > 0
  const roofOf = (of: readonly OperatorRow[]): Roof => ({
    flopPerS: peaks ? peakOf(of, peaks) : null,
    bytesPerS: peaks?.bytes_per_s ?? null,
  })
  const byPhase = work.phases
    .filter(isWhole)
    .map((sum) => rooflineOf({ scope: 'phase', ...sum }, roofOf(rows.filter(({ phase }) => phase === sum.phase))))
  const byRange = work.ranges.filter(isWhole).map((sum) => rooflineOf({ scope: 'range', ...sum }, roofOf(rows)))
  const byRole = roles(rows)
    .filter(({ measured }) => isWhole(measured))
    .map(({ measured, rows }) => rooflineOf(measured, roofOf(rows)))
  const byTime = (a: Roofline, b: Roofline) => b.time_ns - a.time_ns
  return [...byPhase.sort(byTime), ...byRange.sort(byTime), ...byRole.sort(byTime)]
}

/** Operators of one role and op in a phase, of all layers, types and shapes. */
function roles(rows: readonly OperatorRow[]): { measured: Measured; rows: OperatorRow[] }[] {
  const groups = new DefaultMap<string, OperatorRow[]>(() => [])
  for (const row of rows) groups.of(JSON.stringify([row.role, row.op, row.phase])).push(row)
  return [...groups.values()].map((rows) => {
    const { role, op, phase } = rows[0]!
    const total = (of: (row: OperatorRow) => number) => rows.reduce((sum, row) => plus(sum, of(row)), 0)
    const measured = {
      scope: 'operator' as const,
      what: `${role} ${op}`.trim(),
      phase,
      count: total(({ steps }) => steps),
      timeNs: total(({ wall_ns }) => wall_ns),
      flop: total(({ flop }) => flop),
      bytes: plus(
        total(({ bytes_read }) => bytes_read),
        total(({ bytes_written }) => bytes_written),
      ),
      bytesAreMax: rows.some(({ bytes_are_max }) => bytes_are_max),
    }
    return { measured, rows }
  })
}

/** The peak that applies to rows: each FLOP at the rate of its weights' type. */
function peakOf(rows: readonly OperatorRow[], { flop_per_s, int8_op_per_s }: PeakFigures): number | null {
  let [flop, seconds] = [0, 0]
  for (const row of rows) {
    if (row.flop <= 0) continue
    const isInt8 = int8_op_per_s !== null && isQuantised(row.type) && row.backend.startsWith('CPU')
    const peak = isInt8 ? int8_op_per_s : flop_per_s
    if (peak === null) return null
    flop += row.flop
    seconds += row.flop / peak
  }
  return flop > 0 ? flop / seconds : flop_per_s
}

/** A measured speed against a roof: attainable = min(peak FLOP/s, peak bytes/s × intensity). */
export function rooflineOf(measured: Measured, { flopPerS: peakFlop, bytesPerS: peakBytes }: Roof): Roofline {
  const { scope, what, phase, count, timeNs, flop, bytesAreMax = false } = measured
  const bytes = measured.bytes < 0 ? null : measured.bytes
  const seconds = timeNs / 1e9
  const flopPerS = flop / seconds
  const bytesPerS = bytes === null ? null : bytes / seconds
  const intensity = bytes ? flop / bytes : null
  const ridge = peakFlop !== null && peakBytes !== null ? peakFlop / peakBytes : null
  const attainable = ridge === null || intensity === null ? null : Math.min(peakFlop!, peakBytes! * intensity)
  const mfu = peakFlop === null ? null : flopPerS / peakFlop
  const mbu = peakBytes === null || bytesPerS === null ? null : bytesPerS / peakBytes
  const margin = ridge === null || intensity === null ? null : intensity / ridge
  return {
    scope,
    what,
    phase,
    count,
    time_ns: timeNs,
    flop,
    bytes,
    bytes_are_max: bytesAreMax,
    flop_per_s: flopPerS,
    bytes_per_s: bytesPerS,
    intensity,
    peak_flop_per_s: peakFlop,
    peak_bytes_per_s: peakBytes,
    ridge,
    attainable_flop_per_s: attainable,
    mfu_share: mfu,
    mbu_share: mbu,
    roof_share: mfu === null || mbu === null ? null : Math.max(mfu, mbu),
    bound: margin === null ? null : margin < 1 / NEAR ? 'memory' : margin > NEAR ? 'compute' : 'near the ridge',
    margin,
    note: noteOf(measured, mfu, mbu),
  }
}

function noteOf({ bytesAreMax, note }: Measured, mfu: number | null, mbu: number | null): string | null {
  const notes = note === undefined ? [] : [note]
  if (bytesAreMax) notes.push('bytes are an upper bound: which experts were chosen was not recorded')
  if (mbu !== null && mbu > 1) {
    notes.push("more bytes than the peak allows: they came from a CPU's or GPU's cache in part, or the peak is too low")
  }
  if (mfu !== null && mfu > 1) {
    notes.push('more FLOP than the peak allows: the peak is too low, or of another type of numbers')
  }
  return notes.length > 0 ? notes.join('; ') : null
}
