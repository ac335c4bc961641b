import { DefaultMap, getOrMake } from '../../model/default-map.ts'
import type { BufferEvent, BufferUsage } from '../../model/events.ts'
import type { Names } from '../../model/names.ts'
import type * as of from '../of.ts'
import { bufferTitle } from '../place.ts'

/** A buffer as the Memory group shows it. */
interface ShownBuffer extends of.Buffer {
  readonly event: BufferEvent
}

/**
 * All defined buffers, and the titles of those in the Memory group. Buffers of a usage that have different names have them in their
 * titles; those of one title are numbered in order of first use.
 */
export class Buffers {
  readonly events = new Map<number, BufferEvent>()
  private readonly shown = new Map<number, ShownBuffer>()
  private readonly ofUsage = new Map<BufferUsage, number>()
  private readonly namesOf = new DefaultMap<BufferUsage, Set<number>>(() => new Set())
  private readonly titles = new Map<string, number>()
  /** By usage: the name of the buffers whose title does not contain it. */
  private readonly plain = new Map<BufferUsage, string>()

  constructor(private readonly names: Names) {}

  /** Identification of the first buffer of weights. */
  get weights(): string | undefined {
    return [...this.events.values()].find(({ usage }) => usage === 'weights')?.label
  }

  define(buffer: BufferEvent): void {
    this.events.set(buffer.id, buffer)
    this.namesOf.of(buffer.usage).add(buffer.name ?? 0)
  }

  /** Returns a defined buffer with its title. */
  get(id: number): ShownBuffer {
    return getOrMake(this.shown, id, () => {
      const event = this.events.get(id)!
      const nth = (this.ofUsage.get(event.usage) ?? 0) + 1
      this.ofUsage.set(event.usage, nth)
      const { usage, label } = event
      return { event, usage, nth, title: this.titleOf(event), label }
    })
  }

  private titleOf({ usage, name: id = 0 }: BufferEvent): string {
    const name = this.names.text(id)
    if (!this.plain.has(usage) && this.namesOf.of(usage).size === 1) this.plain.set(usage, name)
    const title = bufferTitle(usage, this.plain.get(usage) === name ? '' : name)
    const nth = (this.titles.get(title) ?? 0) + 1
    this.titles.set(title, nth)
    return nth === 1 ? title : `${title} ${nth}`
  }
}
