/** The test's program that runs llama.cpp (test/llama/run.c), the recorder, and Vulkan on the CPU, for measurements. */
import { execFileSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdtempSync, readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { cacheFolder } from '../../test/cache.cjs'
import { ROOT as DEBIAN, fetchDebian, IN_ROOT, install } from '../compatibility/runs.mjs'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
export const LIBS = join(ROOT, 'vendor/llama/lib')
export const RECORDER = join(ROOT, 'native/build/libggml2perfetto.so')

const DRIVER = '/usr/share/vulkan/icd.d/lvp_icd.x86_64.json'
/** The environment of a program that uses Mesa's driver for the CPU (mesa-vulkan-drivers), as in test/llama/testbed.ts. */
export const ON_VULKAN = {
  GGML_BACKEND_PATH: join(ROOT, 'vendor/llama/vulkan/libggml-vulkan.so'),
  GGML_VK_VISIBLE_DEVICES: '0',
  VK_DRIVER_FILES: DRIVER,
  VK_ICD_FILENAMES: DRIVER,
  GALLIVM_PERF: 'nopt',
  MESA_SHADER_CACHE_DIR: cacheFolder('shaders'),
}

/** Fetches llama.cpp, builds the recorder and the program; returns the program's path. */
export function buildProgram(folder, { vulkan = false } = {}) {
  const fetched = ['scripts/fetch-llama.mjs', ...(vulkan ? ['--vulkan'] : [])]
  execFileSync(process.execPath, fetched, { cwd: ROOT, stdio: 'inherit' })
  execFileSync('make', ['-s', '-C', 'native'], { cwd: ROOT, stdio: 'inherit' })
  const program = join(folder, 'run')
  const link = [`-L${LIBS}`, `-Wl,-rpath,${LIBS}`, '-lllama', '-lggml', '-lggml-base', '-lpthread']
  const include = `-I${join(ROOT, 'vendor/llama/include')}`
  execFileSync('cc', ['-std=gnu11', '-O2', include, join(ROOT, 'test/llama/run.c'), '-o', program, ...link])
  return program
}

/** Of an environment, for `env`. */
export const assignments = (env) => Object.entries(env).map(([name, value]) => `${name}=${value}`)

/**
 * The same for test/llama/any-version.c, with the llama.cpp of a version of node-llama-cpp, or of Debian sid (`debian`), which runs in a
 * root folder of its own. `inside` returns a path as the program sees it; `commandFor` returns its command, given the environment.
 */
export async function buildAnyVersion(version) {
  execFileSync('make', ['-s', '-C', 'native'], { cwd: ROOT, stdio: 'inherit' })
  if (version === 'debian') await fetchDebian()
  const root = version === 'debian' ? DEBIAN : ''
  const bins = root || join(await install(version), 'node_modules/@node-llama-cpp/linux-x64/bins/linux-x64')
  const names = readdirSync(bins, { recursive: Boolean(root) })
  const library = names.find((name) => /(^|\/)libllama(\.v[\d.]+)?\.so(\.0)?$/.test(name))
  const folder = mkdtempSync(join(root || tmpdir(), root ? 'tmp/bench-' : 'ggml2perfetto-bench-'))
  const inside = (path) => path.slice(root.length)
  const program = join(folder, 'any-version')
  execFileSync('cc', ['-std=gnu11', '-O2', join(ROOT, 'test/llama/any-version.c'), '-o', program, '-ldl'])
  const recorder = join(folder, 'libggml2perfetto.so')
  copyFileSync(RECORDER, recorder)
  const start = root ? ['unshare', ...IN_ROOT] : []
  const commandFor = ({ path, threads, prompt, calls }) => {
    const model = join(folder, basename(path))
    if (!existsSync(model)) copyFileSync(path, model)
    const args = [inside(join(bins, library)), root ? '-' : bins, inside(model), threads, prompt, calls].map(String)
    return (env) => [...start, 'env', ...assignments(env), inside(program), ...args]
  }
  return { folder, recorder: inside(recorder), inside, commandFor }
}
