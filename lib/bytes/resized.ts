type Column = Float64Array | Int32Array | Uint32Array | Uint16Array | Uint8Array

/** A copy of a typed array with another length: cut, or with zeros at its end. */
export function resized<T extends Column>(from: T, length: number): T {
  const to = new (from.constructor as new (length: number) => T)(length)
  to.set(from.subarray(0, length))
  return to
}

/** Resizes columns, which are fields of an object. */
export function growColumns<K extends string>(
  holder: { [key in K]: Column },
  keys: readonly K[],
  length: number,
): void {
  for (const key of keys) holder[key] = resized(holder[key], length)
}
