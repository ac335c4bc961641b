import type { TraceEvent } from '../../model/events.ts'
import { inferredText } from '../../model/inferred.ts'
import type { Names } from '../../model/names.ts'
import { threadText } from '../../model/waits.ts'
import type { NewRow } from '../../tables/table-file.ts'
import type { RunThreads } from '../../threads/run-threads.ts'
import type { StateSpan, States } from '../../threads/states.ts'

/** Passes the events of an input to the stage of threads. */
export function takeThreads(batch: readonly TraceEvent[], states: States, threads: RunThreads): void {
  for (const event of batch) {
    switch (event.kind) {
      case 'operator':
        states.serve(event.worker, event.tid, event.waitEndNs)
        break
      case 'token':
        states.trace(event.tid)
        states.reach(event.endNs)
        break
      case 'state':
        states.place(event)
        break
      case 'switch':
        threads.switched(event)
        break
      case 'waking':
        threads.waking(event)
        break
      case 'thread':
        threads.thread(event)
        break
      case 'input':
      case 'facts':
        threads.describe(event.attributes)
    }
  }
}

/** The row of a state. */
export function stateRow(span: StateSpan, names: Names): NewRow<'state'> {
  const { worker, tid, state, fromNs, toNs, cpu, wait, by, shares, inferred } = span
  const longest = shares?.known[0]
  const taker = longest ? threadText(longest, names) : names.text(by)
  return {
    worker: worker < 0 ? null : worker,
    tid,
    ts_ns: fromNs,
    dur_ns: toNs - fromNs,
    state,
    cpu: cpu < 0 ? null : cpu,
    wait: names.text(wait) || null,
    taken_by: shares && !longest ? null : taker || null,
    taken_by_ns: longest ? longest.ns : null,
    inferred: inferred === 0 ? null : inferredText(inferred),
  }
}
