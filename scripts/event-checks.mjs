/**
 * Writes lib/generated/event-checks.ts: what the fields of each kind of event are, from the union TraceEvent in lib/model/events.ts, by which
 * events of programs are checked. With --check, writes nothing and exits 1 if the committed file is stale.
 */
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { put } from './generated.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const path = join(root, 'lib/generated/event-checks.ts')
const source = join(root, 'lib/model/events.ts')

const { options } = ts.parseJsonConfigFileContent(
  { ...ts.readConfigFile(join(root, 'tsconfig.json'), ts.sys.readFile).config, include: [] },
  ts.sys,
  root,
)
const program = ts.createProgram([source], { ...options, types: [] })
const checker = program.getTypeChecker()
const events = checker
  .getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(source)))
  .find(({ name }) => name === 'TraceEvent')

/** Checks that are made once, by their code: names, each after those that it uses. */
const constants = new Map()
const constant = (code) => {
  if (!constants.has(code)) constants.set(code, `check${constants.size}`)
  return constants.get(code)
}

const { Undefined, StringLiteral, BooleanLiteral } = ts.TypeFlags
const PRIMITIVES = [
  ['number', 'isNumber', ts.TypeFlags.Number],
  ['string', 'isText', ts.TypeFlags.String],
  ['bigint', 'isBigInt', ts.TypeFlags.BigInt],
  ['boolean', 'isBoolean', ts.TypeFlags.Boolean],
]
/** By the names that values of any realm have. */
const CLASSES = { Int32Array: 'Int32Array', ReadonlyMap: 'Map' }

/** The name of the check of a type. */
function checkOf(type) {
  const [, primitive] = PRIMITIVES.find(([, , flag]) => type.flags & flag) ?? []
  if (primitive) return primitive
  if (type.isUnion()) return unionOf(type.types.filter(({ flags }) => !(flags & Undefined)))
  const instance = CLASSES[type.symbol?.name]
  if (instance) return constant(`instance('${instance}')`)
  if (type.flags & StringLiteral) return constant(`oneOf(${JSON.stringify(type.value)})`)
  if (checker.isArrayType(type)) return constant(`list(${checkOf(checker.getTypeArguments(type)[0])})`)
  const [index] = checker.getIndexInfosOfType(type)
  if (index) return constant(`record(${checkOf(index.type)})`)
  if (!(type.flags & (ts.TypeFlags.Object | ts.TypeFlags.Intersection)))
    throw new Error(`${checker.typeToString(type)}: no type of events`)
  return constant(`object(${fieldsOf(type)})`)
}

function unionOf(types) {
  if (types.some(({ flags }) => flags & ts.TypeFlags.Null)) return 'isAnything' // a value of JSON
  const words = types.flatMap(({ flags, value }) => (flags & StringLiteral ? [JSON.stringify(value)] : [])).sort()
  const truths = types.filter(({ flags }) => flags & BooleanLiteral)
  const others = types.filter(({ flags }) => !(flags & (StringLiteral | BooleanLiteral)))
  const all = [
    ...(words.length > 0 ? [constant(`oneOf(${words.join(', ')})`)] : []),
    ...(truths.length > 0 ? ['isBoolean'] : []),
    ...others.map(checkOf),
  ]
  return all.length === 1 ? all[0] : constant(`any(${all.join(', ')})`)
}

/** Fields with their checks, and as code what is quick: the plain ones. */
function fieldsOf(type) {
  const [fields, quick] = [[], []]
  for (const field of checker.getPropertiesOfType(type)) {
    if (field.name === 'kind') continue
    const fieldType = checker.getTypeOfSymbol(field)
    const mayLack = fieldType.isUnion() && fieldType.types.some(({ flags }) => flags & Undefined)
    const check = checkOf(fieldType)
    fields.push(`${field.name}: ${mayLack ? `orNone(${check})` : check}`)
    const [plain] = PRIMITIVES.find(([, name]) => name === check) ?? []
    const value = `e.${field.name}`
    const isPlain = plain ? `typeof ${value} === '${plain}'` : `${value} !== undefined`
    if (plain || !mayLack) quick.push(mayLack ? `(${value} === undefined || ${isPlain})` : isPlain)
  }
  return `{ ${fields.join(', ')} }, (e) => ${quick.join(' && ')}`
}

const byKind = checker.getDeclaredTypeOfSymbol(events).types.map((type) => {
  const { value } = checker.getTypeOfSymbol(type.getProperty('kind'))
  return `  ${JSON.stringify(value)}: object(${fieldsOf(type)}),\n`
})

const text = `// Generated from lib/model/events.ts by scripts/event-checks.mjs; do not edit.
import { any, instance, isAnything, isBigInt, isBoolean, isNumber, isText, list, type ObjectCheck, object, oneOf, orNone, record } from '../model/checks.ts'

${[...constants].map(([code, name]) => `const ${name} = ${code}\n`).join('')}
/** The fields of events, by their kinds. */
export const EVENT_CHECKS: Readonly<Record<string, ObjectCheck>> = {
${byKind.join('')}}
`
put(path, text, 'event-checks')
