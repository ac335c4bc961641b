/** Inputs that grow in one thing: each thing of which an input can have more, such as lines, names, keys, levels. */

/** Makes an input with `count` more of something. */
export type Doubling = (count: number) => string

/** Lines of a log ahead of those that are repeated: enough for a reader to know the format. */
const [HEAD_LINES_MIN, HEAD_LINES_MAX] = [5, 40]
/** Kinds of lines, and lists of a document, that are looked at. */
const KINDS_MAX = 5
/** A number, or a word that may be a name; what has a letter before it is a part of a word. */
const FIELD = /0x[\da-f]+|(?<![\w.])\d+|(?<=\.)\d{6,}|\b[A-Za-z_][\w-]{2,}/gi

/** The n-th of a field: another number, or another name. */
function varied(field: string, n: number): string {
  if (/^0x/i.test(field)) return `0x${(BigInt(field) + BigInt(n) * 64n).toString(16)}`
  if (!/^\d/.test(field)) return `${field}${n}`
  return (BigInt(field) + BigInt(n)).toString().padStart(field.length, '0')
}

const numbersVaried = (line: string, n: number) =>
  line.replace(FIELD, (field) => (/^\d/.test(field) ? varied(field, n) : field))
const allVaried = (line: string, n: number) => line.replace(FIELD, (field) => varied(field, n))

const shapeOf = (line: string) => line.replace(/\d+/g, '#').slice(0, 60)

/** For each kind of line of a log, the last first: the same again, with other numbers, with other names, too; and one long line. */
export function doublingsOfLines(text: string): [string, Doubling][] {
  const lines = text.split('\n')
  const kinds = new Map<string, number>()
  for (const [at, line] of lines.entries()) {
    if (line.trim() !== '' && !kinds.has(shapeOf(line))) kinds.set(shapeOf(line), at)
  }
  return [...kinds.values()].slice(-KINDS_MAX).flatMap((at) => {
    const line = lines[at]!
    const headLines = Math.min(Math.max(at, HEAD_LINES_MIN), HEAD_LINES_MAX)
    const head = [...lines.slice(0, headLines), line, ''].join('\n')
    const more = (vary: (line: string, n: number) => string) => (count: number) =>
      head + Array.from({ length: count }, (_, n) => `${vary(line, n + 1)}\n`).join('')
    const name = (what: string) => `line ${at + 1}, ${what}`
    return [
      [name('the same'), more((line) => line)],
      [name('other numbers'), more(numbersVaried)],
      [name('other names'), more(allVaried)],
      [name('longer'), (count) => `${head}${line} ${line.repeat(Math.ceil((20 * count) / line.length))}\n`],
    ] satisfies [string, Doubling][]
  })
}

type Json = null | boolean | number | string | Json[] | { [key: string]: Json }
type Path = readonly (string | number)[]

/** A copy, with other numbers and texts. */
function variedJson(value: Json, n: number): Json {
  if (typeof value === 'number') return value + n
  if (typeof value === 'string') return /^\d+$/.test(value) ? varied(value, n) : `${value}${n}`
  if (Array.isArray(value)) return value.map((inner) => variedJson(inner, n))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, variedJson(inner, n)]))
}

type Container = Json[] | { [key: string]: Json }

/** Arrays and objects of a document that are not empty, by their paths; of the elements of an array, the last. */
function* containersOf(value: Json, path: Path = []): Generator<[Path, Container]> {
  if (typeof value !== 'object' || value === null || Object.keys(value).length === 0) return
  yield [path, value]
  const inner: [string | number, Json][] = Array.isArray(value)
    ? [[value.length - 1, value.at(-1)!]]
    : Object.entries(value)
  for (const [key, of] of inner) yield* containersOf(of, [...path, key])
}

/** The document, as text, with one container replaced. */
function withReplaced(document: Json, path: Path, by: string): string {
  const mark = '\u0001'
  const replaced = (value: Json, [key, ...rest]: Path): Json => {
    if (key === undefined) return mark
    if (Array.isArray(value)) return value.with(key as number, replaced(value[key as number]!, rest))
    const object = value as { [key: string]: Json }
    return { ...object, [key]: replaced(object[key]!, rest) }
  }
  return JSON.stringify(replaced(document, path)).replace(JSON.stringify(mark), () => by)
}

/** For each list and object of a document: more elements, the same or other ones; further levels. */
export function doublingsOfJson(document: Json): [string, Doubling][] {
  const all = [...containersOf(document)]
  const lists = all.filter(([, container]) => Array.isArray(container))
  const objects = all.filter(([, container]) => !Array.isArray(container))
  return [...lists.slice(0, KINDS_MAX), ...objects.slice(-KINDS_MAX)].flatMap(([path, container]) => {
    const last = Object.values(container).at(-1)!
    const more = (of: (n: number) => Json) => (count: number) => {
      const added = Array.from({ length: count }, (_, n) => of(n + 1))
      const grown = Array.isArray(container)
        ? [...container, ...added]
        : { ...container, ...Object.fromEntries(added.map((value, n) => [`key ${n}`, value])) }
      return withReplaced(document, path, JSON.stringify(grown))
    }
    const name = (what: string) => `${path.join('/')}: ${what}`
    return [
      [name('the same'), more(() => last)],
      [name('others'), more((n) => variedJson(last, n))],
      [name('levels'), (count) => withReplaced(document, path, '['.repeat(count) + ']'.repeat(count))],
    ] satisfies [string, Doubling][]
  })
}
