import { execFile } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readFile, rename, rm } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { cacheFolder } from '../cache.cjs'
import { ensureLlama } from './testbed.ts'

/** Programs and add-ons of tests with ggml and llama.cpp inside, which are compiled once: about two minutes of two CPUs. */

const pathOf = (name: string) => fileURLToPath(new URL(name, import.meta.url))
const MAKEFILE = pathOf('static.mk')
const BUNDLE = pathOf('../../vendor/llama/node/node_modules/node-llama-cpp/llama/gitRelease.bundle')
const execute = promisify(execFile)

/** Variables of static.mk, such as `LEVEL=-O3`. */
export type StaticOptions = readonly string[]

async function build(folder: string, options: StaticOptions): Promise<void> {
  const repository = join(folder, 'llama.cpp.git')
  const sources = join(folder, 'sources')
  await mkdir(sources, { recursive: true })
  await execute('git', ['clone', '--quiet', '--bare', BUNDLE, repository])
  const archive = join(folder, 'sources.tar')
  const wanted = ['include', 'ggml/include', ':(glob)ggml/src/*.*', 'ggml/src/ggml-cpu', 'src']
  await execute('git', ['--git-dir', repository, 'archive', '--output', archive, 'HEAD', ...wanted])
  await execute('tar', ['-xf', archive, '-C', sources])
  const make = ['-s', '-j', `${availableParallelism()}`, '-f', MAKEFILE, `S=${sources}`, `T=${pathOf('.')}`, ...options]
  await execute('make', make, { cwd: folder, maxBuffer: 1 << 26 })
  for (const name of ['llama.cpp.git', 'sources', 'sources.tar', 'o']) await rm(join(folder, name), { recursive: true })
}

/**
 * The folder of the programs `hosts`, `hosts-openmp` (whose workers are those of OpenMP) and `alone`, and of the add-ons `hosts.node` and
 * `hosts-openmp.node`, in a cache in the temporary folder.
 */
export async function staticPrograms(options: StaticOptions = []): Promise<string> {
  await ensureLlama({ node: true })
  const sources = ['hosts.c', 'alone.c', 'addon.c'].map(pathOf)
  const parts = [MAKEFILE, ...sources].map((path) => readFile(path, 'utf8'))
  const key = createHash('sha256').update([...(await Promise.all(parts)), ...options].join('\0'))
  const folder = join(cacheFolder('static'), key.digest('hex').slice(0, 16))
  if (existsSync(folder)) return folder
  const temporary = `${folder}.${randomUUID()}.tmp`
  await mkdir(temporary, { recursive: true })
  try {
    await build(temporary, options)
    await rename(temporary, folder).catch((error) => {
      if (!existsSync(folder)) throw error // another process was faster
    })
  } finally {
    await rm(temporary, { recursive: true, force: true })
  }
  return folder
}
