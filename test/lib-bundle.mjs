import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import vm from 'node:vm'
import { cacheFolder } from './cache.cjs'

/**
 * The modules of lib that a program runs, in one file, as in dist/: Jest's workers compile that, not some 600 modules for each test file. It is
 * made of the sources when Jest starts, and also contains what dist/ does not export. lib-transform.mjs makes each of those modules a part of
 * it. It is a script, which V8 compiles once for several contexts: a function that runs the modules, and returns their exports (environment.cjs).
 */

const root = fileURLToPath(new URL('..', import.meta.url))
const folder = join(root, 'node_modules/.cache')
const DAY_MS = 86_400_000

const options = {
  absWorkingDir: root,
  bundle: true,
  write: false,
  metafile: true,
  sourcemap: 'linked',
  sourcesContent: false,
  format: 'cjs',
  banner: { js: '(function (require, url, module) {"use strict";' },
  footer: { js: 'return module.exports })' },
  define: { 'import.meta.url': 'url' },
  platform: 'node',
  target: 'node20',
  external: ['@duckdb/node-api', '@hpcc-js/wasm-graphviz'],
  loader: { '.sql': 'text', '.textproto': 'text' },
}

export default async function setUp() {
  const file = join(folder, `lib.${sourcesHash()}.js`)
  if (!existsSync(`${file}.json`)) await bundle(file)
  process.env['LIB_BUNDLE'] = file
  removeOld(file)
  removePeaks()
}

/** Peaks that an earlier run measured would be in the figures of logs (the cache of environment.cjs). */
function removePeaks() {
  const cache = join(cacheFolder('cache'), 'ggml2perfetto')
  if (!existsSync(cache)) return
  for (const name of readdirSync(cache)) if (name.startsWith('peaks-')) rmSync(join(cache, name), { force: true })
}

function sourcesHash() {
  const hash = createHash('sha256').update(readFileSync(fileURLToPath(import.meta.url)))
  for (const name of readdirSync(join(root, 'lib'), { recursive: true }).sort()) {
    const path = join(root, 'lib', name)
    if (statSync(path).isFile()) hash.update(`\0${name}\0`).update(readFileSync(path))
  }
  return hash.digest('hex').slice(0, 16)
}

/** Makes `file`, and beside it the names that each module exports. */
async function bundle(file) {
  const { build } = await import('esbuild')
  const { metafile } = await build({ ...options, entryPoints: ['lib/index.ts', 'lib/cli.ts'], outdir: folder })
  const modules = Object.keys(metafile.inputs).filter((path) => /^lib\/.*\.ts$/.test(path))
  const contents = modules.map((path, i) => `export * as m${i} from './${path}'`).join('\n')
  const { outputFiles } = await build({
    ...options,
    outfile: file,
    stdin: { contents, resolveDir: root, loader: 'ts' },
  })
  for (const { path, contents } of outputFiles) put(path, contents)
  const all = vm.runInThisContext(readFileSync(file, 'utf8'))(createRequire(file), pathToFileURL(file).href, {})
  const names = modules.map((path, i) => [path, { name: `m${i}`, exported: Object.keys(all[`m${i}`]) }])
  put(`${file}.json`, JSON.stringify(names))
}

/** As a whole: other runs of tests read it. */
function put(path, content) {
  const temporary = `${path}.${process.pid}.tmp`
  mkdirSync(folder, { recursive: true })
  writeFileSync(temporary, content)
  renameSync(temporary, path)
}

function removeOld(file) {
  const paths = readdirSync(folder).map((name) => join(folder, name))
  const old = paths.filter((path) => /lib\.\w+\.m?js/.test(path) && !path.startsWith(file))
  for (const path of old) if (Date.now() - statSync(path).mtimeMs > DAY_MS) rmSync(path, { force: true })
}
