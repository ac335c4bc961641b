/** The first calls are all taken, of four times as many every fourth one, of later ones fewer: steps and their strides, powers of two. */
const FIRST = 16
const SECOND = 64
const THIRD = 256

/**
 * Of a sample of calls: the number of calls that a call represents, 0 where it is not in the sample. Without these weights the first calls,
 * in which a program and its recorder set up what later calls reuse, would count as if all calls were like them. Operators outside of
 * calls are in no sample.
 */
export function sampleWeight(call: number): number {
  const stride = call < FIRST ? 1 : call < SECOND ? 4 : call < THIRD ? 16 : 64
  return call < 0 || (call & (stride - 1)) !== 0 ? 0 : stride
}

/** Is a call looked at where only a sample is? */
export const isSampled = (call: number): boolean => sampleWeight(call) > 0
