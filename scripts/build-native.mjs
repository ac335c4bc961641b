/**
 * Builds the recorder's library for this machine into dist/native/, where `ggml2perfetto record` looks for it first once
 * the package is installed. Without a C compiler, or on another system, there is none: `record` builds it when it is used.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const [compiler, ...words] = (process.env.CC || 'cc').split(/\s+/).filter(Boolean)
// As lib/node/recorder-library.ts has them, and strict.
const FLAGS = [
  '-std=gnu11',
  '-O2',
  '-fPIC',
  '-fvisibility=hidden',
  '-shared',
  '-pthread',
  '-Wall',
  '-Wextra',
  '-Werror',
]

if (process.platform !== 'linux' || spawnSync(compiler, ['--version'], { stdio: 'ignore' }).status !== 0) {
  console.error(`note: no ${compiler} for Linux here: the recorder's library is not built`)
  process.exit(0)
}

const folder = join(root, 'dist/native', `${process.platform}-${process.arch}`)
const sources = readdirSync(join(root, 'native'))
  .filter((name) => name.endsWith('.c'))
  .sort()
  .map((name) => join(root, 'native', name))
mkdirSync(folder, { recursive: true })
const args = [...words, ...FLAGS, '-s', '-o', join(folder, 'libggml2perfetto.so'), ...sources, '-ldl']
const { status } = spawnSync(compiler, args, { stdio: ['ignore', 2, 2] })
if (status !== 0) console.error("error: the recorder's library cannot be built")
process.exit(status ?? 1)
