/** The first calls, of which all are taken. */
const FIRST = 10
/** Of later calls, every n-th: a power of two. */
const EVERY = 64

/** Is a call looked at where only a sample is? Operators outside of calls are not. */
export function isSampled(call: number): boolean {
  return call >= 0 && (call < FIRST || (call & (EVERY - 1)) === 0)
}
