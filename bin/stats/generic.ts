import { count, duration, percent, size, threeDigits } from '../units.ts'
import { firstRows, more, type StatsTable } from './section.ts'

/** Rows of a table that are shown. */
const ROWS_MAX = 20

type Fields = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const isList = (value: unknown): value is readonly Fields[] => Array.isArray(value) && value.some(isObject)

/** The values of an object that are known; those of nested objects in one line. */
export function factsOf(part: Fields): [string, string][] {
  return Object.entries(part).flatMap(([key, value]): [string, string][] => {
    const text = isList(value) ? '' : textOf(key, value)
    return text === '' ? [] : [[labelOf(key), text]]
  })
}

/** A row per object, a column per value; those of nested objects have columns, too. */
export function tableOf(list: readonly Fields[], max = ROWS_MAX): StatsTable {
  const { shown, rest } = firstRows(list.map(flat), max)
  const keys = [...new Set(shown.flatMap((row) => Object.keys(row)))]
  const isText = (key: string) => shown.some((row) => typeof row[key] === 'string' || Array.isArray(row[key]))
  const rows = shown.map((row) => keys.map((key) => textOf(key, row[key])))
  if (rest.length > 0) rows.push(keys.map((_, i) => (i === 0 ? more(rest) : '')))
  return { columns: keys.map((key, i) => ({ title: labelOf(key), isText: i === 0 || isText(key), rank: i })), rows }
}

function flat(row: Fields): Fields {
  return Object.fromEntries(
    Object.entries(row).flatMap(([key, value]): [string, unknown][] => {
      if (isList(value)) return []
      if (!isObject(value)) return [[key, value]]
      return Object.entries(value).flatMap(([inner, value]): [string, unknown][] =>
        // The unit last, so that it is found.
        typeof value === 'object'
          ? []
          : [[hasUnit(inner) || !hasUnit(key) ? `${key} ${inner}` : `${inner} ${key}`, value]],
      )
    }),
  )
}

const UNITS: readonly (readonly [RegExp, (value: number) => string])[] = [
  [/_ns$/, duration],
  // bounded: a key of the Analysis
  [/(^|_)bytes(_\w+)?$/, size],
  [/(^|_)share$/, percent],
  [/_per_s$/, (value) => `${threeDigits(value)}/s`],
  [/_ms$/, (value) => `${threeDigits(value)} ms`],
]

const hasUnit = (key: string) => UNITS.some(([pattern]) => pattern.test(key))

/** A value, in the unit that its key ends in; empty where it is not known. */
export function textOf(key: string, value: unknown): string {
  if (value === null || value === undefined) return ''
  if (typeof value === 'number') {
    if (key === 'context') return value === 0 ? '' : `0x${value.toString(16)}` // an address
    const unit = UNITS.find(([pattern]) => pattern.test(key))
    return unit ? unit[1](value) : Number.isInteger(value) ? count(value) : threeDigits(value)
  }
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (Array.isArray(value)) return value.map((value) => textOf(key, value)).join(', ')
  if (!isObject(value)) return String(value)
  return Object.entries(value)
    .flatMap(([inner, value]) => {
      const text = textOf(hasUnit(inner) ? inner : key, value)
      return text === '' || isList(value) ? [] : [`${hasUnit(inner) ? labelOf(inner) : inner} ${text}`]
    })
    .join(', ')
}

/** `wait` of `wait_ns`. */
export function labelOf(key: string): string {
  return key.replace(/_(ns|bytes|share|per_s|ms)$/, '').replaceAll('_', ' ')
}
