import type { CounterSet } from '../../model/counters.ts'
import type { OperatorEvent } from '../../model/events.ts'
import type { LazyGroup, TrackTree } from '../tracks.ts'

/** A graph of one worker, and what it shows now. */
interface Line {
  /** 0 until there is something to show. */
  track: number
  value: number
}

/** What all workers' graphs of one kind have in common. */
interface LineSpec {
  readonly title: string
  readonly description: string
  readonly group: LazyGroup
  /** From what was counted in one nanosecond to what is shown. */
  readonly factor: number
  readonly rank: number
  readonly lines: (Line | undefined)[]
}

/** Counters of the group Faults and I/O. */
const FAULTS = new Set(['page-faults', 'minor-faults', 'major-faults', 'bytes-read'])
/** What the rates say better: as `ghz` and `cpu_share`. */
const IN_RATES = new Set(['cycles', 'task-clock'])
const PER = { count: ['per ms', 1e6], bytes: ['in MB/s', 1e3], ns: ['per ns', 1] } as const
const WORKERS_RANK = 64

/** What was counted, as graphs: of each worker one for each counter and for each rate. */
export class CounterLines {
  private readonly specs = new Map<string, LineSpec>()

  constructor(
    private readonly tree: TrackTree,
    private readonly faults: LazyGroup,
    private readonly rates: LazyGroup,
    private readonly set: CounterSet,
  ) {}

  place({ worker, startNs, endNs, counts: counted }: OperatorEvent): void {
    const { set } = this
    if (!counted && set.hasRates) return
    const counts = counted ?? []
    const durationNs = endNs - startNs
    if (set.counters.length === 0 || durationNs <= 0) return
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
    let line = spec.lines[worker]
    if (!line) {
      line = { track: 0, value: 0 }
      spec.lines[worker] = line
    }
    if (line.value === value) return
    if (line.track === 0) line.track = this.addLine(spec, worker)
    line.value = value
    this.tree.writer.counter(line.track, atNs, value)
  }

  private addRate(key: string): LineSpec {
    return this.add(
      key,
      key,
      this.rates,
      `${key} of each operator: what it is worked out of are arguments of the operator.`,
      1,
    )
  }

  private addCounter(name: string, unit: keyof typeof PER): LineSpec {
    const [per, factor] = PER[unit]
    const description = `What ${name} counted on the worker's thread in each operator, ${per} of computing.`
    return this.add(name, `${name} ${per}`, FAULTS.has(name) ? this.faults : this.rates, description, factor)
  }

  private add(key: string, title: string, group: LazyGroup, description: string, factor: number): LineSpec {
    const spec: LineSpec = { title, description, group, factor, rank: this.specs.size, lines: [] }
    this.specs.set(key, spec)
    return spec
  }

  private addLine({ group, title, description, rank }: LineSpec, worker: number): number {
    const name = `worker ${worker}: ${title}`
    // Below one another: the same of all workers, on one axis.
    return group.add({
      name,
      description,
      rank: (rank + 1) * WORKERS_RANK + worker,
      kind: 'counter',
      unit: 'count',
      axis: title,
    })
  }
}
