/** `2 664`: with thousands separated, for display. */
export function count(value: number): string {
  // bounded: the digits of a number
  return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, ' ')
}

/** `1 graph`, `2 664 operators`, `3 losses`, `1 query`. */
export function plural(value: number, noun: string): string {
  return `${count(value)} ${nounFor(value, noun)}`
}

/** The noun that agrees with a number: `token`, `tokens`. */
export const nounFor = (value: number, noun: string): string => (value === 1 ? noun : pluralOf(noun))

function pluralOf(noun: string): string {
  if (/(s|x|z|ch|sh)$/.test(noun)) return `${noun}es`
  return /[^aeiou]y$/.test(noun) ? `${noun.slice(0, -1)}ies` : `${noun}s`
}

const DURATIONS: readonly [number, string][] = [
  [3600e9, 'h'],
  [60e9, 'min'],
  [1e9, 's'],
  [1e6, 'ms'],
  [1e3, 'µs'],
]

/** Nanoseconds in a suitable unit, to three digits: `26.1 ms`. */
export function duration(ns: number): string {
  const [scale, unit] = DURATIONS.find(([scale]) => Math.abs(ns) >= scale) ?? [1, 'ns']
  return `${threeDigits(ns / scale)} ${unit}`
}

const SIZES = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB']

/** `291 KiB`. */
export function size(bytes: number): string {
  let [value, unit] = [bytes, 0]
  for (; value >= 1024 && unit < SIZES.length - 1; unit++) value /= 1024
  return `${threeDigits(value)} ${unit === 0 && value === 1 ? 'byte' : SIZES[unit]}`
}

/** `637`, `26.1`, `1.57`, `12 345`: three digits, but never fewer than the integer part has. `?`: a damaged document makes it no number. */
export function threeDigits(value: number): string {
  if (!Number.isFinite(value)) return '?'
  if (Math.abs(value) >= 999.5) return count(value)
  return String(Number(value.toPrecision(3)))
}

/** `39.6 %`; empty: a share of nothing. */
export function percent(share: number): string {
  return Number.isFinite(share) ? `${(100 * share).toFixed(1)} %` : ''
}

/** A number that is -1 where it is not known, as null then. */
export const orNull = (value: number): number | null => (value < 0 ? null : value)
