/** Events that an input contains and that are not drawn, by design: no issue. One event or more for each `what`. */
export interface LeftOutEvent {
  readonly kind: 'left-out'
  /** A plural noun, or the recorder's name of the events: `object events`, `cpu_frequency`. */
  readonly what: string
  readonly count: number
  /** How to see them. */
  readonly hint?: string | undefined
}

/** Names that are counted separately; events of all others are counted together. */
const NAMES_MAX = 256
const OTHERS = 'events of other names'
/** The hint for events that Perfetto imports itself. */
export const PERFETTO_READS_IT = 'Perfetto reads such a file itself: drag it into https://ui.perfetto.dev'

/** The hint for events that are drawn with the operators or threads of a log. */
export const NEEDS_LOG = 'give it together with the log of the program that it was recorded of'

/** Counts events that are left out, by name. */
export class LeftOut {
  private readonly found = new Map<string, { count: number; hint: string | undefined }>()

  add(what: string, count = 1, hint?: string): void {
    if (count <= 0) return
    const { found } = this
    const name = found.has(what) || found.size < NAMES_MAX ? what : OTHERS
    const known = found.get(name)
    if (known) known.count += count
    else found.set(name, { count, hint })
  }

  /** All counts, highest first. */
  list(): Omit<LeftOutEvent, 'kind'>[] {
    return [...this.found]
      .map(([what, { count, hint }]) => ({ what, count, ...(hint !== undefined && { hint }) }))
      .sort((a, b) => b.count - a.count || (a.what < b.what ? -1 : 1))
  }

  /** All counts, as events. */
  events(): LeftOutEvent[] {
    return this.list().map((counted) => ({ kind: 'left-out', ...counted }))
  }
}
