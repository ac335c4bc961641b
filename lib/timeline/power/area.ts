import { DefaultMap } from '../../model/default-map.ts'
import type { MeterEvent, PowerEvent, ReadingEvent } from '../../model/events.ts'
import type { Unit } from '../../sink/track.ts'
import type { TrackContext } from '../context.ts'

/** A meter, and what was drawn of it. */
interface Row {
  readonly meter: MeterEvent
  /** Number among the meters of its device. */
  readonly nth: number
  /** 0 until its first value. */
  track: number
  /** The last reading of a total. */
  before: ReadingEvent | undefined
}

const UNITS: Readonly<Record<MeterEvent['unit'], Unit>> = {
  W: 'W',
  J: 'J',
  Hz: 'Hz',
  '%': '%',
  '°C': '°C',
  bytes: 'bytes',
  'B/s': 'B/s',
  share: '%',
  count: 'count',
}

/** Draws meters of power, clocks and utilization: a group of counters for each device. Totals of energy are drawn as power. */
export class PowerArea {
  private readonly rows: Row[] = []
  private readonly meters = new DefaultMap<number, { count: number }>(() => ({ count: 0 }))
  private readonly devices: DefaultMap<number, { readonly nth: number; readonly group: number }> = new DefaultMap(
    (device) => {
      const nth = this.devices.size
      return { nth, group: this.context.tracks.add('power', { nth, device: this.context.names.text(device) }) }
    },
  )

  constructor(private readonly context: TrackContext) {}

  take(event: PowerEvent): void {
    if (event.kind === 'meter') this.define(event)
    else this.draw(event)
  }

  private define(meter: MeterEvent): void {
    const nth = this.meters.of(meter.device).count++
    this.rows[meter.id] = { meter, nth, track: 0, before: undefined }
  }

  private draw(event: ReadingEvent): void {
    const row = this.rows[event.meter]
    if (!row) return
    const { meter, before } = row
    const { startNs, endNs, value } = event
    if (meter.what !== 'energy') return this.sample(row, startNs, meter.unit === 'share' ? 100 * value : value)
    row.before = event
    if (before && endNs > before.endNs)
      this.sample(row, before.endNs, ((value - before.value) * 1e9) / (endNs - before.endNs))
  }

  private sample(row: Row, atNs: number, value: number): void {
    if (row.track === 0) row.track = this.add(row)
    this.context.writer.counter(row.track, atNs, value)
  }

  private add({ meter, nth }: Row): number {
    const { names, tracks } = this.context
    const name = names.text(meter.name)
    const isTotal = meter.what === 'energy'
    const device = this.devices.of(meter.device)
    const subject = {
      ...{ nth, device: names.text(meter.device), group: device.nth },
      name: isTotal ? `power (from ${name})` : name,
      unit: isTotal ? ('W' as const) : UNITS[meter.unit],
      about: aboutMeter(meter, name),
    }
    return tracks.add('meter', subject, 0, device.group)
  }
}

/** How a meter measures, for the description of its track. */
function aboutMeter({ what, windowNs, isPart }: MeterEvent, name: string): string {
  const parts = [
    what === 'energy'
      ? `Mean power between two readings of the total energy ${name}: a value lasts from one reading to the next.`
      : `${name}, as reported: a value lasts until the next reading, or since the one before where it is a mean.`,
    ...(windowNs > 0
      ? [
          `A reading is a mean over the ${windowNs / 1e9} s before it, or its time is known only to that: edges are late.`,
        ]
      : []),
    ...(isPart ? ['Another row of the device contains it.'] : []),
  ]
  return parts.join(' ')
}
