/**
 * Builds the recorder's library, the NVTX listener and the program that measures peaks into dist/native/, for Linux on x64 and arm64.
 * In an installed package, `ggml2perfetto record` and `peaks` look for them there first. They need glibc 2.31 or newer.
 * Without a compiler for an architecture, its files are left out, and built at the first use.
 */
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const files = ['libggml2perfetto.so', 'libggml2perfetto-nvtx.so', 'peaks']
const crossCompilers = { x64: 'x86_64-linux-gnu-gcc', arm64: 'aarch64-linux-gnu-gcc' }
const has = (tool) => spawnSync(tool, ['--version'], { stdio: 'ignore' }).status === 0

const build = (arch) => {
  const to = join(root, 'dist/native', `linux-${arch}`)
  rmSync(to, { recursive: true, force: true }) // may be from another state of the sources
  const isOwn = process.platform === 'linux' && process.arch === arch
  const compiler = isOwn ? process.env.CC || 'cc' : crossCompilers[arch]
  const missing = ['make', compiler.split(/\s+/)[0]].find((tool) => !has(tool))
  if (missing) {
    console.error(`note: no ${missing} here: the recorder and peaks are not built for linux-${arch}`)
    return
  }
  const folder = `build/package/${arch}`
  const make = ['-s', '-C', join(root, 'native'), `BUILD=${folder}`, `CC=${compiler}`, 'release']
  const { status } = spawnSync('make', make, { stdio: ['ignore', 2, 2] })
  if (status !== 0) {
    console.error(`error: the recorder and peaks cannot be built for linux-${arch}`)
    process.exit(status ?? 1)
  }
  mkdirSync(to, { recursive: true })
  for (const name of files) copyFileSync(join(root, 'native', folder, 'release', name), join(to, name))
}

for (const arch of Object.keys(crossCompilers)) build(arch)
