import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import ts from 'typescript'
import { missingByFacts } from '../lib/read/ggtrace/loss.ts'
import { ROOT } from './root.ts'
import { filesIn, nodesOf, parse } from './sources.ts'

/** Every fact that the recorder writes is read, or excused here; what is missing by it is a loss, in one table (lib/read/ggtrace/loss.ts). */

/** Facts that nothing reads, with the reason. They are among the facts of the trace. */
const EXCUSED: Readonly<Record<string, string>> = {
  counters: 'what was requested: what is counted has definitions of its own',
  executable: 'which file the program was: for reports of errors',
  'nvtx.emitted': 'what the user asked for (record --nvtx); the ranges are in the log of the tool that listened',
  'program.functions': 'how many functions were redirected: for reports of errors',
  recorder: 'what wrote the log: for reports of errors',
  'threads.pool.': 'parameters that the program gave: for people who compare them with its options',
}

/** Facts that state what is not there at all, and why, in words. Nothing of a kind that the log contains is missing by them. */
const NOT_RECORDED = [
  ...['counters.missing', 'functions.missing', 'gpu.missing', 'operators.missing', 'program.refused'],
  ...['server.missing', 'server.not_seen', 'topology.missing'],
]

const SOURCES = [...filesIn('native', '.c'), ...filesIn('native', '.h')].filter(
  (path) => !/^native\/(build|test|peaks|release|ebpf)\//.test(path),
)
const textOf = (path: string) => readFileSync(join(ROOT, path), 'utf8').replaceAll(/\/\*[\s\S]*?\*\//g, '')

/** What writes a fact, up to its key; a macro or a function that passes a key on is one of them. */
const WRITERS = new RegExp(
  [
    ...[String.raw`ggtrace_fact\([\w.>-]+, `, String.raw`(?:of\.)?fact\(`, String.raw`fact_number\((?:fact, )?`],
    ...[String.raw`write_text\(`, String.raw`write_by_value\(`, String.raw`count\((?="gpu)`, String.raw`missing\(`],
    ...[String.raw`wanted\(\w+, `, String.raw`fact_of_parts\(fact, `],
    // A key that is put together begins so.
    ...[String.raw`snprintf\(key, sizeof\(key\), `, String.raw`strcpy\(key, `, String.raw`char key\[[^\]]*\] = `],
    // A row of a table of keys and files.
    String.raw`\{(?=\"topology)`,
  ]
    .map((writer) => String.raw`(?<![\w"])${writer}`)
    .join('|'),
  'g',
)

/** Keys, and beginnings of keys, which end with a point; and arguments that are none of these. */
function writtenIn(path: string): { keys: string[]; others: string[] } {
  const text = textOf(path)
  const [keys, others]: [string[], string[]] = [[], []]
  for (const { 0: writer, index } of text.matchAll(WRITERS)) {
    const rest = text.slice(index + writer.length)
    // Both of a condition are keys.
    const [, first, second] = /^(?:[^",;()]*\? )?"([a-z][\w.]*)(?:%s)?"(?: : "([a-z][\w.]*)")?/.exec(rest) ?? []
    if (first === undefined) others.push(`${path}: ${writer}${rest.split('\n', 1)[0]}`)
    keys.push(...[first, second].flatMap((key) => key ?? []))
  }
  return { keys, others }
}

const FOUND = SOURCES.map(writtenIn)
const WRITTEN = [...new Set(FOUND.flatMap(({ keys }) => keys))].sort()

/** `attributes` or `facts`, of anything. */
function isOfFacts(node: ts.Node | undefined): boolean {
  if (node === undefined) return false
  const last = ts.isPropertyAccessExpression(node) ? node.name : node
  return ts.isIdentifier(last) && /^(attributes|facts)$/.test(last.text)
}

describe('facts of the recorder', () => {
  test('are found in its sources', () => {
    expect(WRITTEN.length).toBeGreaterThan(70)
    for (const key of [
      'functions.left_out',
      'gpu.without_times',
      'env.',
      'device.',
      'llama.calls',
      'topology.capacity',
    ])
      expect(WRITTEN).toContain(key)
    // A function passes its key on.
    expect(FOUND.flatMap(({ others }) => others).filter((other) => !/\bkey\b|NULL/.test(other))).toEqual([])
    const guide = readFileSync(join(ROOT, 'docs/reference/ggtrace-format.md'), 'utf8')
    expect(WRITTEN.filter((key) => !key.startsWith('library.') && !guide.includes(`\`${key}`))).toEqual([])
  })

  test('are read by lib or bin, or excused', () => {
    const files = [...filesIn('lib'), ...filesIn('bin')].filter((path) => !path.startsWith('lib/log/')).map(parse)
    const keys = new Set<string>()
    const patterns: RegExp[] = []
    for (const node of files.flatMap(nodesOf)) {
      // A word without a point is a key where it names a property, or is passed to a function that looks a fact up.
      const by = node.parent
      const isLookUp =
        by !== undefined &&
        (ts.isElementAccessExpression(by) ||
          (ts.isCallExpression(by) &&
            ts.isIdentifier(by.expression) &&
            /^(text|machine|number)$/.test(by.expression.text)))
      if (ts.isStringLiteral(node) && (isLookUp || node.text.includes('.'))) keys.add(node.text)
      else if (ts.isVariableDeclaration(node) && ts.isObjectBindingPattern(node.name) && isOfFacts(node.initializer))
        for (const element of node.name.elements) keys.add((element.propertyName ?? element.name).getText())
      else if (ts.isPropertyAccessExpression(node) && isOfFacts(node.expression)) keys.add(node.name.text)
      else if (ts.isTemplateHead(node)) keys.add(node.text)
      else if (ts.isRegularExpressionLiteral(node) && node.text.startsWith('/^'))
        patterns.push(new RegExp(node.text.slice(1, node.text.lastIndexOf('/'))))
    }
    const beginnings = [...keys].filter((text) => /^\w.*\.$/.test(text))
    // Patterns of keys match no other text with a point.
    const ofKeys = patterns.filter((pattern) => !pattern.test('zz.yy.x') && !pattern.test('zz.yy'))
    const isRead = (key: string) =>
      keys.has(key) ||
      beginnings.some((beginning) => key.startsWith(beginning)) ||
      (key.includes('.') && ofKeys.some((pattern) => pattern.test(key.endsWith('.') ? `${key}x` : key)))
    expect(WRITTEN.filter((key) => !isRead(key))).toEqual(Object.keys(EXCUSED).sort())
  })

  test('that count or name what is missing are losses', () => {
    const missing = WRITTEN.filter((key) =>
      /missing|left_out|without|refused|copies|not_seen|(?<!operators)\.end$|error/.test(key),
    )
    expect(missing.length).toBeGreaterThan(14)
    const isIssue = (key: string) => missingByFacts({ [key]: '1000000' }, 0, 0).length === 1
    expect(missing.filter((key) => !isIssue(key))).toEqual(NOT_RECORDED)
  })
})
