import { readFileSync } from 'node:fs'
import { defineConfig, type Options } from 'tsup'

const shared = { target: 'node20', splitting: false, loader: { '.sql': 'text', '.textproto': 'text' } } as const

/** What a program imports from another build. The CLI imports the very library that a user would: lib is not bundled a second time. */
const beside = (filter: RegExp, folder: string): NonNullable<Options['esbuildPlugins']>[number] => ({
  name: 'beside',
  setup(build) {
    build.onResolve({ filter }, ({ path }) => ({
      path: `${folder}/${path.replace(/^.*\/(\w+)\.ts$/, '$1')}.js`,
      external: true,
    }))
  },
})

/** Sketches are never written as protobuf here: 20 KB less. */
const sketchesWithoutProtobuf: NonNullable<Options['esbuildPlugins']>[number] = {
  name: 'sketches-without-protobuf',
  setup(build) {
    build.onLoad({ filter: /sketches-js.dist.ddsketch.proto.compiled\.js$/ }, () => ({ contents: '' }))
  },
}

/** The SQL package without its comments: 4 KB less. */
const sqlWithoutComments: NonNullable<Options['esbuildPlugins']>[number] = {
  name: 'sql-without-comments',
  setup(build) {
    build.onLoad({ filter: /\.sql$/ }, ({ path }) => {
      return { contents: readFileSync(path, 'utf8').replace(/^ *--.*\n/gm, ''), loader: 'text' }
    })
  },
}

/** What runs anywhere; test/house.test.ts proves that no Node module slipped in. Nothing is left to be imported. */
const anywhere = {
  ...shared,
  target: 'es2022',
  platform: 'browser',
  treeshake: true,
  noExternal: ['fzstd', '@datadog/sketches-js', '@observablehq/plot', 'd3-hierarchy', '@noble/hashes'],
  esbuildPlugins: [sketchesWithoutProtobuf, sqlWithoutComments],
} satisfies Options

/** What is not of the two next ones. */
const clean = ['!ggml2perfetto.*', '!cli/**', '!browser.*', '!report.*', '!tables.*', '!index.cjs', '!index.d.*']

/** For import, with what the command needs of it: what both contain is in files that both import. */
const index = {
  ...shared,
  entry: ['lib/index.ts', 'lib/cli.ts'],
  format: ['esm'],
  splitting: true,
  clean,
} satisfies Options
const required = { ...shared, entry: ['lib/index.ts'], format: ['cjs'], shims: true } satisfies Options
const types = { entry: ['lib/index.ts'], format: ['esm', 'cjs'], dts: { only: true } } satisfies Options
const report = {
  ...anywhere,
  entry: ['lib/report.ts'],
  format: ['esm', 'cjs'],
  dts: true,
  minify: true,
} satisfies Options
const program = {
  ...shared,
  entry: ['bin/ggml2perfetto.ts'],
  format: ['esm'],
  esbuildPlugins: [beside(/^\.\/main\.ts$/, './cli')],
} satisfies Options
/** A file for each command, which is loaded when it is used, and what several share. */
const cli = {
  ...shared,
  entry: ['bin/main.ts'],
  outDir: 'dist/cli',
  format: ['esm'],
  splitting: true,
  clean: true,
  esbuildPlugins: [beside(/\/lib\/(cli|report)\.ts$/, '..')],
} satisfies Options

/** With --no-dts: what the CLI runs, in a tenth of the time. */
export default defineConfig(({ dts }) =>
  dts === false
    ? [index, { ...report, format: ['esm'] }, program, cli]
    : [
        index,
        required,
        types,
        { ...anywhere, entry: ['lib/browser.ts'], format: ['esm', 'cjs'], dts: true },
        report,
        { ...anywhere, entry: ['lib/tables.ts'], format: ['esm', 'cjs'], dts: true, minify: true },
        program,
        cli,
      ],
)
