/** Arguments of slices: none; op, shapes and sources; or everything recorded. */
export type Detail = (typeof DETAILS)[number]

/** All details, from least to most. */
export const DETAILS = ['names', 'shapes', 'full'] as const

/** Names of operator slices: `<role> <OP>`, the op only, or the tensor's full name. */
export type OpNaming = (typeof OP_NAMINGS)[number]

/** All namings. */
export const OP_NAMINGS = ['role', 'op', 'tensor'] as const

/** Tracks of compute buffers in the Memory group: counters only, or also each tensor's lifetime. */
export type MemoryRows = (typeof MEMORY_ROWS)[number]

/** All selections. */
export const MEMORY_ROWS = ['counters', 'lifetimes'] as const

/** Waits at barriers: those that a screen shows, from 1 µs on, or all. */
export type Barriers = (typeof BARRIERS)[number]

/** All selections. */
export const BARRIERS = ['long', 'all'] as const

/** Are operators drawn long after they came? Only then, all that is drawn of a barrier is known: each wait, and the arrows to it. */
export const isDrawnLate = ({ detail, barriers, flows }: Pick<DrawOptions, 'detail' | 'barriers' | 'flows'>): boolean =>
  detail === 'full' || barriers === 'all' || flows !== undefined

/** Selects events and details of the drawing. */
export interface DrawOptions {
  /** Arguments of slices: `names` none, `shapes` (default) op, shapes and sources, `full` everything recorded. */
  readonly detail?: Detail | undefined
  /** Names of operator slices: `<role> <OP>` (default), the op only, or the tensor's full name. */
  readonly opName?: OpNaming | undefined
  /** Calls to convert, from … to inclusive; the prefill is 0. By default all, warm-up included. */
  readonly tokens?: readonly [number, number] | undefined
  /**
   * Tracks of compute buffers: `counters` (default), such as the live bytes, or also `lifetimes`: a slice per tensor, from its
   * first write to its last read.
   */
  readonly memory?: MemoryRows | undefined
  /**
   * Waits at barriers: `long` (default), from 1 µs on, or `all`, which `detail: 'full'` draws, too. A shorter one is the gap between two
   * operators; SQL views count it.
   */
  readonly barriers?: Barriers | undefined
  /** Draw the data flow of one call (the prefill is 0) as arrows from each operator to the operators that read its result. */
  readonly flows?: { readonly token: number } | undefined
  /** Draw all events of the scheduler; by default those of the traced process and of the CPUs that it uses. */
  readonly allThreads?: boolean | undefined
}
