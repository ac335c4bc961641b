import type { RangeEvent } from '../../model/events.ts'
import type { NvtxGpuEvent } from '../../model/gpu-events.ts'
import type { NvtxEvent, NvtxNameEvent } from '../../model/nvtx-events.ts'
import type { TrackContext } from '../context.ts'
import { Domains } from './domains.ts'
import { NvtxOnGpu } from './on-gpu.ts'
import { Ranges } from './ranges.ts'

/** Draws the ranges and marks of a program, from NVTX or from its log. */
export class NvtxArea {
  private readonly ranges: Ranges
  private readonly domains: Domains
  private readonly onGpu: NvtxOnGpu

  constructor(context: TrackContext) {
    this.ranges = new Ranges(context)
    this.domains = new Domains(context)
    this.onGpu = new NvtxOnGpu(context)
  }

  take(event: RangeEvent | NvtxEvent | NvtxNameEvent | NvtxGpuEvent): void {
    switch (event.kind) {
      case 'range':
        return this.ranges.place(event)
      case 'nvtx':
        return this.domains.place(event)
      case 'nvtx-name':
        return this.domains.name(event)
      case 'nvtx-gpu':
        return this.onGpu.place(event)
    }
  }

  finish(): void {
    this.ranges.finish()
    this.domains.finish()
    this.onGpu.finish()
  }
}
