import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { beforeAll, expect, test } from '@jest/globals'
import { cacheFolder, plainTmpdir } from '../cache.cjs'
import { cc } from '../compile.ts'
import { at, CLI, folder, NODE, run, useFolder } from './helpers.ts'

export const canRun = (command: string, ...args: string[]) => spawnSync(command, args, { stdio: 'ignore' }).status === 0
export const canRecord = process.platform === 'linux' && canRun('cc', '--version')
export const unless = (isMissing: boolean) => (canRecord && !isMissing ? test : test.skip)
export const linuxTest = unless(false)
export const rootTest = unless(process.getuid?.() !== 0)

/** Stands in for libllama: the functions that the recorder stands before, exported and called through the linker. */
export const LLAMA = `#include "stand-in.h"
enum ggml_status ggml_backend_graph_compute_async(struct ggml_backend * b, struct ggml_cgraph * g) { (void) b; (void) g; return GGML_STATUS_SUCCESS; }
int32_t llama_decode(struct llama_context * context, struct llama_batch batch) { (void) context; return batch.n_tokens - 1; }`

export const CALLER = `#include <stdio.h>
#include "stand-in.h"
int main(int argc, char ** argv) {
  struct llama_batch batch = {.n_tokens = 1};
  struct llama_context * context = (void *) argv;
  int code = argc > 5 ? 9 : llama_decode(context, batch) + llama_decode(context, batch);
  puts("said");
  return code;
}`

/** Flags that link a program with libllama.so. */
export const WITH_LLAMA = () => [`-L${folder}`, '-l:libllama.so', `-Wl,-rpath,${folder}`]

export const compile = (name: string, source: string, ...flags: string[]) => {
  writeFileSync(at(`${name}.c`), source)
  cc('-O1', at(`${name}.c`), '-o', at(name), ...flags)
  chmodSync(at(name), 0o755) // for other users, whatever the umask is
}

export const script = (name: string, text: string) => {
  writeFileSync(at(name), text)
  chmodSync(at(name), 0o755)
}

/** Where the recorder is built, once for all test files. */
const SHARED_CACHE = cacheFolder('cache')

/** Lists the native files of a package with their hashes, as scripts/build-native.mjs does. */
export const writeHashes = (home: string) => writeSums(join(home, 'dist/native'))

/** The same for the files of another folder, such as one of the cache. */
export function writeSums(folder: string): void {
  const names = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name !== 'SHA256SUMS')
    .map(({ parentPath, name }) => relative(folder, join(parentPath, name)))
  const lines = names.map((name) => `${sha256(join(folder, name))}  ${name}\n`)
  writeFileSync(join(folder, 'SHA256SUMS'), lines.join(''))
}

export const sha256 = (path: string) => createHash('sha256').update(readFileSync(path)).digest('hex')

/** What a program says that has no log. */
export const NO_CALL = /no ggml call was seen in (.*): there is no log/

/** Call at the top of a test file. Programs: caller, which calls ggml; the recorder is there, in a cache of the file's own. */
export function useProgram(): void {
  useFolder(plainTmpdir())
  beforeAll(() => {
    if (!canRecord) return
    const lock = cacheFolder('cache.lock')
    const env = { ...process.env, XDG_CACHE_HOME: SHARED_CACHE }
    const names = ['record', '-q', 'sh', '-c', 'printf %s "$LD_PRELOAD"']
    const library = spawnSync('flock', [lock, ...NODE, CLI, ...names], { env, encoding: 'utf8' }).stdout
    mkdirSync(at('cache/ggml2perfetto'), { recursive: true, mode: 0o700 })
    // Of several builds there, from other sources, the one that is used.
    cpSync(dirname(library), at(join('cache', relative(SHARED_CACHE, dirname(library)))), { recursive: true })
    process.env['XDG_CACHE_HOME'] = at('cache')
    compile('libllama.so', LLAMA, '-shared', '-fPIC')
    compile('caller', CALLER, ...WITH_LLAMA())
    mkdirSync(at('empty'))
    expect(run(['record', '-o', 'first.ggtrace', 'true']).stderr).toMatch(/^no ggml/)
  })
}
