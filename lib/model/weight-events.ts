import { type Bounds, wrongAmount } from './bounds.ts'

/**
 * A device was asked whether it computes an operator whose weight is in memory of a type, when a program chose the memory for the weight: it
 * takes the first type with an answer of yes.
 */
export interface WeightMemoryEvent {
  readonly kind: 'weight-memory'
  readonly answer: boolean
  /** Name of the device. */
  readonly device: number
  /** Name of the type of memory: `CPU_REPACK`. */
  readonly memory: number
  /** Name of the op, and its number. */
  readonly op: number
  readonly opNumber: number
  /** Name of the weight, name of its type, its sizes. */
  readonly tensor: number
  readonly type: number
  readonly ne: readonly number[]
}

/** Their ranges. */
export const WEIGHT_BOUNDS: Bounds<WeightMemoryEvent> = { 'weight-memory': wrongAmount }
