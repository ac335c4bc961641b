import { existsSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import ts from 'typescript'
import { ROOT } from './root.ts'
import { circlesIn, filesIn, importsOf, nodesOf, parse, place } from './sources.ts'

/**
 * The house rules. Each test gathers lines like a compiler's (`path:line: what is wrong`) and wants none.
 */

const FILE_LINES_MAX = 400
const FUNCTION_LINES_MAX = 70

const LIB = filesIn('lib').map(parse)
const ALL = [...LIB, ...filesIn('bin').map(parse)]

const NATIVE = [...filesIn('native', '.c'), ...filesIn('native', '.h')].filter((path) => !path.includes('/build/'))

describe('size', () => {
  const sized = [...ALL.map((file) => file.fileName), ...filesIn('test'), ...filesIn('scripts', '.mjs'), ...NATIVE]

  /** Tables that are read from top to bottom, and longer: a part of one would be no file of its own. */
  const TABLES = [
    'lib/model/issues.ts', // the catalogue of issues
    'lib/timeline/layout.ts', // all tracks, in the order of the viewer
  ]

  test(`no file is longer than ${FILE_LINES_MAX} lines`, () => {
    const long = sized
      .filter((path) => !TABLES.includes(path))
      .map((path) => ({ path, lines: readFileSync(join(ROOT, path), 'utf8').split('\n').length - 1 }))
      .filter(({ lines }) => lines > FILE_LINES_MAX)
    expect(long).toEqual([])
  })

  test(`no function of lib or bin is longer than ${FUNCTION_LINES_MAX} lines`, () => {
    const long: string[] = []
    for (const file of ALL) {
      for (const node of nodesOf(file)) {
        if (!ts.isFunctionLike(node) || !('body' in node) || !node.body) continue
        const text = node.getText().split('\n').length
        if (text > FUNCTION_LINES_MAX) long.push(`${place(file, node)}: ${text} lines`)
      }
    }
    expect(long).toEqual([])
  })

  test('no example is longer than 40 lines', () => {
    const long = filesIn('examples', '.mjs').filter(
      (path) => readFileSync(join(ROOT, path), 'utf8').split('\n').length > 41,
    )
    expect(long).toEqual([])
  })
})

describe('who may import whom', () => {
  /** The package's entries, and what bin imports. */
  const ENTRIES = [
    ...['index', 'core', 'perfetto', 'sql', 'analysis', 'report', 'tables'],
    ...['node', 'datasets', 'worker', 'cli'],
  ]
  /** Rooms of lib that every other may import. */
  const FLOOR = ['lib/errors.ts', 'lib/bytes', 'lib/generated/option-names.ts']
  /** Room of lib → the rooms that it may import besides itself and the floor. */
  const ARROWS: Readonly<Record<string, readonly string[]>> = {
    'lib/errors.ts': [],
    'lib/bytes': [],
    'lib/model': [],
    'lib/input': [],
    'lib/log': [],
    'lib/read': ['lib/input', 'lib/log', 'lib/model'],
    'lib/sink': ['lib/model'],
    'lib/threads': ['lib/model'],
    'lib/write': ['lib/sink', 'lib/model', 'lib/generated'],
    'lib/analyze/graph': ['lib/model'],
    'lib/analyze': ['lib/generated', 'lib/model'],
    'lib/dag': ['lib/analyze', 'lib/model'],
    'lib/timeline': ['lib/analyze/graph', 'lib/threads', 'lib/sink', 'lib/model'],
    'lib/pipeline': [
      'lib/generated',
      'lib/tables',
      'lib/read',
      'lib/input',
      'lib/threads',
      'lib/timeline',
      'lib/write',
      'lib/analyze',
      'lib/sink',
      'lib/model',
    ],
    'lib/report': ['lib/analyze', 'lib/fleet', 'lib/model'],
    'lib/tables': ['lib/write', 'lib/analyze', 'lib/model'],
    'lib/query': ['lib/generated', 'lib/input'],
    'lib/fleet': [],
    'lib/worker': ['lib/pipeline', 'lib/analyze', 'lib/input'],
    'lib/node': [
      'lib/fleet',
      'lib/tables',
      'lib/pipeline',
      'lib/query',
      'lib/write',
      'lib/analyze',
      ...['lib/dag', 'lib/input', 'lib/log', 'lib/model'],
    ],
    ...Object.fromEntries(ENTRIES.map((name) => [`lib/${name}.ts`, ['lib']])),
  }
  const isIn = (path: string, room: string) => path === room || path.startsWith(`${room}/`)
  const roomOf = (path: string) => Object.keys(ARROWS).find((room) => isIn(path, room))

  test('lib keeps to the arrows of the architecture', () => {
    const wrong: string[] = []
    for (const file of LIB) {
      const room = roomOf(file.fileName)
      const allowed = room === undefined ? [] : [room, ...FLOOR, ...ARROWS[room]!]
      for (const { statement, target } of importsOf(file)) {
        if (!target.startsWith('lib/') || allowed.some((other) => isIn(target, other))) continue
        wrong.push(`${place(file, statement)}: imports ${target}`)
      }
    }
    expect(wrong).toEqual([])
  })

  /** Rooms and files of lib/analyze: each may import those before it. What a room's figures.ts declares, all may import. */
  const STATISTICS = [
    ...['graph', 'common', 'calls', 'summary', 'run', 'threads', 'gpu', 'model', 'operators', 'experts'],
    ...['memory', 'numa', 'placement', 'weights', 'rpc', 'series'],
    ...['requests', 'accesses', 'benchmarks', 'blas', 'host-operators', 'kernels', 'power', 'analysis.ts'],
    ...[
      'findings',
      'verdict',
      'compare',
      'scaling',
      'what-if',
      'doctor',
      'document.ts',
      'json-schema.ts',
      'input-figures.ts',
      'analysis-pass.ts',
      'assemble.ts',
    ],
  ]

  test('nothing in lib/analyze imports upwards: figures import figures, rooms figures and the rooms below them', () => {
    const isFigures = (path: string) => posix.basename(path) === 'figures.ts'
    const levelOf = (path: string) => STATISTICS.indexOf(path.split('/')[2]!)
    const inside = (path: string) => path.startsWith('lib/analyze/')
    const wrong = LIB.filter(({ fileName }) => inside(fileName)).flatMap((file) => {
      if (levelOf(file.fileName) < 0) return [`${file.fileName}: in no room`]
      return importsOf(file)
        .filter(({ target }) => inside(target) && !isFigures(target))
        .filter(({ target }) => isFigures(file.fileName) || levelOf(target) > levelOf(file.fileName))
        .map(({ statement, target }) => `${place(file, statement)}: imports ${target}`)
    })
    expect(wrong).toEqual([])
  })

  test('no family of formats imports another: what two share is in lib/read/common', () => {
    const familyOf = (path: string) => /^lib\/read\/([^/]+)\//.exec(path)?.[1]
    const wrong = LIB.flatMap((file) => {
      const family = familyOf(file.fileName)
      if (family === undefined) return []
      return importsOf(file)
        .filter(({ target }) => ![undefined, family, 'common'].includes(familyOf(target)))
        .map(({ statement, target }) => `${place(file, statement)}: imports ${target}`)
    })
    expect(wrong).toEqual([])
  })

  test('no files of lib or bin import each other in a circle', () => {
    const files = new Map(ALL.map((file) => [file.fileName, file]))
    const importedBy = (path: string) =>
      files.has(path) ? importsOf(files.get(path)!).map(({ target }) => target) : []
    expect(circlesIn(files.keys(), importedBy)).toEqual([])
  })

  test('Node is imported in lib/node only, and bin imports lib/cli.ts only', () => {
    const wrong = ALL.flatMap((file) => {
      const { fileName } = file
      return importsOf(file)
        .filter(({ target }) => {
          if (fileName.startsWith('lib/')) return target.startsWith('node:') && !fileName.startsWith('lib/node/')
          return fileName.startsWith('bin/') && target.startsWith('lib/') && target !== 'lib/cli.ts'
        })
        .map(({ statement, target }) => `${place(file, statement)}: imports ${target}`)
    })
    expect(wrong).toEqual([])
  })

  test('processes are started in lib/node/children.ts, by which they end with this one', () => {
    const OTHERS = ['bin/browser.ts'] // a browser is the user's
    const wrong = ALL.filter(({ fileName }) => fileName !== 'lib/node/children.ts').flatMap((file) =>
      importsOf(file)
        .filter(({ statement, target }) => /^node:(child_process|cluster)$/.test(target) && !isOfTypes(statement))
        .filter(() => !OTHERS.includes(file.fileName))
        .map(({ statement }) => `${place(file, statement)}: imports node:child_process`),
    )
    expect(wrong).toEqual([])
  })

  test('lib/cli.ts exports what bin imports, and nothing else but figures of an Analysis', () => {
    const namesIn = (path: string, isOf: (statement: ts.Statement) => boolean) =>
      ALL.filter(({ fileName }) => fileName.startsWith(path)).flatMap((file) =>
        file.statements.filter(isOf).flatMap((statement) => {
          const names: string[] = []
          for (const node of nodesOf(statement))
            if (ts.isImportSpecifier(node) || ts.isExportSpecifier(node))
              names.push((ts.isImportSpecifier(node) && node.propertyName ? node.propertyName : node.name).text)
          return names
        }),
      )
    const isOfCli = (statement: ts.Statement) =>
      (ts.isImportDeclaration(statement) || ts.isExportDeclaration(statement)) &&
      (statement.moduleSpecifier as ts.StringLiteral | undefined)?.text.endsWith('lib/cli.ts') === true
    const figures = LIB.filter(({ fileName }) => /^lib\/analyze\/(analysis|[\w-]+\/figures)\.ts$/.test(fileName))
    const isOfFigures = new Set(
      figures.flatMap((file) =>
        file.statements
          .filter((node) => ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node))
          .map(({ name }) => name.text),
      ),
    )
    const imported = [...new Set(namesIn('bin/', isOfCli))].filter((name) => !isOfFigures.has(name)).sort()
    expect(imported.length).toBeGreaterThan(100)
    const exported = namesIn('lib/cli.ts', ts.isExportDeclaration).filter((name) => !isOfFigures.has(name))
    expect(exported.sort()).toEqual(imported)
  })
})

