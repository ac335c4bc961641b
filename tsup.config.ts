import { defineConfig, type Options } from 'tsup'

const shared = { target: 'node20', splitting: false } as const

/** The CLI imports the very library that a user would, from beside it: lib is not bundled a second time. */
const libraryBeside: NonNullable<Options['esbuildPlugins']>[number] = {
  name: 'library-beside',
  setup(build) {
    build.onResolve({ filter: /\/lib\/index\.ts$/ }, () => ({ path: './index.js', external: true }))
  },
}

/** What runs anywhere; test/house.test.ts proves that no Node module slipped in. Nothing is left to be imported. */
const anywhere = {
  ...shared,
  target: 'es2022',
  platform: 'browser',
  treeshake: true,
  noExternal: ['fzstd'],
} satisfies Options

export default defineConfig([
  {
    ...shared,
    entry: ['lib/index.ts'],
    format: ['esm', 'cjs'],
    dts: true,
    shims: true,
    clean: ['!ggml2perfetto.*', '!browser.*'],
  },
  { ...anywhere, entry: ['lib/browser.ts'], format: ['esm', 'cjs'], dts: true },
  { ...shared, entry: ['bin/ggml2perfetto.ts'], format: ['esm'], esbuildPlugins: [libraryBeside] },
])
