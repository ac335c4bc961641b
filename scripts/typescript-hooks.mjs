/** Hooks of Node's loader, for scripts that use the TypeScript sources: types are removed, SQL and text protos are texts. */
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { transform } from 'esbuild'

/** Loads a module. */
export async function load(url, context, next) {
  if (!url.startsWith('file:') || !/\.(ts|sql|textproto)$/.test(url)) return next(url, context)
  const source = await readFile(fileURLToPath(url), 'utf8')
  if (!url.endsWith('.ts'))
    return { format: 'module', source: `export default ${JSON.stringify(source)}`, shortCircuit: true }
  const { code } = await transform(source, {
    loader: 'ts',
    sourcefile: fileURLToPath(url),
    format: 'esm',
    target: 'node20',
    sourcemap: 'inline',
  })
  return { format: 'module', source: code, shortCircuit: true }
}
