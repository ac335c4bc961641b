import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

/** The entries of the package, as TypeScript sees their sources. */

export const root = fileURLToPath(new URL('..', import.meta.url))
const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
export const entries = Object.keys(exports).filter((key) => exports[key].import)
export const fileOf = (key) => join(root, `lib/${key === '.' ? 'index' : key.slice(2)}.ts`)

const { options } = ts.parseJsonConfigFileContent(
  { ...ts.readConfigFile(join(root, 'tsconfig.json'), ts.sys.readFile).config, include: [] },
  ts.sys,
  root,
)
export const program = ts.createProgram(entries.map(fileOf), options)
export const checker = program.getTypeChecker()