test('tests and scripts keep files in the temporary folder by cacheFolder, or under a name that nobody else can have taken', () => {
  const named = [
    ...filesIn('test'),
    ...filesIn('test', '.mjs'),
    ...filesIn('test', '.cjs'),
    ...filesIn('scripts', '.mjs'),
  ]
    .filter((path) => path !== 'test/cache.cjs' && path !== 'test/house.test.ts')
    .flatMap((path) =>
      readFileSync(join(ROOT, path), 'utf8')
        .split('\n')
        .map((line, i) => ({ line, at: `${path}:${i + 1}` })),
    )
  const fixed = named.filter(
    ({ line }) => line.includes('join(tmpdir(),') && !/mkdtemp(Sync)?\(|randomUUID\(/.test(line),
  )
  expect(fixed).toEqual([])
})

describe('docs/architecture.md', () => {
  const text = readFileSync(join(ROOT, 'docs/architecture.md'), 'utf8')

  test('names files and folders that exist', () => {
    const named = [...text.matchAll(/`((?:lib|bin|docs|scripts|test)\/[\w./-]*)`/g)].map(([, path]) => path!)
    expect(named.length).toBeGreaterThan(50)
    expect(named.filter((path) => !existsSync(join(ROOT, path)))).toEqual([])
  })

  test('lists all places, eight at most, that a format with a statistic changes outside of its rooms', () => {
    const table = text.slice(text.indexOf('| place | what |'), text.indexOf('\n\n', text.indexOf('| place | what |')))
    const places = [...table.matchAll(/^\| `(.*?)` \|/gm)].map(([, path]) => path!)
    const isOfBlas = (node: ts.Node) =>
      (ts.isIdentifier(node) || ts.isStringLiteral(node)) && /(^|\/)blas/i.test(node.text)
    const naming = ALL.filter(({ fileName }) => !/^lib\/(core|cli)\.ts$|^lib\/generated|\/blas/.test(fileName))
      .filter((file) => nodesOf(file).some(isOfBlas))
      .map(({ fileName }) => fileName)
    expect(naming.sort()).toEqual(places.sort())
    expect(places.length).toBeLessThanOrEqual(8)
  })
})

describe('lib', () => {
  test('neither prints nor looks at the process, and tests no class by instanceof', () => {
    const wrong: string[] = []
    for (const file of LIB) {
      for (const node of nodesOf(file)) {
        if (
          ts.isIdentifier(node) &&
          /^(console|process)$/.test(node.text) &&
          !ts.isPropertyAccessExpression(node.parent) &&
          !ts.isMethodDeclaration(node.parent) &&
          !ts.isVariableDeclaration(node.parent)
        ) {
          wrong.push(`${place(file, node)}: ${node.text}`)
        }
        // What bundlers replace, and browsers do not have, is not of Node.
        const isOfBundlers = () => node.parent.getText(file) === 'process.env.NODE_ENV'
        if (
          ts.isPropertyAccessExpression(node) &&
          /^(console|process)$/.test(node.expression.getText()) &&
          !isOfBundlers()
        ) {
          wrong.push(`${place(file, node)}: ${node.getText()}`)
        }
        // Built-in classes within one realm (WebAssembly's errors) are fine; our own may exist twice.
        if (node.kind === ts.SyntaxKind.InstanceOfKeyword) {
          const right = (node.parent as ts.BinaryExpression).right.getText()
          if (!/^(WebAssembly\.|RangeError$|Error$)/.test(right))
            wrong.push(`${place(file, node)}: instanceof ${right}`)
        }
      }
    }
    expect(wrong).toEqual([])
  })

  test('makes issues of the catalogue only, by issueOf', () => {
    const wrong: string[] = []
    for (const file of LIB.filter(({ fileName }) => fileName !== 'lib/model/issues.ts')) {
      for (const node of nodesOf(file)) {
        if (ts.isPropertyAssignment(node) && node.getText() === "kind: 'issue'") wrong.push(place(file, node))
      }
    }
    expect(wrong).toEqual([])
  })

  test('no two classes have one name', () => {
    const places = new Map<string, string[]>()
    for (const file of LIB) {
      for (const { name } of file.statements.filter(ts.isClassDeclaration)) {
        if (name) places.set(name.text, [...(places.get(name.text) ?? []), place(file, name)])
      }
    }
    expect([...places].filter(([, found]) => found.length > 1)).toEqual([])
  })

  test('documents every export', () => {
    const bare: string[] = []
    for (const file of LIB.filter(({ fileName }) => fileName !== 'lib/index.ts')) {
      for (const statement of file.statements) {
        const isExported = ts.canHaveModifiers(statement)
          ? ts.getModifiers(statement)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword)
          : false
        if (!isExported || ts.getJSDocCommentsAndTags(statement).length > 0) continue
        if (isFormat(file, statement)) continue // its name, title and the picture at the file's head say it
        bare.push(`${place(file, statement)}: ${statement.getText().split('\n')[0]}`)
      }
    }
    expect(bare).toEqual([])
  })

  test('files of formats export nothing else, are called as their format or their family, and all are registered', () => {
    const wrong: string[] = []
    const registry = LIB.find(({ fileName }) => fileName === 'lib/read/index.ts')!
    const registered = importsOf(registry).map(({ target }) => target)
    for (const file of LIB) {
      const formats = file.statements.filter((statement) => isFormat(file, statement))
      if (formats.length === 0) continue
      const exported = file.statements.filter((statement) =>
        (ts.canHaveModifiers(statement) ? ts.getModifiers(statement) : [])?.some(
          ({ kind }) => kind === ts.SyntaxKind.ExportKeyword,
        ),
      )
      if (exported.length !== formats.length) wrong.push(`${file.fileName}: exports more than formats`)
      const family = posix.basename(posix.dirname(file.fileName))
      const name = formats.length > 1 ? family : /name: '(.+)'/.exec(formats[0]!.getText())?.[1]
      if (posix.basename(file.fileName) !== `${name}.ts`) wrong.push(`${file.fileName}: format ${name}`)
      if (!registered.includes(file.fileName)) wrong.push(`${file.fileName}: not in lib/read/index.ts`)
    }
    expect(wrong).toEqual([])
  })
})

const isOfTypes = (statement: ts.Statement) =>
  ts.isImportDeclaration(statement) && statement.importClause?.isTypeOnly === true

function isFormat(file: ts.SourceFile, statement: ts.Statement): boolean {
  if (!file.fileName.startsWith('lib/read/') || !ts.isVariableStatement(statement)) return false
  return statement.declarationList.declarations[0]?.type?.getText() === 'Format'
}
