import { UsageError } from '../errors.ts'
import { ANALYSIS_TYPES, type JsonFields, type JsonType } from '../generated/analysis-schema.ts'
import { ANALYSIS_SCHEMA, type Analysis } from './analysis.ts'
import { countsOfLosses, lossesNamed } from './run/losses.ts'
import { NO_VERDICT, verdictOf } from './verdict/verdict.ts'

const [SCHEMA, VERSION] = ANALYSIS_SCHEMA.split('/') as [string, string]

/** Reads a stored Analysis. `name` is that of the input in errors. Throws UsageError if the text is no Analysis, or a newer one. */
export function parseAnalysis(text: string, name: string): Analysis {
  let document: unknown
  try {
    document = JSON.parse(text)
  } catch (error) {
    throw wrong(name, 'JSON', (error as Error).message, 'the file was cut or changed')
  }
  const schema = isObject(document) ? document['schema'] : undefined
  const [, kind, version] = /^(.*)\/(\d+)$/.exec(String(schema)) ?? []
  if (typeof schema !== 'string' || kind !== SCHEMA)
    throw wrong(name, `"schema": "${ANALYSIS_SCHEMA}"`, schema === undefined ? 'no schema' : JSON.stringify(schema))
  if (version !== VERSION) {
    const hint = Number(version) > Number(VERSION) ? 'a newer ggml2perfetto wrote it: update this one' : undefined
    throw wrong(name, `"schema": "${ANALYSIS_SCHEMA}"`, JSON.stringify(schema), hint)
  }
  const known = hasLosses(document)
  new Check(name).fields(document as Fields, ANALYSIS_TYPES['Analysis']!, '')
  const analysis = known ? (document as Analysis) : withLosses(document as Analysis)
  return analysis.verdict === NO_VERDICT ? { ...analysis, verdict: verdictOf(analysis) } : analysis
}

type Fields = Record<string, unknown>

/** What earlier versions did not write and cannot be null: what was true of all that they wrote, or what claims least. */
const ADDED: Readonly<Record<string, unknown>> = {
  times: 'recorded',
  verdict: NO_VERDICT,
  ttft_runs: 1,
  further_runs: 0,
  timed: 0,
  migration_ns: 0,
  exposed_migration_ns: 0,
  is_clear: false,
  calls_ns: 0,
}

/** Compares a document with its types. Fields that it lacks become null, empty or as `ADDED`, as in documents of earlier versions. */
class Check {
  constructor(private readonly name: string) {}

  fields(object: Fields, fields: JsonFields, place: string): void {
    for (const [field, type] of Object.entries(fields)) {
      const isOptional = field.endsWith('?')
      const key = isOptional ? field.slice(0, -1) : field
      if (!Object.hasOwn(object, key)) {
        const empty = isOptional ? undefined : emptyOf(type, ADDED[key])
        if (empty !== undefined) object[key] = empty
        if (isOptional || empty !== undefined) continue
      }
      this.value(object[key], type, place === '' ? key : `${place}.${key}`)
    }
  }

  private value(value: unknown, type: JsonType, place: string): void {
    if (!isOf(value, type)) throw wrong(this.name, `${place}: ${inWords(type)}`, foundOf(value, type))
    const kind = typeof type === 'object' && 'any' in type ? type.any.find((jsonType) => isOf(value, jsonType))! : type
    if (typeof kind === 'string' || 'is' in kind) return
    if ('of' in kind || 'fields' in kind) this.fields(value as Fields, fieldsOf(kind), place)
    else if ('record' in kind)
      for (const [key, part] of Object.entries(value as Fields)) this.value(part, kind.record, `${place}.${key}`)
    else
      for (const [i, part] of (value as unknown[]).entries())
        this.value(part, 'tuple' in kind ? kind.tuple[i]! : (kind as { list: JsonType }).list, `${place}[${i}]`)
  }
}

const fieldsOf = (type: { of: string } | { fields: JsonFields }) =>
  'of' in type ? ANALYSIS_TYPES[type.of]! : type.fields

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
function foundOf(value: unknown, type: JsonType): string {
  const isWord = typeof value === 'string' && typeof type === 'object'
  if (isWord) return JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value)
  return kindOf(value)
}

/** Earlier versions had no losses of inputs, and counted other issues as losses, too. */
const hasLosses = (document: unknown) => {
  const { inputs } = document as Partial<Analysis>
  return !Array.isArray(inputs) || inputs.some((input) => isObject(input) && 'losses' in input)
}

function withLosses(document: Analysis): Analysis {
  const inputs = document.inputs.map((input) => ({ ...input, losses: lossesNamed(input.issues) }))
  return { ...document, inputs, run: { ...document.run, losses: countsOfLosses(inputs) } }
}

const isObject = (value: unknown): value is Fields => kindOf(value) === 'object'

function kindOf(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (value === null) return 'null'
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value)
  return Array.isArray(value) ? 'array' : typeof value
}

function wrong(name: string, expected: string, found: string, hint?: string): UsageError {
  const sentence = `${name}: not a readable Analysis: expected ${expected}, found ${found.replaceAll('\n', '\\n')}`
  return new UsageError(hint === undefined ? sentence : `${sentence}\nhint: ${hint}`)
}
