import { defineConfig } from 'tsup'

const shared = { target: 'node20', sourcemap: true, splitting: false } as const

export default defineConfig([
  { ...shared, entry: ['lib/index.ts'], format: ['esm', 'cjs'], dts: true, shims: true, clean: true },
  // The CLI imports the very library a user would: lib is not bundled a second time.
  { ...shared, entry: ['bin/ggml2perfetto.ts'], format: ['esm'], external: [/lib\/index/] },
])
