/** Which memory weights of the CPU are in: such that repacks them, or as they are in the file, and why. */
export interface WeightMemoryFigures {
  /** Types of memory that repack weights and for which the program asked: `AMX`, `CPU_REPACK`; empty: for none. */
  readonly repacking: readonly string[]
  /** Weights in memory of the host; most bytes first. */
  readonly rows: readonly WeightMemory[]
}

/** Why weights are in memory of a type. */
export type WeightMemoryReason =
  /** The memory repacks them. */
  | 'repacked'
  /** Memory that repacks refused them for the op that reads them. */
  | 'refused'
  /** Other memory took them before the program asked for any that repacks: `detail`. */
  | 'taken-before'
  /** The program asked for no memory that repacks, for any weight; `detail`: the option of its command line, or empty. */
  | 'not-asked'
  /** An option places them, and no device was asked: `detail`. */
  | 'override'
  /** The log does not contain it. */
  | 'unknown'

/** Weights of a type in the same memory for the same reason. */
export interface WeightMemory {
  /** Name of the buffer type, or `mapped file`. */
  readonly buffer: string
  /** Element type: `q4_0`. */
  readonly type: string
  /** The op with which devices were asked; empty: with none, or several. */
  readonly op: string
  readonly reason: WeightMemoryReason
  readonly detail: string
  /** Types of memory that refused them. */
  readonly refused_by: readonly RefusingMemory[]
  readonly tensors: number
  readonly bytes: number
  /** Roles of the weights, such as `ffn_up_exps.weight`. */
  readonly roles: readonly string[]
}

/** Memory that refused a weight. */
export interface RefusingMemory {
  readonly memory: string
  /** What decided, as the CPU answered when it was asked again: `30 rows (it takes 32)`; null: not known. */
  readonly decided: string | null
}
