import type { CountedEvent } from './events.ts'

/** A ratio of two things that were counted. */
export interface Rate {
  /** `ipc`, `ghz`: as arguments and tracks are called. */
  readonly key: string
  readonly value: number
}

/** Something that is counted. */
export interface Counter {
  /** As perf(1) calls it. */
  readonly name: string
  /** The same as an argument is called: `page_faults`, `task_clock_ns`. */
  readonly key: string
  readonly unit: CountedEvent['unit']
}

interface RateSpec {
  readonly key: string
  readonly over: string
  /** `time` is the thread's own time where that was counted, else the operator's. */
  readonly under: string
  readonly factor?: number
}

const RATES: readonly RateSpec[] = [
  { key: 'ipc', over: 'instructions', under: 'cycles' },
  { key: 'ghz', over: 'cycles', under: 'time' },
  { key: 'cpu_share', over: 'task-clock', under: 'duration' },
  { key: 'cache_miss_rate', over: 'cache-misses', under: 'cache-references' },
  { key: 'cache_misses_per_1000_instructions', over: 'cache-misses', under: 'instructions', factor: 1000 },
  { key: 'branch_miss_rate', over: 'branch-misses', under: 'branches' },
  { key: 'branch_misses_per_1000_instructions', over: 'branch-misses', under: 'instructions', factor: 1000 },
  { key: 'stalled_frontend_share', over: 'stalled-cycles-frontend', under: 'cycles' },
  { key: 'stalled_backend_share', over: 'stalled-cycles-backend', under: 'cycles' },
]
/** Digits of a rate that mean anything. */
const DIGITS = 4

/** What is counted operator by operator, and the rates that follow from it. */
export class CounterSet {
  /** By index; where an input leaves numbers out, there are holes. */
  readonly counters: Counter[] = []
  private readonly indexes = new Map<string, number>()
  private rateSpecs: readonly RateSpec[] = []

  /** Adds a counter; `name` is its name as a text. */
  define({ index, unit }: CountedEvent, name: string): void {
    const key = name.replace(/[^A-Za-z0-9]+/g, '_').replace(/_$/, '') || `counter_${index}`
    this.counters[index] = { name: name || key, unit, key: unit === 'ns' ? `${key}_ns` : key }
    this.indexes.set(name, index)
    const knows = (part: string) => part === 'duration' || part === 'time' || this.indexes.has(part)
    this.rateSpecs = RATES.filter(({ over, under }) => knows(over) && knows(under))
  }

  /** Is there something that goes on all the time, such as cycles? Then what has no counts was not counted. */
  get hasRates(): boolean {
    return this.rateSpecs.length > 0
  }

  /** One counter's value; undefined where it is not counted. */
  value(name: string, counts: readonly number[]): number | undefined {
    const index = this.indexes.get(name)
    return index === undefined ? undefined : (counts[index] ?? 0)
  }

  /** Ratios of what was counted in `durationNs`; those by nothing are left out. */
  rates(counts: readonly number[], durationNs: number): Rate[] {
    const part = (name: string) => {
      if (name === 'duration') return durationNs
      return this.value(name === 'time' ? 'task-clock' : name, counts) ?? durationNs
    }
    const rates: Rate[] = []
    for (const { key, over, under, factor = 1 } of this.rateSpecs) {
      const divisor = part(under)
      if (divisor > 0) rates.push({ key, value: Number(((factor * part(over)) / divisor).toPrecision(DIGITS)) })
    }
    return rates
  }
}
