import { DefaultMap } from '../../model/default-map.ts'
import type { FunctionEvent, FunctionPurpose } from '../../model/events.ts'
import type { Label } from '../../sink/label.ts'
import type { TrackContext } from '../context.ts'
import type { ArgMaker } from '../labels.ts'
import type { NestedRows } from '../nested.ts'
import { resourceArgs } from '../resources.ts'

/** Functions of a thread that wait for the one around them, which comes after them. */
const WAITING_MAX = 4096

/** Names of values in arguments. */
const BYTES: ReadonlySet<FunctionPurpose> = new Set(['map', 'copy-weights', 'reserve', 'save-state', 'restore-state'])

interface Thread {
  waiting: FunctionEvent[]
  readonly rows: NestedRows
}

/** Draws the functions around calls in a row for each thread, nested. */
export class Functions {
  private count = 0
  private readonly threads = new DefaultMap<number, Thread>((tid) => ({
    waiting: [],
    rows: this.context.tracks.nested('threadFunctions', { tid, nth: this.count++ }),
  }))

  constructor(private readonly context: TrackContext) {}

  /** Functions of a thread come in the order of their ends. */
  add(event: FunctionEvent): void {
    const thread = this.threads.of(event.tid)
    thread.waiting.push(event)
    if (thread.waiting.length >= WAITING_MAX) this.draw(thread, WAITING_MAX / 2)
  }

  finish(): void {
    for (const thread of this.threads.values()) {
      this.draw(thread, thread.waiting.length)
      thread.rows.finish()
    }
  }

  /** Draws the functions that begin first, the outer one before those in it. */
  private draw(thread: Thread, count: number): void {
    const inOrder = thread.waiting.sort((a, b) => a.startNs - b.startNs || b.endNs - a.endNs)
    thread.waiting = inOrder.slice(count)
    for (let i = 0; i < count; i++) this.place(thread.rows, inOrder[i]!)
  }

  private place(rows: NestedRows, event: FunctionEvent): void {
    rows.place(event.startNs, event.endNs, functionLabel(event, 'function', this.context.make))
  }
}

/** How a function is drawn. */
export function functionLabel(event: FunctionEvent, category: string, make: ArgMaker): Label {
  const { what, name, sequence, output, value, context } = event
  const args = [make.word('function', what)]
  if (sequence >= 0) args.push(make.int('sequence', sequence))
  if (output >= 0) args.push(make.int('output', output))
  if (value >= 0) args.push(make.int(BYTES.has(what) ? 'bytes' : 'tokens', value))
  if (context > 0) args.push(make.arg('context', { pointer: context }))
  args.push(...resourceArgs(event.resources, make))
  const shown = name === 0 ? what : `${what}: ${make.names.text(name)}`
  const colour = make.names.id(what)
  return { name: make.names.id(shown), category, colour, extra: make.shown(args) }
}
