/** A copy of a typed array with another length: cut, or with zeros at its end. */
export function resized<T extends Float64Array | Int32Array | Uint32Array | Uint8Array>(from: T, length: number): T {
  const to = new (from.constructor as new (length: number) => T)(length)
  to.set(from.subarray(0, length))
  return to
}
