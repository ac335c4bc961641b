import { ANALYSIS_TYPES, type JsonFields, type JsonType } from '../generated/analysis-schema.ts'

/** A JSON Schema, or a part of one. */
export type JsonSchema = Readonly<Record<string, unknown>>

/**
 * The JSON Schema (draft 2020-12) of an Analysis: for programs in other languages, editors and validators. Fields that it does not contain are
 * allowed, because later versions add some. The package contains it as `analysis.schema.json`.
 */
export function analysisJsonSchema(): JsonSchema {
  const { Analysis, ...others } = ANALYSIS_TYPES
  const definitions = Object.entries(others).map(([name, fields]) => [name, objectOf(fields)])
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Analysis of a run by ggml2perfetto',
    ...objectOf(Analysis!),
    $defs: Object.fromEntries(definitions),
  }
}

function objectOf(fields: JsonFields): JsonSchema {
  const names = Object.keys(fields)
  const properties = names.map((name) => [name.replace(/\?$/, ''), schemaOf(fields[name]!)])
  return {
    type: 'object',
    required: names.filter((name) => !name.endsWith('?')),
    properties: Object.fromEntries(properties),
  }
}

function schemaOf(type: JsonType): JsonSchema {
  if (typeof type === 'string') return { type }
  if ('is' in type) return { enum: type.is }
  if ('any' in type) return { anyOf: type.any.map(schemaOf) }
  if ('list' in type) return { type: 'array', items: schemaOf(type.list) }
  if ('record' in type) return { type: 'object', additionalProperties: schemaOf(type.record) }
  if ('fields' in type) return objectOf(type.fields)
  if ('of' in type) return { $ref: `#/$defs/${type.of}` }
  const { length } = type.tuple
  return { type: 'array', prefixItems: type.tuple.map(schemaOf), minItems: length, maxItems: length, items: false }
}
