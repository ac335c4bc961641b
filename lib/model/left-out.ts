/** Something that an input contains and that is not drawn, by design: it is no issue. One event for each `what`, or more. */
export interface LeftOutEvent {
  readonly kind: 'left-out'
  /** A plural, or the recorder's own name of the events: `object events`, `cpu_frequency`. */
  readonly what: string
  readonly count: number
  /** What draws it. */
  readonly hint?: string | undefined
}

/** Names that are told apart; events of all others are counted together. */
const NAMES_MAX = 256
const OTHERS = 'events of other names'
/** For what Perfetto imports itself. */
export const PERFETTO_READS_IT = 'Perfetto reads such a file itself: drag it into https://ui.perfetto.dev'

/** Counts what is left out, by name. */
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

  /** All of it, most first. */
  list(): Omit<LeftOutEvent, 'kind'>[] {
    return [...this.found]
      .map(([what, { count, hint }]) => ({ what, count, ...(hint !== undefined && { hint }) }))
      .sort((a, b) => b.count - a.count || (a.what < b.what ? -1 : 1))
  }

  /** All of it, as events. */
  events(): LeftOutEvent[] {
    return this.list().map((counted) => ({ kind: 'left-out', ...counted }))
  }
}
