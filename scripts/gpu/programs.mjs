/** The programs of verify.mjs: test/llama/run.c, and the observer. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))
const compile = (...args) => execFileSync('cc', args, { stdio: ['ignore', 2, 2] })

/** Compiles run.c with the headers and libraries of a folder such as vendor/llama; `lib`: where the program looks for them. */
export function compileProgram(llama, path, lib = join(llama, 'lib')) {
  const isEarlier = !readFileSync(join(llama, 'include/llama.h'), 'utf8').includes('LLAMA_LOAD_MODE_MMAP')
  const linked = [`-L${join(llama, 'lib')}`, `-Wl,-rpath,${lib}`, '-lllama', '-lggml', '-lggml-base', '-lpthread']
  const options = ['-std=gnu11', '-O2', ...(isEarlier ? ['-w', '-DEARLIER'] : []), `-I${join(llama, 'include')}`]
  compile(...options, join(root, 'test/llama/run.c'), '-o', path, ...linked)
}

/** Compiles observer.c with the toolkit's headers; `folders`: further ones with libcupti. */
export function compileObserver(path, folders = []) {
  const toolkit = process.env.CUDA_HOME ?? '/usr/local/cuda'
  const places = [`${toolkit}/lib64`, `${toolkit}/extras/CUPTI/lib64`, ...folders].map((folder) => `-L${folder}`)
  const headers = [`-I${toolkit}/include`, `-I${toolkit}/extras/CUPTI/include`]
  compile('-shared', '-fPIC', '-O1', ...headers, join(root, 'scripts/gpu/observer.c'), '-o', path, ...places, '-lcupti')
}
