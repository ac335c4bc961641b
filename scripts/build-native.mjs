/**
 * Builds the recorder's library, the NVTX listener and the program that measures peaks for this machine into dist/native/, where
 * `ggml2perfetto record` and `peaks` look for them first once the package is installed. Without make and a C compiler, or on
 * another system, there are none: they are built when they are used.
 */
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const has = (tool) => spawnSync(tool, ['--version'], { stdio: 'ignore' }).status === 0
const compiler = (process.env.CC || 'cc').split(/\s+/)[0]

if (process.platform !== 'linux' || !has('make') || !has(compiler)) {
  console.error(`note: no make and ${compiler} for Linux here: the recorder and peaks are not built`)
  process.exit(0)
}

const { status } = spawnSync('make', ['-s', '-C', join(root, 'native'), 'BUILD=build/release', 'CFLAGS=-O2 -s'], {
  stdio: ['ignore', 2, 2],
})
if (status !== 0) {
  console.error('error: the recorder and peaks cannot be built')
  process.exit(status ?? 1)
}
const to = join(root, 'dist/native', `${process.platform}-${process.arch}`)
mkdirSync(to, { recursive: true })
for (const name of ['libggml2perfetto.so', 'libggml2perfetto-nvtx.so', 'peaks'])
  copyFileSync(join(root, 'native/build/release', name), join(to, name))
