/**
 * Writes docs/reference/exports.md: all names that the entries of the package export, each with the first sentence of its documentation. With --check,
 * writes nothing and exits 1 if the committed page is stale, a name is not documented, or a type of an exported signature has no exported name.
 */
import { join } from 'node:path'
import ts from 'typescript'
import { checker, entries, fileOf, program, root } from './entries.mjs'
import { put } from './generated.mjs'

const path = join(root, 'docs/reference/exports.md')

const bare = []

/** The first sentence of a text, on one line, without links. */
const firstSentence = (text) =>
  /^.*?[.](?=\s|$)|^.*/s
    .exec(text.replace(/\{@link ([^}]+)\}/g, '`$1`').replace(/\s+/g, ' '))[0]
    .replaceAll('|', '\\|')
    .trim()

/** A format's title is its documentation. */
const titleOf = ({ valueDeclaration }) => /title: '((?:[^'\\]|\\.)*)'/.exec(valueDeclaration?.getText() ?? '')?.[1]

function textOf(symbol, entry) {
  const text = ts.displayPartsToString(symbol.getDocumentationComment(checker))
  const isFormat = symbol.valueDeclaration?.getSourceFile().fileName.includes('/lib/read/')
  const title =
    text === '' && isFormat ? (titleOf(symbol) ?? ' ').replace(/^\s*$/, 'A format of that family') : undefined
  if (text === '' && title === undefined) bare.push(`${entry}: ${symbol.name}`)
  return title === undefined ? firstSentence(text) : `The format: ${title}.`
}

function sectionOf(key) {
  const name = key === '.' ? 'ggml2perfetto' : `ggml2perfetto${key.slice(1)}`
  const module = program.getSourceFile(fileOf(key))
  const [about] = ts.getLeadingCommentRanges(module.text, 0) ?? []
  const rows = checker.getExportsOfModule(checker.getSymbolAtLocation(module)).map((exported) => {
    const symbol = exported.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported
    const isType = !(symbol.flags & ts.SymbolFlags.Value) || isTypeOnly(exported)
    return { name: exported.name, isType, text: textOf(symbol, name) }
  })
  rows.sort((a, b) => (a.name.toLowerCase() < b.name.toLowerCase() ? -1 : 1))
  const table = (title, chosen) =>
    chosen.length === 0
      ? ''
      : `\n| ${title} | |\n|---|---|\n${chosen.map(({ name, text }) => `| \`${name}\` | ${text} |`).join('\n')}\n`
  const first = module.text
    .slice(about.pos, about.end)
    .replace(/^\/\*\*|\*\/$|^ \* ?/gm, '')
    .trim()
  return `\n## ${name}\n\n${first}\n${table(
    'value',
    rows.filter(({ isType }) => !isType),
  )}${table(
    'type',
    rows.filter(({ isType }) => isType),
  )}`
}

/** Is a value exported as a type only, by `export type`? */
function isTypeOnly(exported) {
  for (let at = exported; at.flags & ts.SymbolFlags.Alias; at = checker.getImmediateAliasedSymbol(at))
    if (at.declarations?.some((declaration) => ts.isTypeOnlyImportOrExportDeclaration(declaration))) return true
  return false
}

/** Types of ours that the declarations of exported names refer to, and that no entry exports: nobody can name them. */
function withoutName() {
  const exported = entries.flatMap((key) =>
    checker.getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(fileOf(key)))).map((name) => ({
      isType: isTypeOnly(name),
      symbol: resolved(name),
    })),
  )
  const named = new Set(exported.map(({ symbol }) => symbol))
  const missing = new Set()
  const look = (node, isType) => {
    if (ts.isBlock(node) || isHidden(node, isType)) return
    const name = ts.isTypeReferenceNode(node)
      ? node.typeName
      : ts.isExpressionWithTypeArguments(node) && node.expression
    const symbol = name && resolved(checker.getSymbolAtLocation(name))
    const file = symbol?.declarations?.[0].getSourceFile().fileName
    const isOurs = file?.startsWith(join(root, 'lib')) && !(symbol.flags & ts.SymbolFlags.TypeParameter)
    if (isOurs && !named.has(symbol)) missing.add(`${file.slice(root.length)}: ${symbol.name}`)
    ts.forEachChild(node, (child) => child !== node.initializer && look(child, isType))
  }
  for (const { symbol, isType } of exported) for (const node of symbol.declarations ?? []) look(node, isType)
  return [...missing]
}

const resolved = (symbol) => (symbol && symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol)

/** Parts of a class that its users do not see: of one that is exported as a type, also how it is made, and what is protected. */
function isHidden(node, isType) {
  const has = (kind) => node.modifiers?.some((modifier) => modifier.kind === kind)
  const isMade = ts.isConstructorDeclaration(node) || has(ts.SyntaxKind.ProtectedKeyword)
  return has(ts.SyntaxKind.PrivateKeyword) || (isType && isMade)
}

const page = `# All names

Generated from the documentation in the code by \`node scripts/exports-docs.mjs\`. [library.md](../library.md) shows how they are used. Types of events are in
[\`lib/model\`](../architecture.md), fields of an Analysis in [analysis.md](analysis.md), columns of tables in [dataset.md](dataset.md).
${entries.map(sectionOf).join('')}`

if (bare.length > 0) {
  console.error(`without documentation:\n${bare.join('\n')}`)
  process.exit(1)
}
const unnamed = withoutName()
if (unnamed.length > 0) {
  console.error(`types of exported signatures that no entry exports:\n${unnamed.join('\n')}`)
  process.exit(1)
}
put(path, page, 'exports-docs')
