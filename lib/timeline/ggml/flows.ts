import { DataWriters } from '../../analyze/graph/data-writers.ts'
import type { OperatorEvent, TokenEvent } from '../../model/events.ts'
import type { TrackContext } from '../context.ts'
import type { Wait } from './waits.ts'

/** Operators that are held back at most, if the end of the call is missing. */
const HELD_MAX = 1 << 20
/** Ids of arrows: a separate range from those of logs, and one range for each input. */
const IDS_START = 2 ** 48
const IDS_PER_INPUT = 2 ** 32

interface Held {
  readonly event: OperatorEvent
  readonly wait: Wait | undefined
}

/**
 * Draws the data flow of one call as arrows between slices of worker 0: from the operator that writes a tensor to each operator
 * that reads it or a view of it. Operators of worker 0 are held back from the first one of the call to its end: the begin of an
 * arrow depends on its readers.
 */
export class Flows {
  private held: Held[] = []
  private isDone: boolean
  private nextId: number

  constructor(
    private readonly context: TrackContext,
    private readonly call: number | undefined,
    private readonly draw: (
      event: OperatorEvent,
      wait: Wait | undefined,
      arrows: readonly number[] | undefined,
    ) => void,
  ) {
    this.isDone = call === undefined
    this.nextId = IDS_START + context.input * IDS_PER_INPUT
  }

  /** Holds an operator back to draw it later with its arrows; false if it can be drawn immediately. */
  holds(event: OperatorEvent, wait?: Wait): boolean {
    if (this.isDone || event.worker !== 0 || (this.held.length === 0 && event.call !== this.call)) return false
    this.held.push({ event, wait })
    if (this.held.length >= HELD_MAX) this.release()
    return true
  }

  token({ call }: TokenEvent): void {
    if (call === this.call) this.release()
  }

  finish(): void {
    this.release()
  }

  private release(): void {
    const { held } = this
    if (held.length === 0) return
    this.held = []
    this.isDone = true
    const events = held.map(({ event }) => event)
    const own = events.filter((event) => event.call === this.call).sort((a, b) => a.startNs - b.startNs)
    const arrows = this.arrows(own)
    for (const { event, wait } of held) this.draw(event, wait, arrows.get(event))
  }

  /** The arrows that begin or end at each operator: one id for each pair of a writer and a reader. */
  private arrows(events: readonly OperatorEvent[]): Map<OperatorEvent, number[]> {
    const { tensors, views } = this.context
    const arrows = new Map<OperatorEvent, number[]>(events.map((event) => [event, []]))
    const writers = new DataWriters<OperatorEvent>(tensors, views)
    for (const event of events) {
      for (const writer of writers.step(event.tensor, event.fusedTo ?? event.tensor, event)) {
        const id = this.nextId++
        arrows.get(writer)!.push(id)
        arrows.get(event)!.push(id)
      }
    }
    return arrows
  }
}
