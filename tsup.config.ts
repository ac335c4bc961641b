import { defineConfig, type Options } from 'tsup'

const shared = { target: 'node20', sourcemap: true, splitting: false } as const

/** The CLI imports the very library that a user would, from beside it: lib is not bundled a second time. */
const libraryBeside: NonNullable<Options['esbuildPlugins']>[number] = {
  name: 'library-beside',
  setup(build) {
    build.onResolve({ filter: /\/lib\/index\.ts$/ }, () => ({ path: './index.js', external: true }))
  },
}

export default defineConfig([
  { ...shared, entry: ['lib/index.ts'], format: ['esm', 'cjs'], dts: true, shims: true, clean: ['!ggml2perfetto.*'] },
  { ...shared, entry: ['bin/ggml2perfetto.ts'], format: ['esm'], esbuildPlugins: [libraryBeside] },
])
