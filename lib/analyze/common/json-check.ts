import { UsageError } from '../../errors.ts'
import type { JsonFields, JsonType } from '../../generated/analysis-schema.ts'
import { isModelSize, SIZE_MAX } from '../../model/model-shape.ts'

/** A kind of JSON document that is read: a stored Analysis, for example. */
export interface DocumentKind {
  /** Completes `not …`: `a readable Analysis`. */
  readonly title: string
  /** Fields of its interfaces by their names, and of the document itself. */
  readonly types: { readonly [name: string]: JsonFields }
  readonly fields: JsonFields
  /** Fields that earlier versions did not write, and what they are where they are missing and cannot be null. */
  readonly added?: Readonly<Record<string, unknown>>
  /** What a number with this key must be, where it is something else. */
  wrongNumber(key: string, value: number): string | undefined
  /** For all errors. */
  readonly hint?: string
}

/** Rates that no machine exceeds, and times that no measurement takes: ratios of others would not be numbers. */
const [MEASURED_LEAST, MEASURED_MOST] = [1e-9, 1e24]

/** What numbers of a measurement must be: times and rates above 0, all others whole and from 1 on; with `zeros`, also 0. */
export const wrongMeasurement =
  (zeros: readonly string[] = []): DocumentKind['wrongNumber'] =>
  (key, value) => {
    if (/(^|_)(ns|rate|one|all|median)$/.test(key))
      return value >= MEASURED_LEAST && value <= MEASURED_MOST
        ? undefined
        : `number from ${MEASURED_LEAST} to ${MEASURED_MOST}`
    const least = zeros.includes(key) ? 0 : 1
    return isModelSize(value) && value >= least ? undefined : `whole number from ${least} to ${SIZE_MAX}`
  }

/** Fields of a JSON object. */
export type Fields = Record<string, unknown>

/** Characters of a name or a word that are shown. */
const SHOWN_MAX = 40

/** The value of a JSON text. Throws UsageError that states where the text, of the input `name`, is no JSON. */
export function documentOf(text: string, name: string, kind: DocumentKind): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw wrongDocument(name, kind, 'JSON', (error as Error).message, kind.hint ?? 'the file was cut or changed')
  }
}

/** Throws UsageError for a field that is not of its type. Other fields are deleted; those that the document lacks become null, empty or as `added`. */
export function checkDocument(document: unknown, name: string, kind: DocumentKind): void {
  if (!isObject(document)) throw wrongDocument(name, kind, 'an object', kindOf(document), kind.hint)
  new Check(name, kind).fields(document, kind.fields, '')
}

/** Compares a document with its types. */
class Check {
  constructor(
    private readonly name: string,
    private readonly kind: DocumentKind,
  ) {}

  fields(object: Fields, fields: JsonFields, place: string): void {
    const { added = {} } = this.kind
    for (const key of Object.keys(object))
      if (!Object.hasOwn(fields, key) && !Object.hasOwn(fields, `${key}?`)) delete object[key]
    for (const [field, type] of Object.entries(fields)) {
      const isOptional = field.endsWith('?')
      const key = isOptional ? field.slice(0, -1) : field
      if (!Object.hasOwn(object, key)) {
        const empty = isOptional ? undefined : emptyOf(type, added[key])
        if (empty !== undefined) object[key] = empty
        if (isOptional || empty !== undefined) continue
      }
      this.value(object[key], type, key, placeOf(place, key))
    }
  }

  /** `key`: of the field that contains it. */
  private value(value: unknown, type: JsonType, key: string, place: string): void {
    if (!isOf(value, type)) throw this.wrong(`${place}: ${inWords(type)}`, foundOf(value, type))
    const wrong = typeof value === 'number' ? this.kind.wrongNumber(key, value) : undefined
    if (wrong !== undefined) throw this.wrong(`${place}: ${wrong}`, String(value))
    const kind = typeof type === 'object' && 'any' in type ? type.any.find((jsonType) => isOf(value, jsonType))! : type
    if (typeof kind === 'string' || 'is' in kind) return
    if ('of' in kind || 'fields' in kind)
      this.fields(value as Fields, 'of' in kind ? this.kind.types[kind.of]! : kind.fields, place)
    else if ('record' in kind)
      for (const [name, part] of Object.entries(value as Fields))
        this.value(part, kind.record, key, placeOf(place, name))
    else
      for (const [i, part] of (value as unknown[]).entries())
        this.value(part, 'tuple' in kind ? kind.tuple[i]! : (kind as { list: JsonType }).list, key, `${place}[${i}]`)
  }

  private wrong(expected: string, found: string): UsageError {
    return wrongDocument(this.name, this.kind, expected, found, this.kind.hint)
  }
}

/** A field of an object: names in documents may contain anything. */
const placeOf = (place: string, key: string) =>
  /^[\w-]{1,40}$/.test(key) ? (place === '' ? key : `${place}.${key}`) : `${place}[${shown(key)}]`

const shown = (text: string) => JSON.stringify(text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}…` : text)

/** Is it of this type, apart from what it contains? */
function isOf(value: unknown, type: JsonType): boolean {
  if (type === 'null') return value === null
  if (type === 'number') return Number.isFinite(value)
  if (typeof type === 'string') return typeof value === type
  if ('is' in type) return type.is.includes(value as string | boolean)
  if ('any' in type) return type.any.some((jsonType) => isOf(value, jsonType))
  if ('list' in type) return Array.isArray(value)
  if ('tuple' in type) return Array.isArray(value) && value.length === type.tuple.length
  return isObject(value)
}

/** What a field that is missing is, where its type has such a value. */
function emptyOf(type: JsonType, added: unknown): unknown {
  if (typeof type === 'string') return added
  if ('any' in type) return type.any.includes('null') ? null : added
  if ('list' in type) return []
  return 'record' in type ? {} : added
}

function inWords(type: JsonType): string {
  if (typeof type === 'string') return type
  if ('is' in type) return type.is.map((choice) => JSON.stringify(choice)).join(', ')
  if ('any' in type) return type.any.map(inWords).join(' or ')
  if ('tuple' in type) return `array of ${type.tuple.length}`
  return 'list' in type ? 'array' : 'object'
}

/** Where a word is expected, the word that was found, as far as its begin shows it. */
export function foundOf(value: unknown, type: JsonType): string {
  const isWord = typeof value === 'string' && typeof type === 'object'
  return isWord ? shown(value) : kindOf(value)
}

/** Is it an object of JSON, and no array? */
export const isObject = (value: unknown): value is Fields => kindOf(value) === 'object'

function kindOf(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (value === null) return 'null'
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value)
  return Array.isArray(value) ? 'array' : typeof value
}

/** The error for a document that is not of its kind. */
export function wrongDocument(
  name: string,
  { title }: Pick<DocumentKind, 'title'>,
  expected: string,
  found: string,
  hint?: string,
): UsageError {
  const sentence = `${name}: not ${title}: expected ${expected}, found ${found.replaceAll('\n', '\\n')}`
  return new UsageError(hint === undefined ? sentence : `${sentence}\nhint: ${hint}`)
}
