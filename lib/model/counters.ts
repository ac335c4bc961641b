import type { CountedEvent } from './events.ts'

/** A ratio of two counters. */
export interface Rate {
  /** Name of arguments and tracks: `ipc`, `ghz`. */
  readonly key: string
  readonly value: number
}

/** A counter that has a value for each operator. */
export interface Counter {
  /** The name that perf(1) uses. */
  readonly name: string
  /** The name of the argument: `page_faults`, `task_clock_ns`. */
  readonly key: string
  readonly unit: CountedEvent['unit']
}

interface RateSpec {
  readonly key: string
  readonly over: string
  /** `time` is the thread's CPU time where it was counted, else the operator's duration. */
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
/** Significant digits of a rate. */
const DIGITS = 4

/** The counters of operators, and the rates that follow from them. */
export class CounterSet {
  /** By index; with holes where an input skips indexes. */
  readonly counters: Counter[] = []
  private readonly indexes = new Map<string, number>()
  private rateSpecs: readonly RateSpec[] = []

  /** Adds a counter; `name` is its name as text. */
  define({ index, unit }: CountedEvent, name: string): void {
    const key = name.replace(/[^A-Za-z0-9]+/g, '_').replace(/_$/, '') || `counter_${index}`
    this.counters[index] = { name: name || key, unit, key: unit === 'ns' ? `${key}_ns` : key }
    this.indexes.set(name, index)
    const knows = (part: string) => part === 'duration' || part === 'time' || this.indexes.has(part)
    this.rateSpecs = RATES.filter(({ over, under }) => knows(over) && knows(under))
  }

  /** Is there a counter that always advances, such as cycles? Then an operator without counts was not counted. */
  get hasRates(): boolean {
    return this.rateSpecs.length > 0
  }

  /** Value of one counter; undefined where it was not counted. */
  value(name: string, counts: readonly number[]): number | undefined {
    const index = this.indexes.get(name)
    return index === undefined ? undefined : (counts[index] ?? 0)
  }

  /** Rates of the counts of `durationNs`, except those with a divisor of 0. */
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
