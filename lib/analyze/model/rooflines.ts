import { isCpuBackend, isOnHost } from '../../model/backends.ts'
import { DefaultMap } from '../../model/default-map.ts'
import { isQuantised } from '../../model/ggml-types.ts'
import { plus } from '../graph/work.ts'
import type { OperatorRow } from '../operators/figures.ts'
import type { CallWorkResult, WorkSum } from './call-work.ts'
import type { BackendPeaks, PeakFigures, Roofline } from './figures.ts'

/** An intensity within this factor of the ridge is limited by both. */
const NEAR = 1.5

/** What a measured speed is compared with; null: not known. */
interface Roof {
  readonly flopPerS: number | null
  readonly bytesPerS: number | null
  readonly threads?: number | null
}

/** Work and time of a {@link Roofline}. */
export interface Measured {
  readonly scope: Roofline['scope']
  readonly what: string
  readonly backend?: string | null
  readonly phase: Roofline['phase']
  readonly count: number
  readonly timeNs: number
  readonly flop: number
  /** -1: not known. */
  readonly bytes: number
  readonly bytesAreMax?: boolean
  readonly note?: string | undefined
}

/** Rooflines of phases, backends, NVTX ranges and operators (roles); those whose work or time is not known are left out. */
export function rooflinesOf(
  rows: readonly OperatorRow[],
  work: CallWorkResult,
  peaks: PeakFigures | undefined,
): Roofline[] {
  const isWhole = ({ flop, timeNs }: WorkSum | Measured) => flop >= 0 && timeNs > 0
  const roof = (rows: readonly OperatorRow[]) => roofOf(rows, ofWorkers(peaks, workersOf(rows)))
  const byPhase = work.phases
    .filter(isWhole)
    .map((sum) => rooflineOf({ scope: 'phase', ...sum }, roof(rows.filter(({ phase }) => phase === sum.phase))))
  const byRange = work.ranges.filter(isWhole).map((sum) => rooflineOf({ scope: 'range', ...sum }, roof(rows)))
  const hasBackends = rows.some(({ backend }) => !isCpuBackend(backend))
  const grouped = [
    ...(hasBackends ? groupsOf(rows, 'backend', ({ backend }) => ({ what: backend, backend })) : []),
    ...groupsOf(rows, 'operator', ({ role, op, backend }) => ({
      what: `${role} ${op}`.trim(),
      backend: hasBackends ? backend : null,
    })),
  ]
  const measured = grouped
    .filter(({ measured }) => isWhole(measured))
    .map(({ measured, rows }) => rooflineOf(measured, roof(rows)))
  const byTime = (a: Roofline, b: Roofline) => b.time_ns - a.time_ns
  const inScope = (scope: Roofline['scope']) => measured.filter((line) => line.scope === scope).sort(byTime)
  return [...byPhase.sort(byTime), ...inScope('backend'), ...byRange.sort(byTime), ...inScope('operator')]
}

/** Operators of a phase with the same title, of all layers, types and shapes. */
function groupsOf(
  all: readonly OperatorRow[],
  scope: Roofline['scope'],
  titleOf: (row: OperatorRow) => { readonly what: string; readonly backend: string | null },
): { measured: Measured; rows: OperatorRow[] }[] {
  const groups = new DefaultMap<string, OperatorRow[]>(() => [])
  for (const row of all) groups.of(JSON.stringify([titleOf(row), row.phase])).push(row)
  return [...groups.values()].map((rows) => {
    const total = (figureOf: (row: OperatorRow) => number) => rows.reduce((sum, row) => plus(sum, figureOf(row)), 0)
    const measured = {
      ...{ scope, ...titleOf(rows[0]!), phase: rows[0]!.phase },
      count: total(({ steps }) => steps),
      timeNs: total(({ wall_ns }) => wall_ns),
      flop: total(({ flop }) => flop),
      bytes: total(bytesOf),
      bytesAreMax: rows.some(({ bytes_are_max }) => bytes_are_max),
    }
    return { measured, rows }
  })
}

const bytesOf = ({ bytes_read, bytes_written }: OperatorRow) => plus(bytes_read, bytes_written)

/** The workers that computed rows; 0: none of the CPU. */
const workersOf = (rows: readonly OperatorRow[]) => Math.max(0, ...rows.map(({ workers }) => workers.length))

/** Peaks with the threads that a log's work has: fewer workers than CPUs cannot reach what all CPUs do. */
function ofWorkers(peaks: PeakFigures | undefined, workers: number): (PeakFigures & { threads?: number }) | undefined {
  const own = workers > 0 ? peaks?.by_threads?.find(({ threads }) => threads >= workers) : undefined
  return peaks && own ? { ...peaks, ...own } : peaks
}

/** The peaks that apply to rows: each FLOP at the rate of its weights' type, each byte at that of its backend. */
function roofOf(rows: readonly OperatorRow[], peaks: (PeakFigures & { threads?: number }) | undefined): Roof {
  if (!peaks) return { flopPerS: null, bytesPerS: null }
  const byBackend = rows.map(({ backend }) => peaksOfBackend(backend, peaks))
  const isOther = byBackend.some((backendPeaks) => backendPeaks.bytes_per_s !== peaks.bytes_per_s)
  return {
    flopPerS: peakOf(
      rows,
      (row) => flopPeakOf(row, peaks),
      peaks.flop_per_s,
      ({ flop }) => flop,
    ),
    threads: peaks.threads ?? null,
    bytesPerS: isOther ? peakOf(rows, (_, i) => byBackend[i]!.bytes_per_s, null, bytesOf) : peaks.bytes_per_s,
  }
}

/** Peaks that were measured are those of the CPU, published ones those of a GPU. */
function peaksOfBackend(backend: string, peaks: PeakFigures): BackendPeaks {
  const own = peaks.backends?.[backend]
  if (own) return own
  const isOther =
    peaks.origin === 'measured' ? !isOnHost(backend) : peaks.origin === 'known' && backend !== '' && isOnHost(backend)
  return isOther ? { flop_per_s: null, bytes_per_s: null } : peaks
}

function flopPeakOf({ type, backend }: OperatorRow, peaks: PeakFigures): number | null {
  const backendPeaks = peaksOfBackend(backend, peaks)
  const isInt8 =
    backendPeaks === peaks && peaks.int8_op_per_s !== null && isQuantised(type) && backend.startsWith('CPU')
  return isInt8 ? peaks.int8_op_per_s : backendPeaks.flop_per_s
}

/** The rate at which rows would do their work, each at its peak; `none` if they have no work, null if a peak is not known. */
function peakOf(
  rows: readonly OperatorRow[],
  rateOf: (row: OperatorRow, i: number) => number | null,
  none: number | null,
  workOf: (row: OperatorRow) => number,
): number | null {
  let [work, seconds] = [0, 0]
  for (const [i, row] of rows.entries()) {
    if (workOf(row) <= 0) continue
    const peak = rateOf(row, i)
    if (peak === null) return null
    work += workOf(row)
    seconds += workOf(row) / peak
  }
  return work > 0 ? work / seconds : none
}

/** A measured speed against a roof: attainable = min(peak FLOP/s, peak bytes/s × intensity). */
export function rooflineOf(
  measured: Measured,
  { flopPerS: peakFlop, bytesPerS: peakBytes, threads = null }: Roof,
): Roofline {
  const { scope, what, backend = null, phase, count, timeNs, flop, bytesAreMax = false } = measured
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
    backend,
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
    peak_threads: threads,
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
