import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from '@jest/globals'
import { minifySync } from '@swc/core'
import ts from 'typescript'
import { importsOf, parse, place, ROOT } from '../sources.ts'

/** What runs in browsers. */
const BROWSER_FILES = ['browser', 'report', 'tables'].flatMap((name) =>
  ['js', 'cjs', 'd.ts', 'd.cts'].map((ending) => `dist/${name}.${ending}`),
)

describe('what is built', () => {
  test("the browser's build and its types import nothing, and know none of Node's globals", () => {
    const wrong: string[] = []
    for (const path of BROWSER_FILES) {
      const file = parse(path)
      wrong.push(...importsOf(file).map(({ statement, target }) => `${place(file, statement)}: imports ${target}`))
      const look = (node: ts.Node): void => {
        const isImport = node.kind === ts.SyntaxKind.ImportKeyword
        const isGlobal = ts.isIdentifier(node) && /^(require|process|__dirname|NodeJS)$/.test(node.text)
        const isField = () =>
          (ts.isPropertyAccessExpression(node.parent) ||
            ts.isPropertyAssignment(node.parent) ||
            ts.isMethodDeclaration(node.parent)) &&
          node.parent.name === node
        if (isImport || (isGlobal && !isField())) wrong.push(`${place(file, node)}: ${node.getText()}`)
        ts.forEachChild(node, look)
      }
      look(file)
    }
    expect(wrong).toEqual([])
  })

  test("the browser's build is as small as docs/library.md says: less than 370 KB, minified and gzip'ed", () => {
    const { code } = minifySync(readFileSync(join(ROOT, 'dist/browser.js'), 'utf8'), { module: true })
    expect(gzipSync(code).length).toBeLessThan(370_000)
  })

  test("the tables' build is as small as docs/dataset.md says: less than 350 KB, gzip'ed", () => {
    expect(gzipSync(readFileSync(join(ROOT, 'dist/tables.js'))).length).toBeLessThan(350_000)
  })
})
