import type { ColorScale } from './metrics.ts'

/**
 * Cividis from its light end to its dark end (Nuñez, Anderton and Renslow, 2018): with and without colour blindness its steps look
 * the same, and its lightness alone shows the order.
 */
const STOPS = [
  '#fee838',
  '#e1cc55',
  '#c3b369',
  '#a59c74',
  '#8a8678',
  '#707173',
  '#575d6d',
  '#3b496c',
  '#123570',
] as const

/** Text on a fill: black or white, whichever has more contrast (at least 4.5). */
export interface Fill {
  readonly fill: string
  readonly text: string
}

/** Values → colours, from light to dark. */
export interface Colors {
  readonly scale: ColorScale
  readonly least: number
  readonly most: number
  of(value: number): Fill
  /** The value at a place from 0 (lightest) to 1. */
  at(place: number): number
}

/** Colours for these values; undefined where there are none. A logarithmic scale starts at the least value above 0. */
export function colorsOf(values: readonly number[], scale: ColorScale): Colors | undefined {
  const used = values.filter((value) => Number.isFinite(value) && (scale === 'linear' || value > 0))
  if (used.length === 0) return undefined
  const [least, most] = used.reduce(([a, b], value) => [Math.min(a, value), Math.max(b, value)], [Infinity, -Infinity])
  const [to, from] = scale === 'log' ? [Math.log, Math.exp] : [(value: number) => value, (value: number) => value]
  const [first, last] = [to(least), to(most)]
  const placeOf = (value: number) => (last === first ? 1 : (to(Math.max(value, least)) - first) / (last - first))
  return {
    ...{ scale, least, most },
    of: (value) => fillAt(placeOf(value)),
    at: (place) => (place === 0 ? least : place === 1 ? most : from(first + place * (last - first))),
  }
}

/** The colour at a place from 0 to 1. */
export function fillAt(place: number): Fill {
  const at = Math.min(1, Math.max(0, place)) * (STOPS.length - 1)
  const i = Math.min(Math.floor(at), STOPS.length - 2)
  const [from, to] = [channels(STOPS[i]!), channels(STOPS[i + 1]!)]
  const mixed = from.map((value, channel) => Math.round(value + (at - i) * (to[channel]! - value)))
  const fill = `#${mixed.map((value) => value.toString(16).padStart(2, '0')).join('')}`
  // Contrast with black is (l + 0.05) / 0.05, with white 1.05 / (l + 0.05): equal at 0.179.
  return { fill, text: luminance(mixed) > 0.179 ? '#000000' : '#ffffff' }
}

const channels = (color: string) => [1, 3, 5].map((at) => Number.parseInt(color.slice(at, at + 2), 16))

/** Relative luminance as WCAG defines it. */
function luminance(rgb: readonly number[]): number {
  const [r, g, b] = rgb.map((value) => {
    const share = value / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!
}
