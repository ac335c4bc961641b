import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { transform } from 'esbuild'
import { type Plugin, rollup } from 'rollup'
import { defineConfig, type Options } from 'tsup'

type Plugins = NonNullable<Options['esbuildPlugins']>

/** What a program imports from another build. The CLI imports the very library that a user would: lib is not bundled a second time. */
const beside = (filter: RegExp, folder: string): Plugins[number] => ({
  name: 'beside',
  setup(build) {
    build.onResolve({ filter }, ({ path }) => ({
      path: `${folder}/${path.replace(/^.*\/(\w+)\.ts$/, '$1')}.js`,
      external: true,
    }))
  },
})

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
    return marked.replace(/^import ['"]\..*['"];\n/gm, '')
  },
}

/** The entries of the package, by their files in lib. */
const ENTRIES = ['index', 'core', 'perfetto', 'sql', 'analysis', 'report', 'tables', 'node', 'datasets', 'worker']

/**
 * The library, with what the command needs of it. What several entries contain is in chunks that they import, so that each class exists
 * once. What runs in browsers is bundled with all that it needs; test/library/builds.long.test.ts proves that it contains no Node module.
 */
const library = {
  entry: Object.fromEntries([
    ...[...ENTRIES, 'cli'].map((name) => [name, `lib/${name}.ts`]),
    ['worker-script', 'lib/worker/script.ts'],
  ]),
  format: ['esm'],
  target: 'es2022',
  platform: 'neutral',
  splitting: true,
  clean: ['!native/**', '!cli/**', '!ggml2perfetto.js', '!ggml2perfetto-mcp.js', '!**/*.d.*'],
  external: [/^node:/, '@duckdb/node-api', '@hpcc-js/wasm-graphviz'],
  noExternal: ['fzstd', '@datadog/sketches-js', '@observablehq/plot', 'd3-hierarchy', '@noble/hashes', 'protobufjs'],
  loader: { '.sql': 'text', '.textproto': 'text' },
  esbuildPlugins: [sketchesWithoutProtobuf],
  esbuildOptions(options) {
    options.chunkNames = 'chunks/[name]-[hash]'
    options.mainFields = ['module', 'main']
    options.minifySyntax = true // among others, fields in groups ({ ...{ a, b }, c }), which cost a microsecond each at run time, become one literal
  },
} satisfies Options

/**
 * Joins the files that are always loaded together: esbuild makes one of each set of entries and imports at run time that need a module,
 * rollup does not count those whose importer has loaded it already. Of 80 files that a conversion loads, 36 are left.
 */
async function joined(): Promise<void> {
  const inputs = Object.keys(library.entry)
  const bundle = await rollup({
    input: Object.fromEntries(inputs.map((name) => [name, `dist/${name}.js`])),
    external: (name) => !name.startsWith('.') && !name.startsWith('/') && !name.startsWith('dist/'),
    treeshake: false,
    preserveEntrySignatures: 'strict',
    plugins: [pure],
  })
  rmSync('dist/chunks', { recursive: true })
  await bundle.write({
    dir: 'dist',
    format: 'esm',
    chunkFileNames: ({ name }) => `chunks/${name.replace(/-\w+$/, '')}-[hash].js`, // without esbuild's hash
    hashCharacters: 'base36',
    hoistTransitiveImports: false,
  })
}

/** Where a file of CommonJS is, as `import.meta.url` is where a module is; in bundles for browsers, where their page is. */
const PLACE = `(typeof __filename === 'string'
  ? new URL('file:' + __filename.replace(/[%?#\\\\]/g, (sign) => (sign === '\\\\' ? '/' : encodeURIComponent(sign)))).href
  : globalThis.document?.baseURI)`

/** The same files for `require`: tsup's own ones are rewritten for engines without `?.` and `??`. */
async function forRequire(): Promise<void> {
  const files = ['dist', 'dist/chunks'].flatMap((folder) => readdirSync(folder).map((name) => `${folder}/${name}`))
  for (const path of files.filter((name) => /(?<!cli|ggml2perfetto|ggml2perfetto-mcp)\.js$/.test(name))) {
    const module = readFileSync(path, 'utf8').replaceAll('import.meta.url', PLACE)
    const { code } = await transform(module, { format: 'cjs', platform: 'node', target: library.target })
    const between = /(?<=(?:require|import)\("\.{1,2}\/[\w/.-]*)\.js(?="\))/g
    writeFileSync(path.replace(/\.js$/, '.cjs'), code.replace(between, '.cjs'))
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
  esbuildPlugins: [beside(/^\.\/main\.ts$/, './cli')],
} satisfies Options

/** The MCP server: one file with the SDK in it, which nobody who installs the package installs. It runs the commands as programs. */
const agents = {
  entry: ['bin/ggml2perfetto-mcp.ts'],
  format: ['esm'],
  target: 'node20',
  splitting: false,
  minify: true,
  noExternal: [/^@modelcontextprotocol\//, 'zod'],
  esbuildPlugins: [beside(/\/lib\/cli\.ts$/, '.')],
} satisfies Options

/** A file for each command, which is loaded when it is used, and what several share. */
const cli = {
  entry: ['bin/main.ts'],
  outDir: 'dist/cli',
  format: ['esm'],
  target: 'node20',
  splitting: true,
  clean: true,
  esbuildPlugins: [beside(/\/lib\/(cli|report)\.ts$/, '..')],
} satisfies Options

/** With --no-dts: what the CLI runs, in a tenth of the time. */
export default defineConfig(({ dts }) => {
  const isWhole = dts !== false
  const entry = Object.fromEntries(ENTRIES.map((name) => [name, `lib/${name}.ts`]))
  return [
    {
      ...library,
      onSuccess: async () => {
        await joined()
        await schemaAsFile()
        if (isWhole) await forRequire()
      },
    },
    ...(isWhole ? [{ entry, format: ['esm', 'cjs'], dts: { only: true }, clean: true } satisfies Options] : []),
    program,
    agents,
    cli,
  ]
})
