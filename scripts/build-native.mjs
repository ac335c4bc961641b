/**
 * Builds the recorder's library for this machine into dist/native/, where `ggml2perfetto record` looks for it first once
 * the package is installed. Without make and a C compiler, or on another system, there is none: `record` builds it when it
 * is used.
 */
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const has = (tool) => spawnSync(tool, ['--version'], { stdio: 'ignore' }).status === 0
const compiler = (process.env.CC || 'cc').split(/\s+/)[0]

if (process.platform !== 'linux' || !has('make') || !has(compiler)) {
  console.error(`note: no make and ${compiler} for Linux here: the recorder's library is not built`)
  process.exit(0)
}

const { status } = spawnSync('make', ['-s', '-C', join(root, 'native'), 'BUILD=build/release', 'CFLAGS=-O2 -s'], {
  stdio: ['ignore', 2, 2],
})
if (status !== 0) {
  console.error("error: the recorder's library cannot be built")
  process.exit(status ?? 1)
}
const to = join(root, 'dist/native', `${process.platform}-${process.arch}`, 'libggml2perfetto.so')
mkdirSync(dirname(to), { recursive: true })
copyFileSync(join(root, 'native/build/release/libggml2perfetto.so'), to)
