import fc from 'fast-check'

/** Documents of JSON in which one value is another one. */

type Path = readonly (string | number)[]

const nested = (depth: number): unknown => (depth === 0 ? 1 : [nested(depth - 1)])

/** Values that a damaged or hostile document may contain in place of any other; undefined: the field is missing. */
const OTHERS: readonly unknown[] = [
  ...[undefined, null, true, false, '', 'x', 'nan', '1e999', '7', '__proto__', 'constructor', 'a\u202eb\0c\nd'],
  ...['x'.repeat(5000), [], {}, [[[1]]], [null], { toString: 1, valueOf: 1 }, { length: -1 }, nested(200)],
  ...[-1, -1000, 0, 0.5, 1e9, 1e15, 2 ** 53, 1e24, 1e308, -1e308, Number.MIN_VALUE, -0.001],
]

/** The place of a value of each kind: of lists the first and the last element. */
export function* placesOf(value: unknown, path: Path = [], seen = new Set<string>()): Generator<Path> {
  const kind = path.map((key) => (typeof key === 'number' ? '#' : key)).join('.')
  if (path.length > 0 && seen.has(kind)) return
  seen.add(kind)
  if (path.length > 0) yield path
  if (typeof value !== 'object' || value === null) return
  for (const [key, part] of Object.entries(value))
    yield* placesOf(part, [...path, Array.isArray(value) ? +key : key], seen)
}

/** The text of a document with another value at a place. */
export function withValue(document: unknown, path: Path, value: unknown): string {
  const copy = structuredClone(document)
  let at = copy as Record<string | number, unknown>
  for (const key of path.slice(0, -1)) at = at[key] as typeof at
  const last = path.at(-1)!
  if (value !== undefined) at[last] = value
  else if (Array.isArray(at)) at.splice(last as number, 1)
  else delete at[last]
  return JSON.stringify(copy)
}

/** What is done to the text of a document as a whole. */
const TEXTS: readonly ((text: string) => string)[] = [
  (text) => text.slice(0, text.length >> 1),
  (text) => `${text}}`,
  (text) => text.replace(/":\s*-?\d+/, '": NaN'),
  (text) => text.replace(/":\s*-?\d+/, '": 1e999'),
  (text) => text.replace('{', '{"__proto__": {"all": 1, "cpu": 7},'),
  (text) => text.replace('{', '{"constructor": 1, "toString": 2,'),
  (text) => text.replace(/("\w+")(: ?)(?="|\d)/, '$1$2{}, $1$2'), // twice: the last one counts
  () => '[]',
  () => 'null',
  () => '7',
  () => '',
  () => '{}',
  () => '['.repeat(100_000),
  () => `{"a": ${'['.repeat(100_000)}${']'.repeat(100_000)}}`,
]

/** A damaged document: its text, and what was done to it. */
export interface Damaged {
  readonly text: string
  readonly what: string
}

/** A document that differs in one value, or whose text is damaged. */
export function damaged(document: object): fc.Arbitrary<Damaged> {
  const text = JSON.stringify(document)
  const inPlace = fc.tuple(fc.constantFrom(...placesOf(document)), fc.constantFrom(...OTHERS)).map(([path, value]) => ({
    text: withValue(document, path, value),
    what: `${path.join('.')}: ${String(JSON.stringify(value)).slice(0, 40)}`,
  }))
  const whole = fc.constantFrom(...TEXTS).map((change) => ({ text: change(text), what: String(change) }))
  return fc.oneof({ weight: 12, arbitrary: inPlace }, { weight: 1, arbitrary: whole })
}
