import type { Readings } from './readings.ts'

/** A sampling pause: samples that are further apart than this many medians say nothing about the time between them. */
const PAUSE = 10

/** The power between two readings, one interval after the other. */
export interface Intervals {
  readonly count: number
  readonly starts: Float64Array
  readonly ends: Float64Array
  /** Power at the start and at the end; of a mean, both are it. In W. */
  readonly from: Float64Array
  readonly to: Float64Array
  /** Of samples: bounds of the power within, by the readings around it. Undefined where the energy of a whole interval is exact. */
  readonly bounds: { readonly low: Float64Array; readonly high: Float64Array } | undefined
  /** The most power of the log minus the least. In W. */
  readonly spread: number
  readonly method: 'totals' | 'means' | 'samples'
  /** Median length; null without intervals. */
  readonly medianNs: number | null
}

/** The intervals of a meter of power or energy. */
export function intervalsOf(readings: Readings): Intervals {
  const { meter, count: all, starts: began, ends: ended, values } = readings
  const isTotal = meter.what === 'energy'
  const areMeans = !isTotal && all > 1 && began[all - 1]! < ended[all - 1]!
  const [starts, ends, from, to] = [0, 1, 2, 3].map(() => new Float64Array(all)) as [
    Float64Array,
    Float64Array,
    Float64Array,
    Float64Array,
  ]
  let count = 0
  for (let i = 0; i < all; i++) {
    if (i === 0 && began[i] === ended[i]) continue
    const startNs = areMeans ? began[i]! : ended[i - 1]!
    const watts = isTotal ? ((values[i]! - values[i - 1]!) * 1e9) / (ended[i]! - startNs) : values[i]!
    // A total that decreases was reset: the energy in between is not known.
    if (ended[i]! <= startNs || (isTotal && watts < 0)) continue
    starts[count] = startNs
    ends[count] = ended[i]!
    from[count] = isTotal || areMeans ? watts : values[i - 1]!
    to[count++] = watts
  }
  const medianNs = median(starts, ends, count)
  const isExact = (isTotal || areMeans) && meter.windowNs === 0
  if (!isExact && medianNs !== null) count = withoutPauses({ starts, ends, from, to }, count, PAUSE * medianNs)
  const method = isTotal ? 'totals' : areMeans && meter.windowNs === 0 ? 'means' : 'samples'
  const columns = { starts, ends, from, to }
  const bounds = isExact ? undefined : boundsOf(columns, count, meter.windowNs)
  return { count, ...columns, bounds, spread: spreadOf(to.subarray(0, count)), method, medianNs }
}

type Columns = Readonly<Record<'starts' | 'ends' | 'from' | 'to', Float64Array>>

function withoutPauses({ starts, ends, from, to }: Columns, count: number, maxNs: number): number {
  let kept = 0
  for (let i = 0; i < count; i++) {
    if (ends[i]! - starts[i]! > maxNs) continue
    for (const column of [starts, ends, from, to]) column[kept] = column[i]!
    kept++
  }
  return kept
}

/** The least and the most power within each interval: that of the readings in it and within `windowNs`. */
function boundsOf({ starts, ends, from, to }: Columns, count: number, windowNs: number) {
  const [low, high] = [new Float64Array(count), new Float64Array(count)]
  for (let i = 0, first = 0; i < count; i++) {
    while (ends[first]! <= starts[i]! - windowNs) first++
    let [least, most] = [Infinity, 0]
    for (let j = first; j < count && starts[j]! < ends[i]! + windowNs; j++) {
      least = Math.min(least, from[j]!, to[j]!)
      most = Math.max(most, from[j]!, to[j]!)
    }
    low[i] = Math.max(least, 0)
    high[i] = most
  }
  return { low, high }
}

/** The most power of the log minus the least. */
function spreadOf(watts: Float64Array): number {
  const least = watts.reduce((a, b) => Math.min(a, b), Infinity)
  return Math.max(watts.reduce((a, b) => Math.max(a, b), 0) - least, 0)
}

function median(starts: Float64Array, ends: Float64Array, count: number): number | null {
  if (count === 0) return null
  const lengths = ends
    .slice(0, count)
    .map((end, i) => end - starts[i]!)
    .sort()
  return lengths[count >> 1]!
}
