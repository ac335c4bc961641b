/** Concatenates parts; a single part is not copied. */
export function joined(parts: readonly Uint8Array[]): Uint8Array {
  if (parts.length === 1) return parts[0]!
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0))
  let filled = 0
  for (const part of parts) {
    whole.set(part, filled)
    filled += part.length
  }
  return whole
}
