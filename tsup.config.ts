import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { dirname, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { transform } from 'esbuild'
import { type OutputChunk, type Plugin, rollup } from 'rollup'
import { defineConfig, type Options } from 'tsup'

type Plugins = NonNullable<Options['esbuildPlugins']>

/** What a program imports from another build: it is not bundled a second time. */
const beside = (filter: RegExp, path: string): Plugins[number] => ({
  name: 'beside',
  setup(build) {
    build.onResolve({ filter }, () => ({ path, external: true }))
  },
})

/**
 * What the command imports from lib/cli.ts is imported from the files that it is in: esbuild loads all files that a file imports, though only
 * some of their names are used.
 */
const direct: Plugins[number] = {
  name: 'direct',
  setup(build) {
    const names = (list: string) => list.split(',').flatMap((name) => name.trim() || [])
    const exported = readFileSync('lib/cli.ts', 'utf8').matchAll(/^export \{([^}]*)\} from '\.\/(.*)'/gm)
    const files = new Map([...exported].flatMap(([, list, file]) => names(list!).map((name) => [name, file!])))
    build.onLoad({ filter: /[\\/]bin[\\/].*\.ts$/ }, ({ path }) => {
      const contents = readFileSync(path, 'utf8').replace(
        /^(import|export) \{([^}]*)\} from '([./]*\/lib\/)cli\.ts'/gm,
        (_, how, list, lib) =>
          names(list)
            .filter((name) => !name.startsWith('type '))
            .map((name) => `${how} { ${name} } from '${lib}${files.get(name)}';`)
            .join(' '),
      )
      return { contents, loader: 'ts', resolveDir: dirname(path) }
    })
  },
}

/** The measure of texts that yargs uses loads tables of Unicode: 30 ms of each start. */
const narrow: Plugins[number] = {
  name: 'narrow',
  setup(build) {
    build.onResolve({ filter: /^string-width$/ }, () => ({ path: resolve('bin/string-width.ts') }))
  },
}

/** Sketches are never written as protobuf here: 20 KB less. */
const sketchesWithoutProtobuf: Plugins[number] = {
  name: 'sketches-without-protobuf',
  setup(build) {
    build.onLoad({ filter: /sketches-js.dist.ddsketch.proto.compiled\.js$/ }, () => ({ contents: '' }))
  },
}

/** A node of ESTree. */
interface Syntax {
  readonly type: string
  readonly name?: string
  readonly id?: Syntax | null
  readonly static?: boolean
  readonly start: number
  readonly end: number
  readonly [field: string]: unknown
}

const isSyntax = (value: unknown): value is Syntax => typeof (value as Syntax | null)?.type === 'string'

/** Does a bundler believe that something happens where this is evaluated? The bodies of functions do not run then. */
function mayAct(node: Syntax): boolean {
  if (/^(Call|New|Member|TaggedTemplate)Expression$|^(SpreadElement|StaticBlock)$/.test(node.type)) return true
  if (/Function/.test(node.type) || node.static === false) return false
  return Object.values(node).flat().filter(isSyntax).some(mayAct)
}

/**
 * Nothing in lib has side effects: bundlers may leave out each value and class that a program does not need, and no file is loaded for its
 * effects. A property that is read counts as an effect unless it is within a call that is marked as pure.
 */
const pure: Plugin = {
  name: 'pure',
  // What esbuild imports for effects only would count as needed.
  transform: (code) => ({ code: withoutEffects(code), map: null }),
  renderChunk(code) {
    const added: [at: number, text: string][] = []
    for (const node of this.parse(code).body as unknown as Syntax[]) {
      const { type, id, declarations = [] } = node as Syntax & { declarations?: Record<'id' | 'init', Syntax>[] }
      if (type === 'ClassDeclaration' && mayAct(node))
        added.push([node.start, `var ${id!.name} = /* @__PURE__ */ (() => (`], [node.end, '))();'])
      for (const { id, init } of declarations) {
        // A class without a name would lose that of its variable.
        const isNamed = init?.type !== 'ClassExpression' || init.id
        if (init && isNamed && id.type === 'Identifier' && mayAct(init))
          added.push([init.start, '/* @__PURE__ */ (() => ('], [init.end, '))()'])
      }
    }
    const marked = added
      .toSorted(([a], [b]) => b - a)
      .reduce((text, [at, more]) => text.slice(0, at) + more + text.slice(at), code)
    return withoutEffects(marked)
  },
}

