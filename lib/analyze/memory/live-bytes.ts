import { getOrMake } from '../../model/default-map.ts'
import type { Phase } from '../../model/events.ts'
import type { Defined } from '../graph/defined.ts'
import type { RunColumns } from '../graph/runs.ts'
import type { LivePeak } from '../memory/figures.ts'
import type { LiveSample, LiveSeries, MemorySeries } from '../series/figures.ts'

/** Samples of a buffer at most. */
export const SAMPLES_MAX = 1 << 16

interface Collected {
  readonly samples: LiveSample[]
  leftOut: number
  peak: number
  at: LivePeak | undefined
}

/** Collects the live bytes of compute buffers over the graph runs of one call. */
export class LiveBytes {
  private readonly buffers = new Map<number, Collected>()

  constructor(
    private readonly call: number,
    private readonly phase: Phase | 'none',
    private readonly defined: Defined,
  ) {}

  /** Adds samples of a buffer in one graph run. `index`: number of the run in the call. */
  sample(buffer: number, run: RunColumns, index: number, atNs: number, bytes: number, step: number): void {
    const collected = this.of(buffer)
    if (collected.samples.length >= SAMPLES_MAX) {
      collected.leftOut++
      return
    }
    const { tensors, names } = this.defined
    const tensor = step < 0 ? '' : names.text(tensors[run.last[step]!]!.name)
    collected.samples.push({ at_ns: atNs, live_bytes: bytes, run: index, step, tensor })
  }

  /** Adds the peak of a buffer in one graph run; `make` describes it. */
  peak(buffer: number, bytes: number, make: () => LivePeak): void {
    const collected = this.of(buffer)
    if (bytes <= collected.peak) return
    collected.peak = bytes
    collected.at = make()
  }

  private of(buffer: number): Collected {
    return getOrMake(this.buffers, buffer, () => ({ samples: [], leftOut: 0, peak: -1, at: undefined }))
  }

  /** `firstNs`: time of the first event. */
  finish(firstNs: number): MemorySeries {
    const { call, phase } = this
    const buffers = [...this.buffers].map(([id, { samples, leftOut, at }]): LiveSeries => {
      const { name = 0, label, sizeBytes } = this.defined.buffers.get(id)!
      return {
        ...{ name: this.defined.names.text(name), label, size_bytes: sizeBytes ?? null },
        samples: samples.map((sample) => ({ ...sample, at_ns: sample.at_ns - firstNs })),
        left_out: leftOut,
        peak: { ...at!, at_ns: at!.at_ns - firstNs },
      }
    })
    return { call, phase, samples_max: SAMPLES_MAX, buffers }
  }
}
