/**
 * Writes the fields of an Analysis into docs/reference/analysis.md, from the types in lib/analyze and their comments. With --check, writes
 * nothing and exits 1 if the document is stale.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { put } from './generated.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const path = join(root, 'docs/reference/analysis.md')
const [begin, end] = [
  '<!-- Made by scripts/analysis-docs.mjs from the comments in lib/analyze. -->\n',
  '<!-- The end of what it makes. -->\n',
]

/** Interfaces and type aliases by name; where two have one name, that of lib/analyze. */
const types = new Map()
for (const room of ['lib/model', 'lib/analyze']) {
  for (const name of readdirSync(join(root, room), { recursive: true, encoding: 'utf8' })) {
    if (!name.endsWith('.ts')) continue
    const file = join(root, room, name)
    for (const statement of ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, true)
      .statements)
      if (ts.isInterfaceDeclaration(statement) || ts.isTypeAliasDeclaration(statement))
        types.set(statement.name.text, statement)
  }
}

/** The text of the comment of a declaration. */
const commentOf = (node) => {
  const [doc] = ts.getJSDocCommentsAndTags(node)
  const text = typeof doc?.comment === 'string' ? doc.comment : (ts.getTextOfJSDocComment(doc?.comment) ?? '')
  return text.replace(/\s+/g, ' ').replace(/\{@link (\w+)(?:\.\w+)?\}/g, '`$1`')
}

const UNITS = [
  [/_ns$/, 'ns'],
  [/(^|_)share$/, '0 to 1'],
  [/(^|_)bytes(_|$)/, 'bytes'],
]
const LIST = new Set(['ReadonlyArray', 'Array'])
const SAME = new Set(['Readonly', 'Partial', 'Required'])

/** Interfaces to describe, in the order in which they are found. */
const found = ['Analysis']

function linkTo(name) {
  if (!types.has(name)) throw new Error(`no type is called ${name}`)
  if (!found.includes(name)) found.push(name)
  return `[${name}](#${name.toLowerCase()})`
}

/** ` by phase`, of the keys of a record; empty for any text. */
const byKey = (of) => {
  const named = ts.isUnionTypeNode(of) ? of.types.find(ts.isTypeReferenceNode) : of
  return named && ts.isTypeReferenceNode(named)
    ? ` by ${named.typeName
        .getText()
        .replace(/(?<=[a-z])[A-Z]/g, ' $&')
        .toLowerCase()}`
    : ''
}

/** A type in words; interfaces that it refers to are described later. */
function inWords(node, name) {
  if (ts.isTypeOperatorNode(node) || ts.isParenthesizedTypeNode(node)) return inWords(node.type, name)
  if (ts.isArrayTypeNode(node)) return `list of ${inWords(node.elementType, name)}`
  if (ts.isTupleTypeNode(node))
    return `list of ${[...new Set(node.elements.map((of) => inWords(of, name)))].join(', ')}`
  if (ts.isNamedTupleMember(node)) return inWords(node.type, name)
  if (ts.isUnionTypeNode(node)) {
    const words = node.types.map((of) => inWords(of, name)).filter((word) => word !== 'undefined')
    return words.join(words.every((word) => word.startsWith('`')) ? ', ' : ' or ')
  }
  if (ts.isLiteralTypeNode(node))
    return node.literal.kind === ts.SyntaxKind.NullKeyword ? 'null' : `\`${node.literal.text}\``
  if (ts.isTypeLiteralNode(node)) return 'object'
  if (ts.isTypeQueryNode(node)) return 'text'
  if (ts.isTypeReferenceNode(node)) {
    const [of, value] = node.typeArguments ?? []
    const to = node.typeName.getText()
    if (SAME.has(to)) return inWords(of, name)
    if (LIST.has(to)) return `list of ${inWords(of, name)}`
    if (to === 'Record') return `object of ${inWords(value, name)}${byKey(of)}`
    const type = types.get(to)
    if (type && ts.isTypeAliasDeclaration(type)) return inWords(type.type, name)
    return linkTo(to)
  }
  const word = node.getText()
  if (word === 'string') return 'text'
  const unit = UNITS.find(([pattern]) => pattern.test(name))?.[1]
  return word === 'number' && unit ? `number (${unit})` : word
}

/** Object types in a type, such as that of the elements of a list. */
function literalsIn(node) {
  if (ts.isTypeLiteralNode(node)) return [node]
  const found = []
  node.forEachChild((child) => {
    found.push(...literalsIn(child))
  })
  return found
}

const cell = (text) => text.replaceAll('|', '\\|')

/** A row per field; fields of an object type in it follow. */
function rowsOf(members, prefix = '') {
  return members.flatMap((member) => {
    const name = member.name.getText()
    const isOptional = member.questionToken !== undefined
    const type = inWords(member.type, name) + (isOptional ? ', or missing' : '')
    return [
      `| \`${prefix}${name}\` | ${cell(type)} | ${cell(commentOf(member))} |`,
      ...literalsIn(member.type).flatMap((of) => rowsOf(of.members, `${prefix}${name}.`)),
    ]
  })
}

function describe(name) {
  const type = types.get(name)
  const parents = (type.heritageClauses ?? []).flatMap(({ types }) =>
    types.map(({ expression }) => linkTo(expression.text)),
  )
  const also = parents.length === 0 ? [] : [`All fields of ${parents.join(', ')}, and:`, '']
  return [
    `### ${name}`,
    '',
    commentOf(type),
    '',
    ...also,
    '| field | value | meaning |',
    '|---|---|---|',
    ...rowsOf(type.members),
    '',
  ]
}

const lines = []
for (let i = 0; i < found.length; i++) lines.push(...describe(found[i]))
const text = readFileSync(path, 'utf8')
const [from, to] = [text.indexOf(begin) + begin.length, text.indexOf(end)]
const made = `${text.slice(0, from)}\n${lines.join('\n')}\n${text.slice(to)}`
put(path, made, 'analysis-docs')
