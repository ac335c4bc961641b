/**
 * Writes lib/generated/analysis-schema.ts: the types of the fields of an Analysis, from lib/analyze/analysis.ts, and of files of measurements, by which stored
 * ones are checked. With --check, writes nothing and exits 1 if the committed file is stale.
 */
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { put } from './generated.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const path = join(root, 'lib/generated/analysis-schema.ts')
/** Where the documents are defined. */
const SOURCES = {
  Analysis: join(root, 'lib/analyze/analysis.ts'),
  KernelTimes: join(root, 'lib/analyze/what-if/kernels.ts'),
  MeasuredPeaks: join(root, 'lib/analyze/model/peaks.ts'),
}

const { options } = ts.parseJsonConfigFileContent(
  { ...ts.readConfigFile(join(root, 'tsconfig.json'), ts.sys.readFile).config, include: Object.values(SOURCES) },
  ts.sys,
  root,
)
const program = ts.createProgram(Object.values(SOURCES), { ...options, types: [] })
const checker = program.getTypeChecker()

/** Fields of interfaces by name, in the order in which they are found. */
let named = {}

const PRIMITIVES = ts.TypeFlags.String | ts.TypeFlags.Number | ts.TypeFlags.Boolean | ts.TypeFlags.Null

/** A type as `Type` of the generated file. */
function typeOf(type) {
  if (type.flags & PRIMITIVES) return checker.typeToString(type)
  if (type.flags & ts.TypeFlags.StringLiteral) return { is: [type.value] }
  if (type.flags & ts.TypeFlags.BooleanLiteral) return { is: [checker.typeToString(type) === 'true'] }
  if (type.isUnion()) return unionOf(type.types.filter(({ flags }) => !(flags & ts.TypeFlags.Undefined)))
  if (checker.isTupleType(type)) return { tuple: checker.getTypeArguments(type).map(typeOf) }
  if (checker.isArrayType(type)) return { list: typeOf(checker.getTypeArguments(type)[0]) }
  const [index] = checker.getIndexInfosOfType(type)
  if (index) return { record: typeOf(index.type) }
  if (!(type.flags & ts.TypeFlags.Object)) throw new Error(`${checker.typeToString(type)}: no type of JSON`)
  const { name } = type.aliasSymbol ?? type.symbol
  if (type.aliasSymbol || name === '__type') return { fields: fieldsOf(type) }
  if (!(name in named)) {
    named[name] = undefined
    named[name] = fieldsOf(type)
  }
  return { of: name }
}

function unionOf(types) {
  const all = types.map(typeOf)
  const literals = all.flatMap((type) => type.is ?? [])
  const rest = all.filter((type) => type.is === undefined && type !== 'null')
  if (literals.length > 0) rest.push(isBoolean(literals) ? 'boolean' : { is: literals })
  if (all.includes('null')) rest.push('null')
  return rest.length === 1 ? rest[0] : { any: rest }
}

const isBoolean = (literals) => literals.length === 2 && literals.every((of) => typeof of === 'boolean')

/** Types of fields by name; `?` ends the names of those that may be missing. */
const fieldsOf = (type) =>
  Object.fromEntries(
    checker.getPropertiesOfType(type).map((of) => {
      const isOptional = (of.flags & ts.SymbolFlags.Optional) !== 0
      return [`${of.name}${isOptional ? '?' : ''}`, typeOf(checker.getTypeOfSymbol(of))]
    }),
  )

/** The lines of some documents, and of the interfaces that they refer to. */
function linesOf(...documents) {
  named = {}
  for (const document of documents) {
    const module = checker.getSymbolAtLocation(program.getSourceFile(SOURCES[document]))
    typeOf(checker.getDeclaredTypeOfSymbol(checker.getExportsOfModule(module).find(({ name }) => name === document)))
  }
  return Object.entries(named).map(([name, fields]) => `  ${name}: ${JSON.stringify(fields)},\n`)
}

const text = `// Generated from lib/analyze/analysis.ts by scripts/analysis-schema.mjs; do not edit.

/** A type of JSON. */
export type JsonType =
  | 'string'
  | 'number'
  | 'boolean'
  | 'null'
  | { readonly is: readonly (string | boolean)[] }
  | { readonly list: JsonType }
  | { readonly tuple: readonly JsonType[] }
  | { readonly record: JsonType }
  | { readonly any: readonly JsonType[] }
  | { readonly of: string }
  | { readonly fields: JsonFields }

/** Types of an object's fields by name; \`?\` ends the names of those that may be missing. */
export type JsonFields = { readonly [name: string]: JsonType }

/** Fields of an Analysis, and of the interfaces that it refers to. */
export const ANALYSIS_TYPES: { readonly [name: string]: JsonFields } = {
${linesOf('Analysis').join('')}}

/** The same of measurements of a machine. */
export const MEASURED_TYPES: { readonly [name: string]: JsonFields } = {
${linesOf('KernelTimes', 'MeasuredPeaks').join('')}}
`
put(path, text, 'analysis-schema')
