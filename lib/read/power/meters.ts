import type { MeterEvent, MeterKind, MeterUnit } from '../../model/events.ts'
import { METER_MAX } from '../../model/limits.ts'
import type { Names } from '../../model/names.ts'
import type { EventBatch } from '../common/batches.ts'

/** What a column of a tool's output is. */
export interface Figure {
  readonly what: MeterKind
  readonly unit: MeterUnit
  /** From the number in the text to the unit; 1 by default. */
  readonly factor?: number
  /** See {@link MeterEvent.windowNs}; 0 by default. */
  readonly windowNs?: number
  /** The value is a mean since the reading before. */
  readonly isMean?: boolean
  readonly isPart?: boolean
}

/** A meter of the input. */
export interface Meter {
  readonly id: number
  readonly figure: Figure
  /** End of its last reading; before the first, `-Infinity`. */
  lastNs: number
}

/** The meters of an input, by device and name; each is defined before its first reading. */
export class Meters {
  readonly all: Meter[] = []
  private readonly byKey = new Map<string, Meter>()
  private readonly ofDevices = new Set<string>()

  constructor(
    private readonly names: Names,
    private readonly batch: EventBatch,
  ) {}

  /** Number of devices with meters. */
  get devices(): number {
    return this.ofDevices.size
  }

  /** The meter of a figure; undefined where there are too many. `resolutionNs`: of the times of its readings. */
  of(device: string, name: string, figure: Figure, resolutionNs: number): Meter | undefined {
    const key = `${device}\n${name}`
    const known = this.byKey.get(key)
    if (known || this.all.length > METER_MAX) return known
    const meter = { id: this.all.length, figure, lastNs: -Infinity }
    this.all.push(meter)
    this.byKey.set(key, meter)
    this.ofDevices.add(device)
    const { what, unit, windowNs = 0, isPart = false } = figure
    const ids = { device: this.names.id(device), name: this.names.id(name) }
    const coarse = resolutionNs > FINE_NS ? resolutionNs : 0
    const event: MeterEvent = { kind: 'meter', id: meter.id, ...ids, what, unit, windowNs: windowNs + coarse, isPart }
    this.batch.add(event)
    return meter
  }
}

/** Times to a finer resolution are exact enough: tools write the time some milliseconds after they read. */
const FINE_NS = 1e7
