import type { OperatorEvent } from '../../model/events.ts'
import type { TrackContext } from '../context.ts'
import { CounterLine } from '../counter-line.ts'

/** Common properties of all workers' counter tracks of one kind. */
interface LineSpec {
  /** From counts per nanosecond to drawn values. */
  readonly factor: number
  /** By worker, from the first value other than 0 on. */
  readonly lines: (CounterLine | undefined)[]
  /** Defines the track of a worker. */
  readonly add: (worker: number) => number
}

/** Counters of the group Faults and I/O. */
const FAULTS = new Set(['page-faults', 'minor-faults', 'major-faults', 'bytes-read'])
/** Counters that are drawn as rates: `ghz` and `cpu_share`. */
const IN_RATES = new Set(['cycles', 'task-clock'])
const PER = { count: ['per ms', 1e6], bytes: ['in MB/s', 1e3], ns: ['per ns', 1] } as const

/** Counts of operators as counter tracks: for each worker one per counter and one per rate. */
export class WorkerCounters {
  private readonly specs = new Map<string, LineSpec>()

  constructor(private readonly context: TrackContext) {}

  /** Were counters defined? */
  get areThere(): boolean {
    return this.context.counters.counters.length > 0
  }

  place({ worker, startNs, endNs, counts: counted }: OperatorEvent): void {
    const { counters: set } = this.context
    const durationNs = endNs - startNs
    if ((!counted && set.hasRates) || durationNs <= 0) return
    const counts = counted ?? []
    for (const { key, value } of set.rates(counts, durationNs)) {
      this.draw(this.specs.get(key) ?? this.addRate(key), worker, startNs, value)
    }
    set.counters.forEach(({ name, unit }, index) => {
      if (IN_RATES.has(name)) return
      const spec = this.specs.get(name) ?? this.addCounter(name, unit)
      this.draw(spec, worker, startNs, ((counts[index] ?? 0) * spec.factor) / durationNs)
    })
  }

  private draw(spec: LineSpec, worker: number, atNs: number, value: number): void {
    if (value === 0 && !spec.lines[worker]) return
    const line = spec.lines[worker] ?? new CounterLine(this.context.writer, spec.add(worker), 'full')
    spec.lines[worker] = line
    line.sample(atNs, value)
  }

  private addRate(rate: string): LineSpec {
    const nth = this.specs.size
    return this.add(rate, 1, (worker) => this.context.tracks.add('workerRate', { worker, nth, rate }))
  }

  private addCounter(counter: string, unit: keyof typeof PER): LineSpec {
    const [per, factor] = PER[unit]
    const nth = this.specs.size
    const key = FAULTS.has(counter) ? 'workerFaultCounter' : 'workerCounter'
    return this.add(counter, factor, (worker) => this.context.tracks.add(key, { worker, nth, counter, per }))
  }

  private add(key: string, factor: number, add: LineSpec['add']): LineSpec {
    const spec = { factor, lines: [], add }
    this.specs.set(key, spec)
    return spec
  }
}
