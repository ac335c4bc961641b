import { DefaultMap } from '../../model/default-map.ts'
import type { TraceEvent } from '../../model/events.ts'
import type { Names } from '../../model/names.ts'
import type { OwnSliceEvent } from '../../model/own-events.ts'
import { TimesNs } from '../common/sketches.ts'
import type { HostOperator, HostOperators } from './figures.ts'

/** Rows of the table. */
const ROWS_MAX = 100
/** The category of operators in the traces of PyTorch's profiler. */
const CATEGORY = 'cpu_op'

interface Sum {
  count: number
  selfNs: number
  readonly times: TimesNs
}

/** An operator that may call further ones. */
interface Open {
  readonly endNs: number
  readonly sum: Sum
}

/** Sums up operators of the CPU by name, of all inputs. Memory grows with the number of names and the depth of calls. */
export class HostOperatorPass {
  private readonly category: number
  private readonly sums = new DefaultMap<number, Sum>(() => ({ count: 0, selfNs: 0, times: new TimesNs() }))
  /** Innermost last, by input and track: slices of a track come in order of their starts, outer before inner. */
  private readonly open = new DefaultMap<object, DefaultMap<number, Open[]>>(() => new DefaultMap(() => []))
  private hasGpuWork = false

  constructor(private readonly names: Names) {
    this.category = names.id(CATEGORY)
  }

  take(batch: readonly TraceEvent[], input: object): void {
    const open = this.open.of(input)
    for (const event of batch) {
      if (event.kind === 'own-slice' && event.category === this.category) this.add(event, open.of(event.track))
      else if (event.kind === 'gpu') this.hasGpuWork = true
    }
  }

  /** Null without operators, and with GPU work: the figures of GPUs contain what launched it. */
  finish(): HostOperators | null {
    if (this.hasGpuWork || this.sums.size === 0) return null
    const rows = [...this.sums].map(([name, sum]) => this.rowOf(name, sum)).sort(bySelf)
    const rest = rows.slice(ROWS_MAX)
    return {
      count: total(rows, ({ count }) => count),
      self_ns: total(rows, ({ self_ns }) => self_ns),
      rows: rows.slice(0, ROWS_MAX),
      other_rows:
        rest.length === 0
          ? null
          : {
              names: rest.length,
              count: total(rest, ({ count }) => count),
              self_ns: total(rest, ({ self_ns }) => self_ns),
            },
    }
  }

  private add({ name, startNs, endNs }: OwnSliceEvent, open: Open[]): void {
    const [sum, durationNs] = [this.sums.of(name), endNs - startNs]
    while (open.length > 0 && open.at(-1)!.endNs <= startNs) open.pop()
    const outer = open.at(-1)
    if (outer) outer.sum.selfNs -= Math.min(endNs, outer.endNs) - startNs
    open.push({ endNs, sum })
    sum.count++
    sum.selfNs += durationNs
    sum.times.add(durationNs)
  }

  private rowOf(name: number, { count, selfNs, times }: Sum): HostOperator {
    return {
      name: this.names.text(name),
      count,
      self_ns: selfNs,
      time_ns: times.sumNs,
      duration: times.figures(),
    }
  }
}

const total = (rows: readonly HostOperator[], figureOf: (row: HostOperator) => number) =>
  rows.reduce((sum, row) => sum + figureOf(row), 0)

const bySelf = (a: HostOperator, b: HostOperator) => b.self_ns - a.self_ns || b.count - a.count
