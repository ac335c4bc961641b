import type { Distribution } from '../common/figures.ts'

/** Operators that PyTorch's profiler recorded on the CPU, of a run without GPU work. */
export interface HostOperators {
  readonly count: number
  /** Sum of the times outside of inner operators, of all threads. */
  readonly self_ns: number
  /** By name, most time outside of inner operators first, at most 100. */
  readonly rows: readonly HostOperator[]
  /** The further ones. */
  readonly other_rows: HostOperatorRest | null
}

/** Operators of one name. */
export interface HostOperator {
  readonly name: string
  readonly count: number
  /** Outside of the operators that these called, on their thread. */
  readonly self_ns: number
  /** From begin to end; an operator that calls one of its own name counts twice. */
  readonly time_ns: number
  readonly duration: Distribution | null
}

/** What the table of operators leaves out, summed up. */
export interface HostOperatorRest {
  readonly names: number
  readonly count: number
  readonly self_ns: number
}
