import { getOrMake } from '../../model/default-map.ts'
import type { ApiEvent, GpuEvent } from '../../model/gpu-events.ts'
import type { SummedNames } from './operator-sums.ts'

/** Work of a GPU, or a call of its library. */
export type WorkEvent = GpuEvent | ApiEvent

/** Is it part of a call, so that it may be summed up? A call of a library that failed is drawn in full. */
export function isOfCall(event: WorkEvent): event is WorkEvent & { readonly call: number } {
  return event.call !== undefined && event.call >= 0 && (event.kind === 'gpu' || event.result === 0)
}

/** The name by which work is summed up: that of what it computed, or its own. */
export function workName(event: WorkEvent, shared: SummedNames): number {
  const { node } = event.kind === 'gpu' ? event : { node: undefined }
  return node ? shared.list[shared.index(node)]! : event.name
}

interface Sum {
  readonly first: WorkEvent
  readonly name: number
  count: number
  ns: number
  /** Pieces of work that calls launched. */
  launched: number
}

/** A queue of a GPU, or a thread that calls a library. */
interface Row {
  readonly stretch: number
  startNs: number
  call: number
  toCall: number
  readonly sums: Map<string, Sum>
}

/** Work of GPUs and calls of their libraries in a stretch of calls, summed up by queue or thread, and by name. */
export class WorkSums {
  private readonly rows = new Map<string, Row>()

  constructor(private readonly shared: SummedNames) {}

  /** Sums up an event; returns the sums of its row, if they are of an earlier stretch. */
  add(event: WorkEvent & { readonly call: number }, stretch: number): WorkEvent[] {
    const { startNs, endNs, call } = event
    const key = rowOf(event)
    const before = this.rows.get(key)
    const done = before && before.stretch !== stretch ? this.take(key) : []
    const row = getOrMake(this.rows, key, () => ({ stretch, startNs, call, toCall: call, sums: new Map() }))
    row.startNs = Math.min(row.startNs, startNs)
    row.call = Math.min(row.call, call)
    row.toCall = Math.max(row.toCall, call)
    const name = workName(event, this.shared)
    const what = event.kind === 'gpu' ? event.what : event.kind
    const sum = getOrMake(row.sums, `${what} ${name}`, () => ({ first: event, name, count: 0, ns: 0, launched: 0 }))
    sum.count += event.kind === 'gpu' ? (event.count ?? 1) : 1
    sum.ns += endNs - startNs
    if (event.kind === 'api') sum.launched += event.launched
    return done
  }

  /** The sums of the row of an event, which comes after them. */
  before(event: WorkEvent): WorkEvent[] {
    return this.take(rowOf(event))
  }

  /** All sums. */
  finish(): WorkEvent[] {
    return [...this.rows.keys()].flatMap((key) => this.take(key))
  }

  private take(key: string): WorkEvent[] {
    const row = this.rows.get(key)
    if (!row) return []
    this.rows.delete(key)
    let atNs = row.startNs
    return [...row.sums.values()].map((sum) => {
      const startNs = atNs
      atNs += sum.ns
      return summedUp(sum, row, startNs)
    })
  }
}

function rowOf(event: WorkEvent): string {
  if (event.kind === 'api') return `${event.library} ${event.pid} ${event.tid}`
  return `${event.device} ${event.context} ${event.stream} ${event.pid}`
}

/** A sum as an event, with what all of its events have in common. */
function summedUp({ first, name, count, ns, launched }: Sum, { call, toCall }: Row, startNs: number): WorkEvent {
  const common = { name, startNs, endNs: startNs + ns, correlation: -1, call, summed: { count, toCall } }
  if (first.kind === 'api') {
    const { kind, library, pid, tid, thread } = first
    return { kind, library, pid, tid, thread, launched, result: 0, ...common }
  }
  const { kind, what, device, context, contextName, stream, streamName, queue, pid } = first
  const place = { device, context, contextName, stream, streamName, queue, pid }
  return { kind, what, ...place, signature: 0, facts: {}, count, ...common }
}
