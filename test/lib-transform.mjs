import { readFileSync } from 'node:fs'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import swc from '@swc/jest'

const root = fileURLToPath(new URL('..', import.meta.url))

let modules

/** Of the modules in the file that lib-bundle.mjs has made. Jest loads this transform before that. */
function moduleAt(path) {
  modules ??= new Map(JSON.parse(readFileSync(`${process.env['LIB_BUNDLE']}.json`, 'utf8')))
  return modules.get(relative(root, path))
}

/** TypeScript without its types; a module of lib is a part of lib-bundle.mjs's file, if that contains it (environment.cjs runs it). */
export default {
  createTransformer(options) {
    const plain = swc.createTransformer(options)
    return {
      getCacheKey: (text, path, given) =>
        plain.getCacheKey(text, path, given) + (moduleAt(path) ? process.env['LIB_BUNDLE'] : ''),
      process(text, path, given) {
        const module = moduleAt(path)
        if (!module) return plain.process(text, path, given)
        const { name, exported } = module
        return { code: `export const { ${exported.join(', ')} } = globalThis[Symbol.for('lib')].${name}\n` }
      },
    }
  },
}
