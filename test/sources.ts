import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import ts from 'typescript'
import { ROOT } from './root.ts'

/** Sources, and what was built of them, as the rules about them need them. */

/** Paths of the files in a folder, from the root; without generated ones. */
export const filesIn = (folder: string, ending = '.ts') =>
  (existsSync(join(ROOT, folder)) ? readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }) : [])
    .map((name) => posix.join(folder, name.replaceAll('\\', '/')))
    .filter((path) => path.endsWith(ending) && !path.includes('generated/'))

export const parse = (path: string) =>
  ts.createSourceFile(path, readFileSync(join(ROOT, path), 'utf8'), ts.ScriptTarget.Latest, true)

export const place = (file: ts.SourceFile, node: ts.Node) =>
  `${file.fileName}:${file.getLineAndCharacterOfPosition(node.getStart()).line + 1}`

/** Every node of a file that is more than punctuation. */
export function nodesOf(node: ts.Node): readonly ts.Node[] {
  const nodes = [node]
  for (const one of nodes) ts.forEachChild(one, (child) => void nodes.push(child))
  return nodes
}

/** What each file imports, as paths from the root; packages as they are named. */
export const importsOf = (file: ts.SourceFile) =>
  file.statements
    .filter((statement) => ts.isImportDeclaration(statement) || ts.isExportDeclaration(statement))
    .flatMap((statement) => {
      const name = (statement.moduleSpecifier as ts.StringLiteral | undefined)?.text
      if (name === undefined) return []
      return [{ statement, target: name.startsWith('.') ? posix.join(posix.dirname(file.fileName), name) : name }]
    })

/** Circles among files or modules; `next`: those that one needs. */
export function circlesIn(all: Iterable<string>, next: (of: string) => Iterable<string>): string[] {
  const circles: string[] = []
  const done = new Set<string>()
  const visit = (path: string, above: readonly string[]) => {
    if (above.includes(path)) circles.push([...above.slice(above.indexOf(path)), path].join(' → '))
    if (above.includes(path) || done.has(path)) return
    for (const other of next(path)) if (other !== path) visit(other, [...above, path])
    done.add(path)
  }
  for (const path of all) visit(path, [])
  return circles
}
