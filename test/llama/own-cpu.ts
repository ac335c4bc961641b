import { execFile, spawnSync } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { cacheFolder } from '../cache.cjs'
import { hasLlama, INCLUDE, LIB } from './testbed.ts'

/**
 * ggml's CPU backend, built here in other ways than the libraries of vendor/llama/lib. Weights are not repacked, and none but the
 * instructions that all of x86-64 has are used: it compiles in some ten seconds, once.
 */
export interface Way {
  readonly cc: string
  readonly cxx: string
  readonly flags: readonly string[]
}

/** As most distributions do: its threads belong to libgomp, live as long as the program, and wait at `#pragma omp barrier`. */
export const OPENMP: Way = { cc: 'cc', cxx: 'c++', flags: ['-O1', '-fopenmp', '-DGGML_USE_OPENMP'] }
/** Calls inside a source file are inlined. */
export const CLANG: Way = { cc: 'clang', cxx: 'clang++', flags: ['-O2'] }
export const NO_INTERPOSITION: Way = { cc: 'cc', cxx: 'c++', flags: ['-O2', '-fno-semantic-interposition'] }

const SOURCE = join(LIB, '../source')
const CPU = join(SOURCE, 'ggml-cpu')
const C = ['ggml-cpu.c', 'quants.c', 'arch/x86/quants.c']
const CPP = ['ggml-cpu.cpp', 'traits.cpp', 'binary-ops.cpp', 'unary-ops.cpp', 'vec.cpp', 'ops.cpp', 'iqp.cpp']
const DEFINES = ['GGML_BACKEND_DL', 'GGML_BACKEND_BUILD', 'GGML_BACKEND_SHARED', 'GGML_SHARED']
const FLAGS = ['-fPIC', '-D_GNU_SOURCE', '-DGGML_VERSION="x"', '-DGGML_COMMIT="x"']
const execute = promisify(execFile)

/** Whether it can be built here. */
export const canBuild = ({ cxx, flags }: Way) =>
  hasLlama() &&
  spawnSync(cxx, [...flags, '-x', 'c++', '-', '-o', '/dev/null'], {
    input: '#ifdef _OPENMP\n#include <omp.h>\n#endif\n#include <vector>\nint main() {}',
  }).status === 0

const build = async (folder: string, { cc, cxx, flags }: Way) => {
  const all = [...FLAGS, ...flags, ...DEFINES.map((name) => `-D${name}`), `-I${INCLUDE}`, `-I${SOURCE}`, `-I${CPU}`]
  const objects: string[] = []
  for (const name of [...C, ...CPP]) {
    const object = join(folder, `${name.replaceAll('/', '_')}.o`)
    const compiler = name.endsWith('.c') ? [cc, '-std=gnu11'] : [cxx, '-std=gnu++17']
    await execute(compiler[0]!, [...compiler.slice(1), ...all, '-c', join(CPU, name), '-o', object])
    objects.push(object)
  }
  const library = join(folder, 'libggml-cpu.so')
  await execute(cxx, ['-shared', ...flags, ...objects, `-L${LIB}`, '-lggml-base', '-Wl,-z,defs', '-o', library])
  await Promise.all(objects.map((object) => rm(object)))
}

/** A folder with that backend, from the cache in the temporary folder; wants `ensureLlama()` to have been called. */
export const ownCpu = async (way: Way) => {
  const stamp = await readFile(join(LIB, '../stamp.json'), 'utf8')
  const key = createHash('sha256').update(
    [stamp, LIB, ...C, ...CPP, ...DEFINES, ...FLAGS, way.cc, ...way.flags].join('\0'),
  )
  const folder = join(cacheFolder('runner'), `cpu-${key.digest('hex').slice(0, 16)}`)
  if (existsSync(folder)) return folder
  const temporary = `${folder}.${randomUUID()}.tmp`
  await mkdir(temporary, { recursive: true })
  try {
    await build(temporary, way)
    await rename(temporary, folder).catch((error) => {
      if (!existsSync(folder)) throw error // another was faster
    })
  } finally {
    await rm(temporary, { recursive: true, force: true })
  }
  return folder
}
