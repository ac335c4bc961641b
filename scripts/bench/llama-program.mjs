/** The test's program that runs llama.cpp (test/llama/run.c), the recorder, and Vulkan on the CPU, for measurements. */
import { execFileSync } from 'node:child_process'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

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
  MESA_SHADER_CACHE_DIR: join(tmpdir(), 'ggml2perfetto-shaders'),
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
