import { getOrMake } from '../../model/default-map.ts'
import type { NvtxGpuEvent } from '../../model/gpu-events.ts'
import type { Names } from '../../model/names.ts'
import type { OwnSliceEvent } from '../../model/own-events.ts'
import type { GpuFigures, GpuRange } from './figures.ts'
import type { NvtxLabels } from './nvtx-labels.ts'
import { boundedBy, restOf } from './tables.ts'

interface RangeSum {
  readonly name: number
  readonly kind: GpuRange['kind']
  count: number
  timeNs: number
  busyNs: number
  work: number
}

/** NVTX ranges and annotations that were projected onto the GPU, by name. */
export class ProjectedRanges {
  /** By kind and name. */
  private readonly sums = new Map<number, RangeSum>()

  constructor(
    private readonly names: Names,
    private readonly labels: NvtxLabels,
  ) {}

  nvtx({ name, domain, startNs, endNs, busyNs, launched }: NvtxGpuEvent): void {
    const sum = this.sumOf('nvtx', this.labels.of(domain, name))
    sum.count++
    sum.timeNs += endNs - startNs
    sum.busyNs += busyNs
    sum.work += launched
  }

  annotation({ name, startNs, endNs }: OwnSliceEvent): void {
    const sum = this.sumOf('annotation', name)
    sum.count++
    sum.timeNs += endNs - startNs
  }

  figures(): Pick<GpuFigures, 'ranges' | 'other_ranges'> {
    const { shown, rest } = boundedBy([...this.sums.values()])
    const ranges = shown.map(({ name, kind, count, timeNs, busyNs, work }): GpuRange => {
      const isNvtx = kind === 'nvtx'
      const text = this.names.text(name)
      return { name: text, kind, count, time_ns: timeNs, busy_ns: isNvtx ? busyNs : null, work: isNvtx ? work : null }
    })
    return { ranges, other_ranges: restOf(rest) }
  }

  private sumOf(kind: GpuRange['kind'], name: number): RangeSum {
    const key = 2 * name + Number(kind === 'nvtx')
    return getOrMake(this.sums, key, () => ({ name, kind, count: 0, timeNs: 0, busyNs: 0, work: 0 }))
  }
}
