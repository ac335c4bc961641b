import { join } from 'node:path'
import ts from 'typescript'
import { ROOT } from './root.ts'

/** What tsc says of programs of the docs, with the types of the package that is built. */
export function typeErrors(programs: readonly string[]): string[] {
  const texts = new Map(programs.map((text, i) => [join(ROOT, 'examples', `docs-${i}.mts`), text]))
  const options: ts.CompilerOptions = {
    strict: true,
    noUncheckedIndexedAccess: true,
    noEmit: true,
    target: ts.ScriptTarget.ES2022,
    lib: ['lib.es2023.d.ts', 'lib.dom.d.ts', 'lib.esnext.disposable.d.ts'],
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    types: ['node'],
    typeRoots: [join(ROOT, 'node_modules/@types')],
    skipLibCheck: true,
  }
  const host = ts.createCompilerHost(options)
  const { fileExists, readFile, getSourceFile } = host
  host.fileExists = (path) => texts.has(path) || fileExists(path)
  host.readFile = (path) => texts.get(path) ?? readFile(path)
  host.getSourceFile = (path, language, ...rest) => {
    const text = texts.get(path)
    return text === undefined ? getSourceFile(path, language, ...rest) : ts.createSourceFile(path, text, language, true)
  }
  const found = ts.getPreEmitDiagnostics(ts.createProgram([...texts.keys()], options, host))
  return found.map(({ file, start, messageText }) => {
    const line = file?.text.slice(0, start).split('\n').length
    return `${file?.fileName}:${line}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`
  })
}
