import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from '@jest/globals'
import type ts from 'typescript'
import { squareOf } from './expressions.ts'
import { inLong } from './long.ts'

/**
 * No regular expression of lib or bin takes a time that grows with the square of the text. One for texts that cannot be long has
 * a comment `// bounded: why` in the line before.
 */

const ROOT = fileURLToPath(new URL('..', import.meta.url))

const FILES = ['lib', 'bin'].flatMap((folder) =>
  readdirSync(`${ROOT}/${folder}`, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.includes('generated'))
    .map((name) => `${folder}/${name}`),
)

inLong(test)('no expression is searched in two loops over the same text', async () => {
  const { default: typescript } = await import('typescript')
  const found: string[] = []
  const known = new Map<string, string | undefined>()
  for (const path of FILES) {
    const text = readFileSync(`${ROOT}/${path}`, 'utf8')
    const file = typescript.createSourceFile(path, text, typescript.ScriptTarget.Latest, true)
    const lines = file.text.split('\n')
    const visit = (node: ts.Node): void => {
      typescript.forEachChild(node, visit)
      if (!typescript.isRegularExpressionLiteral(node)) return
      const { text } = node
      const end = text.lastIndexOf('/')
      if (!known.has(text)) known.set(text, squareOf(text.slice(1, end), text.slice(end + 1)))
      const letter = known.get(text)
      const { line } = file.getLineAndCharacterOfPosition(node.getStart())
      const isBounded = lines[line - 1]?.trim().startsWith('// bounded: ')
      if (letter !== undefined && !isBounded) found.push(`${path}:${line + 1}: ${JSON.stringify(letter)} in ${text}`)
    }
    visit(file)
  }
  expect(known.size).toBeGreaterThan(500)
  expect(found).toEqual([])
})

test.each([
  [/\w+@/, 'a search from each character'],
  [/(\w+)(?:\[[^\]]*\])?$/, 'the end of the text'],
  [/^\s*(?:#.*)?\s*$/, 'two loops with nothing between them'],
  [/^(.*a)(.*b)$/, 'two loops with a letter between them'],
  [/\bsync: (?=.*=\d)/, 'a look ahead'],
  [/"(?:[^"\\]|\\.)*"/, 'a text without its end'],
  [/\/+$/, 'what is removed at the end'],
  [/^a+b?a+c/, 'what may be left out'],
])('%s is found: %s', ({ source, flags }) => {
  expect(squareOf(source, flags)).toBeDefined()
})

test.each([
  /(?<!\w)\w+@/,
  /^\w+@/,
  /\(.*/,
  /^a+ba+c/,
  /"(?:[^"\\]|\\.)*(?:"|\\?$)/s,
  /a{1,30}b/,
  /^(?:ab)+$/,
  /\[([^[\]]*)\]/,
])('%s takes a linear time', ({ source, flags }) => {
  expect(squareOf(source, flags)).toBeUndefined()
})
