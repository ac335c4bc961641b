/** Something that is not of its type. */
export interface Mismatch {
  readonly field: string
  readonly expected: string
  readonly found: unknown
}

/** What values are of a type. */
export interface Check {
  /** The type, in words. */
  readonly expected: string
  isGood(value: unknown): boolean
  /** The part of a wrong value that is wrong. */
  mismatch(value: unknown, field: string): Mismatch
}

/** What objects have certain fields. */
export interface ObjectCheck extends Check {
  readonly fields: Readonly<Record<string, Check>>
  /** Are the fields that contain no others of their types? Quick. */
  // biome-ignore lint/suspicious/noExplicitAny: fields of what programs give have any type
  isGoodOutside(value: any): boolean
}

type Parts = (value: never, field: string) => readonly (readonly [Check, unknown, string])[]

/** `parts`: what a value contains, where its own type is right. */
function check(expected: string, isOf: (value: unknown) => boolean, parts: Parts = () => []): Check {
  return {
    expected,
    isGood: isOf,
    mismatch(value, field) {
      const wrong = parts(value as never, field).find(([part, inner]) => !part.isGood(inner))
      return wrong ? wrong[0].mismatch(wrong[1], wrong[2]) : { field, expected, found: value }
    },
  }
}

/** Any value. */
export const isAnything = check('a value', () => true)
/** A number. */
export const isNumber = check('a number', (value) => typeof value === 'number')
/** A text. */
export const isText = check('a text', (value) => typeof value === 'string')
/** True or false. */
export const isBoolean = check('true or false', (value) => typeof value === 'boolean')
/** A bigint. */
export const isBigInt = check('a bigint', (value) => typeof value === 'bigint')

const PLAIN: ReadonlySet<string> = new Set([isNumber, isText, isBoolean, isBigInt].map(({ expected }) => expected))

/** One of these words. */
export function oneOf(...words: readonly string[]): Check {
  const all = new Set<unknown>(words)
  return check(words.map((word) => JSON.stringify(word)).join(', '), (value) => all.has(value))
}

/** A value of any of these types. */
export function any(...checks: readonly Check[]): Check {
  const expected = [...new Set(checks.map((one) => one.expected))].join(' or ')
  return check(expected, (value) => checks.some((one) => one.isGood(value)))
}

/** A value of this type, or none. */
export function orNone(inner: Check): Check {
  const isGood = (value: unknown) => value === undefined || inner.isGood(value)
  return { ...inner, isGood }
}

/** An array of values of a type. */
export function list(item: Check): Check {
  return check(
    'an array',
    (value) => Array.isArray(value) && value.every((one) => item.isGood(one)),
    (value: unknown, field) => (Array.isArray(value) ? value.map((one, i) => [item, one, `${field}[${i}]`]) : []),
  )
}

/** An object with values of a type, which may be undefined. */
export function record(item: Check): Check {
  const orLacking = orNone(item)
  return check(
    'an object',
    (value) => isPlain(value) && Object.values(value).every((one) => orLacking.isGood(one)),
    (value: unknown, field) =>
      isPlain(value) ? Object.entries(value).map(([key, one]) => [orLacking, one, `${field}.${key}`]) : [],
  )
}

/** An object of a class, by its name: there may be several of one. */
export function instance(name: string): Check {
  return check(`a ${name}`, (value) => Object.prototype.toString.call(value) === `[object ${name}]`)
}

/** An object with these fields. */
export function object(
  fields: Readonly<Record<string, Check>>,
  isGoodOutside: ObjectCheck['isGoodOutside'],
): ObjectCheck {
  const names = Object.entries(fields)
  const nested = names.filter(([, field]) => !PLAIN.has(field.expected))
  const isGood = (value: unknown) =>
    isPlain(value) && isGoodOutside(value) && nested.every(([name, field]) => field.isGood(value[name]))
  const parts = (value: unknown, field: string) =>
    isPlain(value)
      ? names.map(([name, inner]) => [inner, value[name], field === '' ? name : `${field}.${name}`] as const)
      : []
  return { ...check('an object', isGood, parts), fields, isGoodOutside }
}

const isPlain = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
