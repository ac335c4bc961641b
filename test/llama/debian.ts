import { spawnSync } from 'node:child_process'
import { copyFileSync, linkSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { cacheFolder } from '../cache.cjs'
import { cc } from '../compile.ts'

/**
 * The newest llama.cpp that Debian has, its own tools, in a folder made of Debian's packages. Fetched where it is missing.
 */

/** The root folder of those programs. */
export const ROOT = cacheFolder('debian')
const FETCH = fileURLToPath(new URL('../../scripts/fetch-debian.mjs', import.meta.url))
const PACKAGES = ['coreutils', 'llama.cpp-tools', 'llama.cpp-tools-extra', 'llama.cpp-examples', 'whisper.cpp']

/** Fetches them. Why they cannot be tried here; undefined where they can. */
export function whyNoDebian(): string | undefined {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'needs root, for chroot'
  const { status, stderr } = spawnSync('flock', [`${ROOT}.lock`, process.execPath, FETCH, ROOT, ...PACKAGES])
  return status === 0 ? undefined : `needs Debian’s packages: ${`${stderr}`.trim().split('\n').at(-1)}`
}

/** The path of a file below {@link ROOT}, as programs in there see it. */
export const inRoot = (path: string) => path.slice(ROOT.length)

/** With its own /proc and with /sys, where a container lets us mount them: the recorder reads the kernel's clock source there. */
export const IN_ROOT = [
  'unshare',
  '-m',
  'sh',
  '-c',
  'mount -t proc proc "$0/proc" 2>/dev/null; mkdir -p "$0/sys" && mount --rbind /sys "$0/sys" 2>/dev/null; exec chroot "$0" "$@"',
  ROOT,
]

/* ---- Its backends: single files of their packages ---- */

const LIBRARIES = 'usr/lib/x86_64-linux-gnu'

const fetchFiles = (folder: string, files: string, ...packages: readonly string[]) => {
  const args = [`${folder}.lock`, process.execPath, FETCH, `--files=${files}`, folder, ...packages]
  const { status, stderr } = spawnSync('flock', args)
  return status === 0 ? undefined : `needs Debian’s ${packages}: ${`${stderr}`.trim().split('\n').at(-1)}`
}

const packagesOf = (folder: string) => readFileSync(join(folder, 'packages.json'), 'utf8')

/** Has a backend in a folder another version than ggml? Why it cannot be tried then. */
function whyOther(folder: string, name: string): string | undefined {
  const version = packagesOf(folder)
    .split('\n')
    .find((line) => line.startsWith(`${name}=`))
    ?.slice(name.length + 1)
  const isSame = packagesOf(ROOT).split('\n').includes(`libggml0=${version}`)
  return isSame ? undefined : `Debian’s ggml and its ${name} ${version} have different versions`
}

/* ---- Its BLAS backend, with the reference BLAS ---- */

const BLAS = `${ROOT}-blas`

/** Fetches them. Why they cannot be tried here; undefined where they can. */
export const whyNoBlas = (): string | undefined =>
  whyNoDebian() ??
  fetchFiles(BLAS, '*blas*', 'libggml0-backend-blas', 'libblas3') ??
  whyOther(BLAS, 'libggml0-backend-blas')

/** Puts them into a folder below {@link ROOT}. The environment in which Debian's programs load them. */
export function placeBlas(folder: string): Readonly<Record<string, string>> {
  const backend = 'libggml-blas.so'
  copyFileSync(join(BLAS, LIBRARIES, 'ggml/backends0', backend), join(folder, backend))
  copyFileSync(join(BLAS, LIBRARIES, 'blas/libblas.so.3'), join(folder, 'libblas.so.3'))
  return { LD_LIBRARY_PATH: inRoot(folder), GGML_BACKEND_PATH: join(inRoot(folder), backend) }
}

/* ---- Its HIP backend, and a program that computes with it ---- */

const BACKEND = `${ROOT}-hip`
const HEADERS = `${ROOT}-include`

/** Fetches them, with the HIP backend (1.2 GB) and the headers. Why they cannot be tried here; undefined where they can. */
export function whyNoHip(): string | undefined {
  const problem =
    whyNoDebian() ??
    fetchFiles(BACKEND, '*/libggml-hip*', 'libggml0-backend-hip') ??
    fetchFiles(HEADERS, '*.h', 'libllama-dev', 'libggml-dev')
  return problem ?? whyOther(BACKEND, 'libggml0-backend-hip')
}

/**
 * Puts the HIP backend, and programs for Debian's llama.cpp, into a folder below {@link ROOT}: `libggml-hip.so`, and of run.c and planted.c
 * `run` and `planted`. The backend is a hard link.
 */
export function placeHip(folder: string): void {
  linkSync(join(BACKEND, LIBRARIES, 'ggml/backends0/libggml-hip.so'), join(folder, 'libggml-hip.so'))
  const libraries = ['llama', 'ggml', 'ggml-base'].map((name) => join(ROOT, LIBRARIES, `lib${name}.so.0`))
  const flags = ['-O2', `-I${join(HEADERS, 'usr/include')}`, '-Wl,--allow-shlib-undefined']
  for (const name of ['run', 'planted']) {
    const source = fileURLToPath(new URL(`${name}.c`, import.meta.url))
    cc(...flags, source, '-o', join(folder, name), ...libraries, '-lpthread')
  }
}

/** The option of `run` for the folder of Debian's other backends. */
export const BACKENDS = ['--lib', `/${LIBRARIES}/ggml/backends0`]
