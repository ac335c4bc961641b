import type { Facts, GpuEvent } from '../../model/gpu-events.ts'
import type { Names } from '../../model/names.ts'
import { directionOf, memoryOf } from './classes.ts'
import type { GpuKind, GpuTransfer } from './figures.ts'

/** Copies of one direction between the same kinds of memory. */
export interface TransferSum {
  /** Its place among those of its device. */
  readonly index: number
  readonly direction: string
  readonly from: string
  readonly to: string
  count: number
  bytes: number
  timeNs: number
  unknownSizes: number
}

/** Copies and fills of a device, by direction and memory. */
export class TransferSums {
  private readonly sums = new Map<string, TransferSum>()
  private readonly bytesKey: number

  constructor(private readonly names: Names) {
    this.bytesKey = names.id('bytes')
  }

  add({ what, name, facts }: GpuEvent, durationNs: number): TransferSum {
    const text = this.names.text(name)
    const own = isList(facts) ? memoryOf(text) : ([textOf(facts['from']), textOf(facts['to'])] as const)
    const sum = this.sumOf(directionOf(what, text), own[0], own[1])
    sum.count++
    sum.timeNs += durationNs
    const bytes = this.bytesOf(facts)
    if (bytes === undefined) sum.unknownSizes++
    else sum.bytes += bytes
    return sum
  }

  /** Most bytes first. `exposedNs`: by index; undefined where only sums are known. */
  figures(exposedNs: readonly number[] | undefined): GpuTransfer[] {
    return [...this.sums.values()]
      .sort((a, b) => b.bytes - a.bytes || b.timeNs - a.timeNs)
      .map(({ index, direction, from, to, count, bytes, timeNs, unknownSizes }) => ({
        ...{
          direction,
          from,
          to,
          count,
          bytes,
          time_ns: timeNs,
          exposed_ns: exposedNs ? (exposedNs[index] ?? 0) : null,
        },
        gb_per_s: bytes > 0 && timeNs > 0 && unknownSizes === 0 ? bytes / timeNs : null,
        unknown_sizes: unknownSizes,
      }))
  }

  /** By direction, without their shares. */
  kinds(): Omit<GpuKind, 'share'>[] {
    const kinds = new Map<string, { kind: string; count: number; time_ns: number }>()
    for (const { direction, count, timeNs } of this.sums.values()) {
      const kind = direction === 'memset' ? direction : `memcpy ${direction}`
      const sum = kinds.get(kind) ?? { kind, count: 0, time_ns: 0 }
      sum.count += count
      sum.time_ns += timeNs
      kinds.set(kind, sum)
    }
    return [...kinds.values()]
  }

  private sumOf(direction: string, from: string, to: string): TransferSum {
    const key = `${direction} ${from} > ${to}`
    const known = this.sums.get(key)
    if (known) return known
    const made = { index: this.sums.size, direction, from, to, count: 0, bytes: 0, timeNs: 0, unknownSizes: 0 }
    this.sums.set(key, made)
    return made
  }

  /** The reports of nsys stats have megabytes only, rounded: not used. */
  private bytesOf(facts: Facts): number | undefined {
    if (!isList(facts)) return facts['bytes'] === undefined ? undefined : Number(facts['bytes'])
    const arg = facts.find(({ key }) => key === this.bytesKey)
    if (arg === undefined) return undefined
    const bytes = 'int' in arg ? arg.int : 'double' in arg ? arg.double : 'big' in arg ? Number(arg.big) : NaN
    return Number.isFinite(bytes) ? bytes : undefined
  }
}

const isList = (facts: Facts): facts is Extract<Facts, readonly unknown[]> => Array.isArray(facts)
const textOf = (value: unknown) => (typeof value === 'string' ? value : '')
