/**
 * Builds the recorder's library, the NVTX listener and the program that measures peaks into dist/native/, for Linux on x64 and arm64, and
 * for musl on this machine's processor; with their hashes in SHA256SUMS. In an installed package, `ggml2perfetto record` and `peaks` look for them there first. Those
 * for glibc need 2.31 or newer. Without a compiler for an architecture or libc, its files are left out, and built at the first use.
 */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const files = ['libggml2perfetto.so', 'libggml2perfetto-nvtx.so', 'peaks']
/** By the end of the folder's name: the processor as Node names it, and the libc if it is not glibc. musl-gcc compiles for this machine. */
const compilers = { x64: 'x86_64-linux-gnu-gcc', arm64: 'aarch64-linux-gnu-gcc', [`${process.arch}-musl`]: 'musl-gcc' }
const has = (tool) => spawnSync(tool, ['--version'], { stdio: 'ignore' }).status === 0

/** Builds the files for a processor and a libc, and returns their lines of SHA256SUMS. */
const build = (arch) => {
  const to = join(root, 'dist/native', `linux-${arch}`)
  rmSync(to, { recursive: true, force: true }) // may be from another state of the sources
  const isOwn = process.platform === 'linux' && process.arch === arch
  const compiler = isOwn ? process.env.CC || 'cc' : compilers[arch]
  const missing = ['make', compiler.split(/\s+/)[0]].find((tool) => !has(tool))
  if (missing) {
    console.error(`note: no ${missing} here: the recorder and peaks are not built for linux-${arch}`)
    return []
  }
  const folder = `build/package/${arch}`
  const make = [
    '-s',
    '-j',
    `${availableParallelism()}`,
    '-C',
    join(root, 'native'),
    `BUILD=${folder}`,
    `CC=${compiler}`,
    'release',
  ]
  const { status } = spawnSync('make', make, { stdio: ['ignore', 2, 2] })
  if (status !== 0) {
    console.error(`error: the recorder and peaks cannot be built for linux-${arch}`)
    process.exit(status ?? 1)
  }
  mkdirSync(to, { recursive: true })
  return files.map((name) => {
    copyFileSync(join(root, 'native', folder, 'release', name), join(to, name))
    const hash = createHash('sha256').update(readFileSync(join(to, name)))
    return `${hash.digest('hex')}  linux-${arch}/${name}\n`
  })
}

const sums = Object.keys(compilers).flatMap(build)
if (sums.length > 0) writeFileSync(join(root, 'dist/native/SHA256SUMS'), sums.join(''))
