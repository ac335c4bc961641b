/** `UTC`, `UTC+2`, `+02:00`; hours and minutes. */
const FIXED = /^(?:(?:UTC|GMT)(?:([+-])(\d{1,2})(?::?([0-5]\d))?)?|([+-])(\d\d):([0-5]\d))$/
const NAMED = /^[A-Za-z]+(?:\/[A-Za-z\d_+-]+){1,2}$/
const HOUR_NS = 3_600_000_000_000n

/** Is the text a time zone: `UTC`, `UTC+2`, `+02:00`, or a name such as `Europe/Berlin` that the system knows? */
export function isZone(text: string): boolean {
  if (FIXED.test(text)) return true
  if (!NAMED.test(text)) return false
  try {
    new Intl.DateTimeFormat('en', { timeZone: text })
    return true
  } catch {
    return false
  }
}

/** Local time minus UTC at a local time, in ns; `zone`: as in {@link isZone}. `localNs`: ns since 1970, as if it were UTC. */
export function offsetOf(zone: string, localNs: bigint): bigint {
  const fixed = FIXED.exec(zone)
  if (fixed) {
    const [, sign = fixed[4], hours = fixed[5] ?? '0', minutes = fixed[6] ?? '0'] = fixed
    const ns = BigInt(hours) * HOUR_NS + (BigInt(minutes) * HOUR_NS) / 60n
    return sign === '-' ? -ns : ns
  }
  // The offset at the time that the first one gives: they differ where the clocks are changed in between.
  return at(zone, localNs - at(zone, localNs))
}

function at(zone: string, ns: bigint): bigint {
  const parts = new Intl.DateTimeFormat('en', { timeZone: zone, timeZoneName: 'longOffset' }).formatToParts(
    new Date(Number(ns / 1_000_000n)),
  )
  const text = parts.find(({ type }) => type === 'timeZoneName')?.value ?? 'GMT'
  const [, sign, hours = '0', minutes = '0'] = /GMT([+-])(\d\d):(\d\d)/.exec(text) ?? []
  const offset = BigInt(hours) * HOUR_NS + (BigInt(minutes) * HOUR_NS) / 60n
  return sign === '-' ? -offset : offset
}
