import type { BufferEvent, BufferUsage } from '../../model/events.ts'
import type * as of from '../of.ts'
import { bufferTitle } from '../place.ts'

/** A buffer as the Memory group shows it. */
export interface ShownBuffer extends of.Buffer {
  readonly event: BufferEvent
}

/** All defined buffers, and the titles of those in the Memory group, which are numbered in order of first use. */
export class Buffers {
  readonly events = new Map<number, BufferEvent>()
  private readonly shown = new Map<number, ShownBuffer>()
  private readonly ofUsage = new Map<BufferUsage, number>()

  define(buffer: BufferEvent): void {
    this.events.set(buffer.id, buffer)
  }

  /** Returns a defined buffer with its title. */
  get(id: number): ShownBuffer {
    const known = this.shown.get(id)
    if (known) return known
    const event = this.events.get(id)!
    const nth = (this.ofUsage.get(event.usage) ?? 0) + 1
    this.ofUsage.set(event.usage, nth)
    const { usage, label } = event
    const buffer = { event, usage, nth, title: bufferTitle(usage, nth), label }
    this.shown.set(id, buffer)
    return buffer
  }
}
