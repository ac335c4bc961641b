// `perf stat -I`: what perf counted in each interval, as its table, as CSV (-x) or as JSON (-j); tools/perf/util/stat-display.c:
//
//     # started on Mon Nov 23 16:10:36 2026
//
//          0.100382625,12.36,msec,task-clock,12363202,100.00,0.124,CPUs utilized
//          0.125945753;CPU0;95;;context-switches;148021226;100.00;641.809;/sec                            -A: an id
//          0.101980433,S0,2,193,,context-switches,295474831,100.00,,                     --per-socket: and a number of CPUs
//     {"interval" : 0.135750843, "counter-value" : "1.058479", "unit" : "msec", "event" : "task-clock", …}
//          0.131348408               1.09 msec task-clock                       #    0.011 CPUs utilized
//
// A time is the end of its interval, in seconds since perf began to count. A name of an event may contain the separator: the fields
// after it are found by their forms.
//
//     rows.ts   a line → its fields

import { LineCursor } from '../../../input/line-cursor.ts'
import { issueOf } from '../../../model/issues.ts'
import { isTime } from '../../../model/limits.ts'
import { holding } from '../../common/holdings.ts'
import { LineReader } from '../../common/line-reader.ts'
import type { Format } from '../../format.ts'
import { IntervalCounters } from '../interval-counters.ts'
import { hasRows, RowReader, type StatRow } from './rows.ts'

export const perfStat: Format = {
  name: 'perf-stat',
  title: 'perf stat -I: counters by interval, as text, CSV (-x) or JSON (-j)',
  sniff: (head) => hasRows(new TextDecoder().decode(head)),
  read: (source) => new PerfStatLog(source).batches(),
}

const STARTED = /^# started on (.{10,40})$/
/** Lines that are no counts: the head of the table, and totals that perf prints at the end. */
const ASIDE = /^(?:#.*|Performance counter stats.*|[\d.]+ seconds (?:time elapsed|user|sys))?$/

/** Makes counters of the lines. */
class PerfStatLog extends LineReader {
  private readonly rows = new RowReader()
  private readonly counters = new IntervalCounters(this.batch)
  /** The latest metric of each event. */
  private readonly metrics = new Map<string, string>()
  private counts = 0
  private intervals = 0
  private startNs = 0
  private endNs = 0
  private multiplexed = 0

  constructor(source: AsyncIterable<Uint8Array>) {
    super(new LineCursor(source, perfStat.name))
    const attributes = { tool: 'perf stat', times: 'since perf began to count' }
    const capabilities = { operators: false }
    const place = { clock: 'unknown', originNs: 0n, title: 'perf stat' } as const
    this.batch.begin({ kind: 'input', format: perfStat.name, ...place, attributes, capabilities })
  }

  protected override readLine({ text }: LineCursor): void {
    const row = this.rows.read(text)
    if (row) return this.add(row)
    const started = STARTED.exec(text)?.[1]
    if (started !== undefined) this.batch.add({ kind: 'facts', attributes: { started: `${started} (local time)` } })
    else if (!ASIDE.test(text.trim())) {
      const code = this.lines.isTorn ? 'torn-record' : 'unreadable-row'
      const found = text.slice(0, 80).replace(/[^\x20-\x7e]/g, '.')
      this.batch.add(issueOf(code, `expected a count and its event, found "${found}"`, this.lines.position, this.endNs))
    }
  }

  private add(row: StatRow): void {
    const { endNs, event, id, unit, value } = row
    if (!isTime(endNs) || endNs < this.endNs) {
      const detail = `expected a time from ${this.endNs} ns on, found ${endNs}`
      this.batch.add(issueOf('impossible-time', detail, this.lines.position, this.endNs))
      return
    }
    if (endNs > this.endNs) {
      this.startNs = this.endNs
      this.endNs = endNs
      this.intervals++
    }
    const idText = id === '' ? '' : `, ${id}`
    if (row.missing !== '') this.batch.leftOut.add(`values of ${event}: ${row.missing}`)
    const name = `${event}${unit === '' ? '' : ` (${unit})`}${idText}`
    // A thread that never ran is not counted: the value of the interval before must not last.
    if (row.missing === 'not counted') this.pause(name)
    if (value !== undefined) {
      this.sample(name, value, COUNT)
      this.counts++
      if (row.running < 100) this.multiplexed++
    }
    if (!row.metric) return
    const metric = `${event === '' ? '' : `${event}: `}${row.metric.unit}${idText}`
    this.metrics.set(name, metric)
    this.sample(metric, row.metric.value, METRIC)
  }

  /** An event is not counted in the current interval: the values of the one before end there. */
  private pause(name: string): void {
    const metric = this.metrics.get(name)
    this.sample(name, 0, COUNT)
    if (metric !== undefined) this.sample(metric, 0, METRIC)
  }

  /** The value of an interval is drawn from its start. */
  private sample(name: string, value: number, description: string): void {
    this.counters.sample(name, description, this.startNs, value)
  }

  protected override finish(): void {
    const { batch, counts, intervals, multiplexed, endNs } = this
    this.counters.finish(endNs)
    const holds = holding({ count: counts, interval: intervals }, 'no counts')
    const attributes = {
      ...holds.attributes,
      ...(multiplexed > 0 && {
        multiplexed: `${multiplexed} counts: perf counted for a part of the time and scaled them`,
      }),
    }
    batch.add({ kind: 'facts', ...holds, attributes })
  }
}

const COUNT =
  'What perf counted in each interval, drawn from its start to its end; 0 where it did not count, and after the last one.'
const METRIC =
  'A figure that perf computed of the counts of each interval, drawn from its start to its end; 0 after the last one.'