const withoutEffects = (code: string) => code.replace(/^import ['"]\..*['"];\n/gm, '')

/** The entries of the package, by their files in lib. */
const ENTRIES = ['index', 'core', 'perfetto', 'sql', 'analysis', 'report', 'tables', 'node', 'datasets', 'worker']

/** What the package contains of the library. */
const LIBRARY = {
  ...Object.fromEntries(ENTRIES.map((name) => [name, `lib/${name}.ts`])),
  'worker-script': 'lib/worker/script.ts',
}

/**
 * The library, and the command; `cli` is what the MCP server needs. What several entries contain is in chunks that they import, so that each
 * class exists once, and each command loads what it needs. What runs in browsers is bundled with all that it needs;
 * test/library/builds.long.test.ts proves that it contains no Node module.
 */
const library = {
  entry: { ...LIBRARY, cli: 'lib/cli.ts', 'cli/main': 'bin/main.ts' },
  format: ['esm'],
  target: 'es2022',
  platform: 'neutral',
  splitting: true,
  clean: ['!native/**', '!ggml2perfetto.js', '!ggml2perfetto-mcp.js', '!**/*.d.*'],
  external: [/^node:/, ...builtinModules, '@duckdb/node-api', '@hpcc-js/wasm-graphviz'],
  noExternal: [
    ...['fzstd', '@datadog/sketches-js', '@observablehq/plot', 'd3-hierarchy', '@noble/hashes', 'protobufjs', 'yargs'],
  ],
  loader: { '.sql': 'text', '.textproto': 'text' },
  esbuildPlugins: [sketchesWithoutProtobuf, direct, narrow],
  esbuildOptions(options) {
    options.chunkNames = 'chunks/[name]-[hash]'
    options.mainFields = ['module', 'main']
    options.minifySyntax = true // among others, fields in groups ({ ...{ a, b }, c }), which cost a microsecond each at run time, become one literal
  },
} satisfies Options

/**
 * Joins the files that are always loaded together: esbuild makes one of each set of entries and imports at run time that need a module,
 * rollup does not count those whose importer has loaded it already. Returns what it writes.
 */
async function joined(): Promise<OutputChunk[]> {
  const inputs = Object.keys(library.entry)
  const bundle = await rollup({
    input: Object.fromEntries(inputs.map((name) => [name, `dist/${name}.js`])),
    external: (name) => !name.startsWith('.') && !name.startsWith('/') && !name.startsWith('dist/'),
    treeshake: false,
    preserveEntrySignatures: 'strict',
    plugins: [pure],
  })
  rmSync('dist/chunks', { recursive: true })
  const { output } = await bundle.write({
    dir: 'dist',
    format: 'esm',
    chunkFileNames: ({ name }) => `chunks/${name.replace(/-\w+$/, '')}-[hash].js`, // without esbuild's hash
    hashCharacters: 'base36',
    hoistTransitiveImports: false,
  })
  return output.filter((file) => file.type === 'chunk')
}

/** The files of the library without the command. */
function ofLibrary(chunks: readonly OutputChunk[]): Set<string> {
  const known = new Map(chunks.map((chunk) => [chunk.fileName, [...chunk.imports, ...chunk.dynamicImports]]))
  const files = new Set(Object.keys(LIBRARY).map((name) => `${name}.js`))
  for (const file of files) for (const other of known.get(file)!) if (known.has(other)) files.add(other) // also of those that are added
  return files
}

/** Where a file of CommonJS is, as `import.meta.url` is where a module is; in bundles for browsers, where their page is. */
const PLACE = `(typeof __filename === 'string'
  ? new URL('file:' + __filename.replace(/[%?#\\\\]/g, (sign) => (sign === '\\\\' ? '/' : encodeURIComponent(sign)))).href
  : globalThis.document?.baseURI)`

/** The same files for `require`: tsup's own ones are rewritten for engines without `?.` and `??`. */
async function forRequire(files: ReadonlySet<string>): Promise<void> {
  for (const file of files) {
    const module = readFileSync(`dist/${file}`, 'utf8').replaceAll('import.meta.url', PLACE)
    const { code } = await transform(module, { format: 'cjs', platform: 'node', target: library.target })
    const between = /(?<=(?:require|import)\("\.{1,2}\/[\w/.-]*)\.js(?="\))/g
    writeFileSync(`dist/${file.replace(/\.js$/, '.cjs')}`, code.replace(between, '.cjs'))
  }
}

/** The JSON Schema of an Analysis as a file, for those who do not run JavaScript. */
async function schemaAsFile(): Promise<void> {
  const { href } = pathToFileURL('dist/analysis.js')
  const { analysisJsonSchema } = await import(href)
  writeFileSync('dist/analysis.schema.json', `${JSON.stringify(analysisJsonSchema(), null, 1)}\n`)
}

const program = {
  entry: ['bin/ggml2perfetto.ts'],
  format: ['esm'],
  target: 'node20',
  splitting: false,
  esbuildPlugins: [beside(/^\.\/main\.ts$/, './cli/main.js')],
} satisfies Options

/** The MCP server: one file with the SDK in it, which nobody who installs the package installs. It runs the commands as programs. */
const agents = {
  entry: ['bin/ggml2perfetto-mcp.ts'],
  format: ['esm'],
  target: 'node20',
  splitting: false,
  minify: true,
  noExternal: [/^@modelcontextprotocol\//, 'zod'],
  esbuildPlugins: [beside(/\/lib\/cli\.ts$/, './cli.js')],
} satisfies Options

/** With --no-dts: what the CLI runs, in a tenth of the time. */
export default defineConfig(({ dts }) => {
  const isWhole = dts !== false
  const entry = Object.fromEntries(ENTRIES.map((name) => [name, `lib/${name}.ts`]))
  return [
    {
      ...library,
      onSuccess: async () => {
        const chunks = await joined()
        await schemaAsFile()
        if (isWhole) await forRequire(ofLibrary(chunks))
      },
    },
    ...(isWhole ? [{ entry, format: ['esm', 'cjs'], dts: { only: true }, clean: true } satisfies Options] : []),
    program,
    agents,
  ]
})
