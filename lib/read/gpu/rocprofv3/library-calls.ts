import { DefaultMap } from '../../../model/default-map.ts'
import type { TraceEvent } from '../../../model/events.ts'
import { Spans } from '../../common/spans.ts'
import { Tally } from '../../common/tally.ts'
import type { Timed } from './records.ts'

/** Correlation id of calls that have none. */
const NONE = 0xffffffff

/** Calls of each thread, in order of their starts; ranges of ROCTx. Both come after all GPU work. */
export class LibraryCalls {
  count = 0
  ranges = 0
  /** By process and thread. */
  private readonly threads = new DefaultMap<string, Spans>(() => new Spans())
  private readonly rangesOf = new DefaultMap<number, Spans>(() => new Spans())
  /** Pieces of GPU work by correlation id, for each process. */
  private readonly launched = new DefaultMap<number, Tally>(() => new Tally())

  addWork({ correlation, startNs }: Timed, pid: number): void {
    if (correlation >= 0 && correlation < NONE) this.launched.of(pid).add(correlation, startNs)
  }

  /** `name`: of the function. */
  addCall({ startNs, endNs, correlation, tid }: Timed, name: number, pid: number): void {
    const known = correlation >= 0 && correlation < NONE ? correlation : NONE
    this.threads.of(`${pid} ${tid}`).push(startNs, endNs, name, known)
    this.count++
  }

  /** `text`: message of the range or mark. */
  addRange({ startNs, endNs, tid }: Timed, text: number): void {
    this.rangesOf.of(tid).push(startNs, endNs, text, 0)
    this.ranges++
  }

  *events(): Generator<TraceEvent[]> {
    for (const [key, spans] of this.threads) {
      const [pid, tid] = key.split(' ').map(Number) as [number, number]
      const tally = this.launched.get(pid)
      yield* spans.order().inBatches((id, batch) => {
        const correlation = spans.b(id)
        batch.push({
          kind: 'api',
          library: 'hip',
          name: spans.a(id),
          startNs: spans.start(id),
          endNs: spans.end(id),
          ...{ pid, tid, thread: 0, result: 0 },
          correlation: correlation === NONE ? -1 : correlation,
          launched: correlation === NONE ? 0 : (tally?.of(correlation) ?? 0),
        })
      })
    }
    yield* this.rangeEvents()
  }

  private *rangeEvents(): Generator<TraceEvent[]> {
    let track = 0
    for (const [tid, spans] of this.rangesOf) {
      const id = track++
      const name = `ROCTx ranges of thread ${tid}`
      const description = `Ranges and marks that thread ${tid} announced through ROCTx, as rocprofv3 recorded them.`
      yield [{ kind: 'own-track', id, name, description, nests: true, leads: true, tid }]
      yield* spans.order().inBatches((span, batch) => {
        const [startNs, endNs, text] = [spans.start(span), spans.end(span), spans.a(span)]
        if (startNs === endNs) batch.push({ kind: 'own-instant', track: id, name: text, atNs: startNs })
        else batch.push({ kind: 'own-slice', track: id, name: text, startNs, endNs })
      })
    }
  }
}
