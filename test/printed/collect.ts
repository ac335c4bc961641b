import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { NAMES, OLDER } from '../../bin/parser.ts'
import { ROOT } from '../root.ts'
import { filesIn, parse } from '../sources.ts'

/** Collects the command lines that the docs, the program's help and its messages print. */

const COMMANDS = [...NAMES, ...Object.keys(OLDER)].join('|')
/** What follows the program's name where it is a command line: a command, an option, a file, a placeholder. */
const BEGIN = new RegExp(`^(?:(?:${COMMANDS})(?![\\w-])|-|<|‹|[\\w./*-]+\\.\\w)`)
/** What ends a command line inside a sentence. */
const END =
  /^(?:[,;:?!|]*(?: |$)(?:lists|prints|describes|records|shows|finds|says|writes|wrote|announces|answers|and|or|with (?:an?|one|the|its)|takes|asks|needs|does|of two|is|are|it|which|by itself|has|have|uses|reads|opens|from which|in this|runs|also|on|to|make|see|cannot|can|for|again|then|adds|takes|works)\b|[,;:?!]+(?: |$)|[)`\n]| \(|\.(?: |$)| {2,}|\s*$)/

/** What is one word, whatever it contains: quoted texts, placeholders, outputs of other commands. */
const QUOTED = /^(?:"[^"]*"|'[^']*'|‹[^›]*›|<[^>]*>|\[[^\]]*\]|\$\([^)]*\))/

/** The command line that begins a text; it ends with the text, or where a sentence continues. Quotes are parts of it. */
function commandIn(text: string): string {
  for (let at = 0; at < text.length; at++) {
    const [quoted] = QUOTED.exec(text.slice(at)) ?? []
    if (quoted !== undefined) at += quoted.length - 1
    else if (END.test(text.slice(at, at + 40))) return text.slice(0, at)
  }
  return text
}

/** The command lines of this program in a text of sentences, without what surrounds them. */
export function linesIn(text: string): string[] {
  return text
    .split('ggml2perfetto ')
    .slice(1)
    .filter((rest) => BEGIN.test(rest))
    .map((rest) => `ggml2perfetto ${commandIn(rest).trim()}`)
}

/** The command lines of a script: comments and empty lines left out, continued lines joined. */
const scriptLines = (script: string) =>
  script
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
    .map((line) => line.replace(/(?:^|\s+)# .*$/, '').trim())
    .filter((line) => line !== '' && line !== '…')

/** Pages with command lines, by their path: README, SKILL.md, docs, those of native/. */
export const PAGES = ['README.md', 'SKILL.md', 'native/README.md', 'native/ebpf/README.md', ...docs()]

function docs(folder = 'docs'): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `${folder}/${name}`)
    .sort()
}

/** The command lines of a page: of its shell blocks, of what its blocks print, and of codes in its sentences. */
export function linesOfPage(path: string): string[] {
  const text = readFileSync(join(ROOT, path), 'utf8')
  const lines: string[] = []
  const sentences = text.replaceAll(/^( *)```(\w*)\n([\s\S]*?)^ *```$/gm, (_, _indent, language, block: string) => {
    if (language === 'sh') lines.push(...scriptLines(block))
    else if (language === 'console')
      for (const line of block.split('\n'))
        lines.push(...(line.startsWith('$ ') ? scriptLines(line.slice(2)) : linesIn(line)))
    else if (language === 'yaml') lines.push(...linesIn(block))
    return ''
  })
  for (const [, code] of sentences.matchAll(/`([^`]+)`/g))
    lines.push(...(/ggml2perfetto \S/.test(code!) ? [code!.replaceAll(/\s+/g, ' ')] : []))
  return lines
}

/** Lines of a page outside of its blocks that look like command lines: they belong into a block. */
export const unfenced = (path: string) =>
  readFileSync(join(ROOT, path), 'utf8')
    .replaceAll(/^( *)```[\s\S]*?^ *```$/gm, '')
    .split('\n')
    .filter((line) => /^ {4,}(?:ggml2perfetto|\(ggml2perfetto|sudo|npx) /.test(line))

/** The text of an expression of strings; what is computed is written as ‹expression›. */
function textOf(node: ts.Node): string {
  if (ts.isStringLiteralLike(node)) return node.text
  if (ts.isParenthesizedExpression(node)) return textOf(node.expression)
  if (ts.isTemplateExpression(node))
    return node.head.text + node.templateSpans.map((span) => textOf(span.expression) + span.literal.text).join('')
  if (ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.PlusToken)
    return textOf(node.left) + textOf(node.right)
  return `‹${node.getText()}›`
}

const isText = (node: ts.Node) =>
  ts.isStringLiteralLike(node) ||
  ts.isTemplateExpression(node) ||
  (ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.PlusToken)

function textsIn(node: ts.Node, texts: string[] = []): string[] {
  if (!isText(node)) ts.forEachChild(node, (child) => void textsIn(child, texts))
  else {
    texts.push(textOf(node))
    if (ts.isTemplateExpression(node)) for (const { expression } of node.templateSpans) textsIn(expression, texts)
  }
  return texts
}

/** The command lines in all texts of the program, each with its file. `$0` is what yargs replaces by the program's name. */
export function linesOfProgram(): (readonly [file: string, line: string])[] {
  return ['lib', 'bin']
    .flatMap((room) => filesIn(room))
    .filter((path) => /ggml2perfetto \S|\$0 /.test(readFileSync(join(ROOT, path), 'utf8')))
    .flatMap((path) => {
      const lines = textsIn(parse(path)).flatMap((text) => [
        ...text
          .split('\n')
          .filter((line) => line.includes('$0 '))
          .map((line) =>
            line
              .trim()
              .replaceAll('$0', 'ggml2perfetto')
              .replace(/ {2,}.*/, ''),
          ),
        ...linesIn(text),
      ])
      return [...new Set(lines)].map((line) => [path, line] as const)
    })
}
