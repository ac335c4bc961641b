import { join, posix } from 'node:path'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from '@jest/globals'
import { build } from 'esbuild'
import ts from 'typescript'
import { ROOT } from '../root.ts'
import { importsOf, parse, place } from '../sources.ts'

/** The entries as they are built, in dist/. */

/** What runs in browsers. */
const ANYWHERE = ['index', 'core', 'perfetto', 'sql', 'analysis', 'report', 'tables', 'worker']
const ENTRIES = [...ANYWHERE, 'node', 'datasets']

/** Every node of a file: without its tokens, as files are large. */
function* nodesOf(node: ts.Node): Generator<ts.Node> {
  const below: ts.Node[] = []
  yield node
  ts.forEachChild(node, (child) => void below.push(child))
  for (const child of below) yield* nodesOf(child)
}

/** A file as it is imported, also where one of types imports `./x.js`. */
const pathOf = (target: string, from: string) => {
  const ending = /\.d\.c?ts$/.exec(from)?.[0]
  return ending === undefined ? target : target.replace(/\.c?js$/, ending)
}

/** What files import from elsewhere, statically or when they need it. */
const importedBy = (file: ts.SourceFile): string[] => {
  const called = [...nodesOf(file)].flatMap((node) => {
    if (!ts.isCallExpression(node) || !/^(import|require)$/.test(node.expression.getText())) return []
    const [argument] = node.arguments
    if (!argument || !ts.isStringLiteral(argument)) return []
    return [argument.text.startsWith('.') ? posix.join(posix.dirname(file.fileName), argument.text) : argument.text]
  })
  return [...importsOf(file).map(({ target }) => target), ...called].map((target) => pathOf(target, file.fileName))
}

/** The files that are loaded with one, also later, by their paths; and packages and modules of Node. */
function loadedWith(path: string, found = new Map<string, ts.SourceFile | undefined>()) {
  if (found.has(path)) return found
  const isOurs = path.startsWith('dist/')
  found.set(path, isOurs ? parse(path) : undefined)
  if (isOurs) for (const target of importedBy(found.get(path)!)) loadedWith(target, found)
  return found
}

describe.each(['js', 'cjs', 'd.ts', 'd.cts'])('the entries for browsers, as .%s', (ending) => {
  const files = new Map(ANYWHERE.flatMap((name) => [...loadedWith(`dist/${name}.${ending}`)]))

  test('import only files of the package', () => {
    expect([...files.keys()].filter((path) => !path.startsWith('dist/'))).toEqual([])
  })

  test("know none of Node's globals", () => {
    const wrong: string[] = []
    for (const file of files.values()) {
      for (const node of nodesOf(file!)) {
        if (!ts.isIdentifier(node) || !/^(process|__dirname|NodeJS)$/.test(node.text)) continue
        const { parent } = node
        const isField =
          (ts.isPropertyAccessExpression(parent) ||
            ts.isPropertyAssignment(parent) ||
            ts.isMethodDeclaration(parent)) &&
          parent.name === node
        const isOfBundlers = parent.parent.getText() === 'process.env.NODE_ENV' // which they replace
        if (!isField && !isOfBundlers) wrong.push(`${place(file!, node)}: ${node.getText()}`)
      }
    }
    expect(wrong).toEqual([])
  })
})

test('DuckDB is imported by datasets only', () => {
  const importing = ENTRIES.filter((name) => loadedWith(`dist/${name}.js`).has('@duckdb/node-api'))
  expect(importing).toEqual(['datasets'])
})

/** The files of the sources in what is loaded at once with a built file. */
const sourcesIn = (path: string, found = new Map<string, string[]>()): string[] => {
  if (!found.has(path)) {
    const file = parse(path)
    found.set(
      path,
      [...file.text.matchAll(/^\/\/ ((?:lib|bin)\/.*)/gm)].map(([, source]) => source!),
    )
    for (const { target } of importsOf(file)) if (target.startsWith('dist/')) sourcesIn(target, found)
  }
  return [...found.values()].flat()
}

test('the command loads readers, analyses and the recorder when it needs them', () => {
  const sources = sourcesIn('dist/cli/main.js')
  expect(sources).toEqual(expect.arrayContaining(['bin/main.ts', 'lib/errors.ts', 'lib/read/ggtrace/ggtrace.ts']))
  const late =
    /^bin\/(commands|stats)\/|^lib\/(analyze\/findings|node\/record|query|timeline|write)\/|^lib\/read\/(?!common\/).*-reader\.ts$/
  expect(sources.filter((source) => late.test(source))).toEqual([])
})

test('each class exists once, whichever entry exports it', async () => {
  const exported = new Map<string, Set<unknown>>()
  for (const name of ENTRIES) {
    for (const [key, value] of Object.entries(await import(join(ROOT, `dist/${name}.js`)))) {
      if (!/^class\b/.test(String(value))) continue
      exported.set(key, (exported.get(key) ?? new Set()).add(value))
    }
  }
  expect([...exported.keys()]).toEqual(expect.arrayContaining(['FormatError', 'Names', 'UsageError', 'SqlError']))
  expect([...exported].filter(([, values]) => values.size > 1).map(([key]) => key)).toEqual([])
})

/** Bytes of a program, minified and gzip'ed: of the file that a page loads first with all that it imports, without what it loads later. */
async function sizeOf(program: string, splitting = true): Promise<number> {
  const { outputFiles, metafile } = await build({
    stdin: { contents: program, resolveDir: ROOT, sourcefile: 'program.js' },
    ...{ bundle: true, minify: true, splitting, format: 'esm', write: false, metafile: true, outdir: 'out' },
    absWorkingDir: ROOT,
    logLevel: 'error',
  })
  const first = new Set<string>()
  const add = (path: string) => {
    if (first.has(path)) return
    first.add(path)
    for (const { path: other, kind } of metafile.outputs[path]!.imports) if (kind === 'import-statement') add(other)
  }
  add(
    Object.keys(metafile.outputs).find(
      (path) => metafile.outputs[path]!.entryPoint !== undefined && /stdin|program/.test(path),
    )!,
  )
  const files = outputFiles.filter(({ path }) => [...first].some((name) => path.endsWith(name)))
  return gzipSync(Buffer.concat(files.map(({ contents }) => contents))).length
}

test('an error alone is as small as docs/library.md says', async () => {
  for (const name of ['index', 'core'])
    expect(await sizeOf(`export { FormatError } from './dist/${name}.js'`, false)).toBeLessThan(2000)
})

test.each([
  ['all of the main entry', "export * from './dist/index.js'", 170],
  ['all of tables', "export * from './dist/tables.js'", 320],
  ['perfetto', "export * from './dist/perfetto.js'", 20],
  ['core with one family', "export { convert, ggtrace } from './dist/core.js'", 106],
])('%s is as small as docs/library.md says', async (_, program, kilobytes) => {
  expect(await sizeOf(program)).toBeLessThan(kilobytes * 1000)
})
