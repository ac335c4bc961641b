import type { Clock, ClocksEvent, InputEvent, TraceEvent } from '../../model/events.ts'

/**
 * Within one boot, REALTIME minus another clock changes by less than this between the readings of two inputs: NTP slews it by at
 * most 500 ppm (10 s in 5 h) and steps it by about a second at most. Another boot differs by at least the uptime of the first.
 * 10 s.
 */
const WALL_NS_MAX = 10_000_000_000n
/** Best first: BOOTTIME counts while the machine is suspended, as REALTIME does; the others stop. */
const COUNTERS: readonly Clock[] = ['BOOTTIME', 'MONOTONIC', 'MONOTONIC_RAW']

/** Were two inputs recorded in one boot? */
export interface Comparison {
  readonly boot: 'same' | 'other' | 'unknown'
  /** The reason, in words. */
  readonly why: string
}

/** Facts about the boot in which an input was recorded. All clocks of the kernel except REALTIME start again with each boot. */
export class Boot {
  private readonly id: string | undefined
  private readonly kernel: string | undefined
  /** REALTIME minus each clock. */
  private readonly walls = new Map<Clock, bigint>()

  constructor(
    readonly name: string,
    { attributes }: InputEvent,
  ) {
    const { boot_id: id, kernel, kernel_release: release = kernel } = attributes
    this.id = id === undefined ? undefined : String(id)
    this.kernel = release === undefined ? undefined : String(release)
  }

  /** Keeps the first readings of clocks. */
  see(batch: readonly TraceEvent[]): void {
    for (const event of batch) if (event.kind === 'clocks') this.addReadings(event)
  }

  /** Is `other` of the same boot? */
  compare(other: Boot): Comparison {
    const differs = (what: string, own: string, its: string): Comparison => {
      return { boot: 'other', why: `${what} ${own}, that of ${other.name} is ${its}` }
    }
    if (this.id !== undefined && other.id !== undefined) {
      if (this.id !== other.id) return differs('its boot id is', this.id, other.id)
      return { boot: 'same', why: 'of the same boot' }
    }
    if (this.kernel !== undefined && other.kernel !== undefined && this.kernel !== other.kernel) {
      return differs('its kernel is', this.kernel, other.kernel)
    }
    const clock = COUNTERS.find((counter) => this.walls.has(counter) && other.walls.has(counter))
    if (!clock) return { boot: 'unknown', why: 'by its name, not checked' }
    const apartNs = this.walls.get(clock)! - other.walls.get(clock)!
    if (apartNs < WALL_NS_MAX && apartNs > -WALL_NS_MAX) return { boot: 'same', why: 'and REALTIME agrees' }
    const by = `${(Math.abs(Number(apartNs)) / 1e9).toFixed(0)} s`
    const why = `at the same CLOCK_${clock}, its CLOCK_REALTIME is ${by} ${apartNs < 0n ? 'behind' : 'ahead of'} that of ${other.name}`
    return { boot: 'other', why }
  }

  private addReadings({ readings }: ClocksEvent): void {
    const wall = readings.find(({ clock }) => clock === 'REALTIME')
    if (!wall) return
    for (const { clock, ns } of readings) if (!this.walls.has(clock)) this.walls.set(clock, wall.ns - ns)
  }
}
